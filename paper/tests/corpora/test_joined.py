"""The corpora of the paper among those of docsigma."""

from __future__ import annotations

import pytest

from docsigma.corpora import available_corpora, load_corpus
from docsigma.exceptions import InputError

NAMES = ["fisher", "fisher-asr", "switchboard", "switchboard-asr"]


def test_every_corpus_is_listed_with_how_to_have_it(monkeypatch):
    monkeypatch.delenv("DOCSIGMA_DATA", raising=False)
    listed = {info.name: info for info in available_corpora()}
    assert set(NAMES) <= set(listed)
    assert not any(listed[name].available for name in NAMES)
    assert all("DOCSIGMA_DATA" in listed[name].how for name in NAMES)


@pytest.mark.data
def test_with_the_data_folder_every_corpus_is_available(data_folder):
    missing = [info.name for info in available_corpora() if not info.available]
    assert missing == ["fisher", "fisher-asr"]


@pytest.mark.parametrize("name", ["fisher", "fisher-asr"])
def test_a_licensed_corpus_says_where_it_was_looked_for(name, monkeypatch, tmp_path):
    monkeypatch.delenv("DOCSIGMA_DATA", raising=False)
    with pytest.raises(InputError, match=f"`{name}` is not here: set DOCSIGMA_DATA"):
        load_corpus(name)
    monkeypatch.setenv("DOCSIGMA_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"fisher lacks split.txt"):
        load_corpus(name)
