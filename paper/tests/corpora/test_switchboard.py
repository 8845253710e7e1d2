from __future__ import annotations

import pytest

from docsigma.corpora import Documents, load_corpus
from docsigma.exceptions import InputError
from docsigma_paper.corpora.switchboard import word_window


@pytest.mark.data
def test_both_transcripts_hold_the_same_sides(data_folder):
    manual = load_corpus("switchboard")
    automatic = load_corpus("switchboard-asr")
    assert (len(manual.train), len(manual.test)) == (1154, 772)
    assert manual.train.ids == automatic.train.ids
    assert manual.test.labels == automatic.test.labels
    assert len(set(manual.train.labels)) == 40
    assert sum(len(text.split()) for text in manual.train.texts) == 735713
    assert sum(len(text.split()) for text in automatic.test.texts) == 494620


@pytest.mark.data
def test_a_window_cuts_each_side_and_keeps_every_document(data_folder):
    whole = load_corpus("switchboard").test
    cut = load_corpus("switchboard", words=(201, 400)).test
    assert cut.ids == whole.ids
    assert cut.texts[0].split() == whole.texts[0].split()[200:400]
    assert max(len(text.split()) for text in cut.texts) == 200
    assert "" in cut.texts


def test_a_window_counts_from_one_and_includes_both_ends():
    documents = Documents(["a", "b"], texts=["one two three four", "one"])
    assert word_window(documents, (2, 3)).texts == ["two three", ""]
    assert word_window(documents, (1, 1)).texts == ["one", "one"]
    assert word_window(documents, None) is documents


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        ((0, 5), "got 0 and 5"),
        ((5, 4), "got 5 and 4"),
        ((1,), "two whole numbers"),
        ((1, 2, 3), "two whole numbers"),
        ((1.5, 2), "two whole numbers"),
        (7, "two whole numbers"),
    ],
)
def test_a_bad_window_is_refused(words, fact):
    with pytest.raises(InputError, match=f"`words`.*{fact}"):
        word_window(Documents(["a"], texts=["one"]), words)


def test_without_a_data_folder_the_sentence_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCSIGMA_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"`switchboard-asr`.*train-asr.jsonl.xz"):
        load_corpus("switchboard-asr")
