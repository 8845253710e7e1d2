from __future__ import annotations

import lzma
from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pytest

from docsigma.corpora import load_corpus
from docsigma.corpora.newsgroups import GROUPS
from docsigma.exceptions import InputError


@pytest.mark.data
def test_the_raw_corpus_has_the_known_size(data_folder):
    corpus = load_corpus("20newsgroups")
    assert (len(corpus.train), len(corpus.test)) == (11314, 7532)
    assert sorted(set(corpus.train.labels)) == sorted(set(corpus.test.labels))
    assert tuple(sorted(set(corpus.train.labels))) == GROUPS
    assert len(set(corpus.train.ids)) == 11314


@pytest.mark.data
def test_the_2000_word_corpus_has_the_known_size(data_folder):
    corpus = load_corpus("20newsgroups-2k")
    assert (len(corpus.train), len(corpus.test)) == (11268, 7505)
    assert corpus.train.counts.sum(dtype=np.float64) == 1128881
    assert corpus.test.counts.sum(dtype=np.float64) == 720898
    for part in (corpus.train, corpus.test):
        assert part.counts.dtype == np.float32
        assert part.counts.has_sorted_indices
        assert len(set(part.ids)) == len(part)
        assert part.words[:2] == ["who", "out"]
        assert [name.split("/")[0] for name in part.ids] == part.labels


def bunch(subset, **_):
    return SimpleNamespace(
        data=[f"{subset} two", f"{subset} ten", f"{subset} zero"],
        filenames=np.array(["x/sci.med/9", "x/sci.med/10", "x/alt.atheism/7"]),
        target=np.array([1, 1, 0]),
        target_names=["alt.atheism", "sci.med"],
    )


def test_without_data_the_postings_are_fetched_and_sorted(monkeypatch):
    monkeypatch.delenv("DOCSIGMA_DATA", raising=False)
    asked = []

    def fetch(**options):
        asked.append(options)
        return bunch(**options)

    monkeypatch.setattr("sklearn.datasets.fetch_20newsgroups", fetch)
    corpus = load_corpus("20newsgroups")
    assert [options["subset"] for options in asked] == ["train", "test"]
    assert all("remove" not in options for options in asked)
    assert corpus.train.ids == ["alt.atheism/7", "sci.med/9", "sci.med/10"]
    assert corpus.train.texts == ["train zero", "train two", "train ten"]
    assert corpus.test.labels == ["alt.atheism", "sci.med", "sci.med"]


@pytest.mark.parametrize("error", [URLError("no route"), OSError("hash differs")])
def test_without_data_and_network_the_sentence_says_how(monkeypatch, tmp_path, error):
    monkeypatch.setenv("DOCSIGMA_DATA", str(tmp_path))

    def fail(**_):
        raise error

    monkeypatch.setattr("sklearn.datasets.fetch_20newsgroups", fail)
    with pytest.raises(InputError, match=r"set DOCSIGMA_DATA .* internet once"):
        load_corpus("20newsgroups")


@pytest.fixture
def pack(monkeypatch, tmp_path):
    """Write a small pack of counts, with one file changed."""
    folder = tmp_path / "20newsgroups-nvdm2000"
    folder.mkdir()
    monkeypatch.setenv("DOCSIGMA_DATA", str(tmp_path))

    def pack(**changed):
        contents = {
            "train.feat.xz": "1 2:3 1:1\n20 3:2\n1 1:1\n2 2:1\n",
            "train.ids.xz": "alt.atheism/5\n?\nalt.atheism/5\ncomp.graphics/1\n",
            "test.feat.xz": "2 1:1\n",
            "test.ids.xz": "comp.graphics/2\n",
            "vocab.new": "sun 4\nrain 3\nhail 2\n",
        }
        for key, value in changed.items():
            name = key.replace("_", ".")
            contents[name if name == "vocab.new" else f"{name}.xz"] = value
        for name, content in contents.items():
            if content is not None:
                raw = content.encode()
                packed = lzma.compress(raw) if name.endswith(".xz") else raw
                (folder / name).write_bytes(packed)

    return pack


def test_indices_are_sorted_and_ids_made_unique(pack):
    pack()
    train = load_corpus("20newsgroups-2k").train
    assert train.counts.toarray().tolist() == [
        [1, 3, 0],
        [0, 0, 2],
        [1, 0, 0],
        [0, 1, 0],
    ]
    assert train.counts.has_sorted_indices
    assert train.ids == [
        "alt.atheism/5",
        "talk.religion.misc/line-2",
        "alt.atheism/5#2",
        "comp.graphics/1",
    ]
    assert train.labels[1:3] == ["talk.religion.misc", "alt.atheism"]
    assert train.words == ["sun", "rain", "hail"]


@pytest.mark.parametrize(
    ("changed", "fact"),
    [
        (
            {"train_feat": "1 2:3\n21 1:1\n"},
            "line 2: the label must be 1 to 20, got 21",
        ),
        (
            {"train_feat": "1 2:3\n1 4:1\n"},
            "line 2: indices must be 1 to 3, got 4 to 4",
        ),
        ({"train_feat": "1 0:3\n"}, "line 1: indices must be 1 to 3, got 0 to 0"),
        ({"train_feat": "1 2:x\n"}, "line 1: not `label index:count"),
        ({"train_feat": "\n"}, "line 1: not `label index:count"),
        (
            {"train_feat": "1 2:-1\n", "train_ids": "a\n"},
            "row 1, column 2, which is negative",
        ),
        ({"train_feat": ""}, "no documents"),
        ({"train_ids": "a\n"}, r"train.ids.xz has 1 ids but .* has 4 documents"),
        ({"vocab_new": "sun 1\nsun 2\n"}, "'sun' twice"),
        ({"vocab_new": None}, "lacks vocab.new"),
    ],
)
def test_a_damaged_pack_is_refused(pack, changed, fact):
    pack(**changed)
    with pytest.raises(InputError, match=fact):
        load_corpus("20newsgroups-2k")


def test_without_a_data_folder_the_sentence_says_so(monkeypatch):
    monkeypatch.delenv("DOCSIGMA_DATA", raising=False)
    with pytest.raises(InputError, match=r"20newsgroups-2k.*set DOCSIGMA_DATA"):
        load_corpus("20newsgroups-2k")
