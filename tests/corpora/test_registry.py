from __future__ import annotations

import pytest

from docsigma.corpora import CorpusInfo, available_corpora, load_corpus
from docsigma.exceptions import InputError

NAMES = [
    "20newsgroups",
    "20newsgroups-2k",
    "docstrings",
    "synthetic",
]


def test_every_corpus_is_listed_with_how_to_have_it(monkeypatch, tmp_path):
    monkeypatch.delenv("DOCSIGMA_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    listed = {info.name: info for info in available_corpora()}
    assert list(listed)[:4] == NAMES
    assert all(isinstance(info, CorpusInfo) for info in listed.values())
    assert [name for name in listed if listed[name].available] == NAMES[-2:]
    assert all("DOCSIGMA_DATA" in listed[name].how for name in NAMES[:2])
    assert list(tmp_path.iterdir()) == []


def test_the_cache_of_scikit_learn_makes_newsgroups_available(monkeypatch, tmp_path):
    monkeypatch.delenv("DOCSIGMA_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    (tmp_path / "20news-bydate_py3.pkz").touch()
    assert available_corpora()[0].available


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(InputError) as caught:
        load_corpus("reuters")
    assert f"known are {', '.join(NAMES)}" in str(caught.value)
    assert "a path to a file or folder also works" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "fact"),
    [
        ("synthetic", "no option `words`.*`n_train`"),
        ("20newsgroups-2k", "no option `words`.*none"),
        ("weather.txt", "no option `words`.*`test`, `text_column`"),
    ],
)
def test_an_unknown_option_lists_the_known_ones(name, fact):
    with pytest.raises(InputError, match=fact):
        load_corpus(name, words=(1, 2))


def test_a_path_is_read_as_training_documents(tmp_path):
    train = tmp_path / "train.txt"
    test = tmp_path / "test.txt"
    train.write_text("sun\nrain\n")
    test.write_text("hail\n")
    alone = load_corpus(train)
    assert (len(alone.train), len(alone.test)) == (2, 0)
    both = load_corpus(str(train), test=test)
    assert both.test.texts == ["hail"]


def test_a_path_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=r"no.jsonl: there is no such file"):
        load_corpus(str(tmp_path / "no.jsonl"))
    with pytest.raises(InputError, match=r"no.csv.gz: there is no such file"):
        load_corpus("no.csv.gz")
