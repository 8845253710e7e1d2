from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from docsigma.corpora import Documents
from docsigma.exceptions import InputError


def weather() -> Documents:
    return Documents(
        ["a", "b", "c"],
        counts=sparse.csr_matrix([[1, 0], [0, 2], [3, 3]]),
        labels=["x", "y", "z"],
        words=["sun", "rain"],
        source="weather",
    )


@pytest.mark.parametrize(
    ("index", "ids"),
    [
        (slice(1, None), ["b", "c"]),
        (slice(None, None, -1), ["c", "b", "a"]),
        (slice(0, 0), []),
        ([2, 0, 2], ["c", "a", "c"]),
        (np.array([-1]), ["c"]),
        (np.array([True, False, True]), ["a", "c"]),
        ([], []),
    ],
)
def test_slices_and_arrays_choose_documents(index, ids):
    chosen = weather()[index]
    assert chosen.ids == ids
    assert len(chosen) == len(ids)
    rows = [["a", "b", "c"].index(name) for name in ids]
    assert chosen.labels == [["x", "y", "z"][row] for row in rows]
    assert chosen.counts.shape == (len(ids), 2)
    assert (chosen.counts.toarray() == weather().counts.toarray()[rows]).all()
    assert chosen.words == ["sun", "rain"]
    assert chosen.source == "weather"


def test_texts_are_chosen_too():
    documents = Documents(["a", "b"], texts=["sun", "rain"])
    assert documents[[1]].texts == ["rain"]
    assert documents[[1]].counts is None


@pytest.mark.parametrize("index", [1, [0.5], [[0]], "a"])
def test_other_indices_are_refused(index):
    with pytest.raises(TypeError, match="slice"):
        weather()[index]


def test_an_index_out_of_range_is_refused():
    with pytest.raises(IndexError):
        weather()[[3]]


COUNTS = sparse.csr_matrix([[1, 0]])


@pytest.mark.parametrize(
    ("fields", "fact"),
    [
        ({}, "got neither"),
        ({"texts": ["sun"], "counts": COUNTS}, "got both"),
        ({"texts": ["sun", "rain"]}, "1 ids but 2 texts"),
        ({"texts": ["sun"], "labels": []}, "1 ids but 0 labels"),
        ({"counts": sparse.csr_matrix([[1], [2]])}, "1 ids but 2 rows"),
        ({"counts": COUNTS, "words": ["sun"]}, "1 words but 2 columns"),
        ({"counts": COUNTS, "words": ["sun", "sun"]}, "'sun' twice"),
        ({"texts": ["sun"], "words": ["sun"]}, "got texts"),
        ({"counts": COUNTS.tocoo()}, "csr_matrix, got coo_matrix"),
        ({"counts": COUNTS.toarray()}, "csr_matrix, got ndarray"),
    ],
)
def test_fields_that_do_not_fit_are_refused(fields, fact):
    with pytest.raises(InputError, match=f"of here.*{fact}"):
        Documents(["a"], source="here", **fields)
