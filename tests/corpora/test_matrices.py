from __future__ import annotations

import gzip
import json
import lzma

import numpy as np
import pytest
import scipy.io
from scipy import sparse

from docsigma.corpora import read_documents
from docsigma.exceptions import InputError

COUNTS = np.array([[1, 0, 2], [0, 3, 0]])


@pytest.fixture
def npz(tmp_path):
    def npz(counts=COUNTS, container=sparse.csr_matrix):
        path = tmp_path / "weather.npz"
        sparse.save_npz(path, container(counts))
        return path

    return npz


def refusal(path, **options) -> str:
    with pytest.raises(InputError) as caught:
        read_documents(path, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    "container",
    [sparse.csr_matrix, sparse.csc_matrix, sparse.coo_array, sparse.csr_array],
)
def test_sparse_files_are_read_as_sorted_float32(npz, container):
    documents = read_documents(npz(container=container))
    assert documents.counts.toarray().tolist() == COUNTS.tolist()
    assert isinstance(documents.counts, sparse.csr_matrix)
    assert documents.counts.dtype == np.float32
    assert documents.counts.has_sorted_indices
    assert documents.ids == ["1", "2"]
    assert documents.words is None
    assert documents.labels is None


@pytest.mark.parametrize("pack", [None, gzip, lzma])
def test_matrix_market_files_are_read_plain_and_compressed(tmp_path, pack):
    path = tmp_path / "weather.mtx"
    scipy.io.mmwrite(path, sparse.coo_matrix(COUNTS))
    if pack is not None:
        packed = path.with_name(f"weather.mtx.{'gz' if pack is gzip else 'xz'}")
        packed.write_bytes(pack.compress(path.read_bytes()))
        path = packed
    (tmp_path / "weather.labels").write_text("good\nbad\n")
    documents = read_documents(path)
    assert documents.counts.toarray().tolist() == COUNTS.tolist()
    assert documents.labels == ["good", "bad"]


@pytest.mark.parametrize("name", ["vocab.txt", "vocabulary.txt", "weather.vocab"])
def test_a_vocabulary_beside_the_counts_is_found(npz, tmp_path, name):
    path = npz()
    (tmp_path / name).write_text("sun\nrain\nnew york\n")
    assert read_documents(path).words == ["sun", "rain", "new york"]


def test_the_given_vocabulary_wins_and_may_be_json(npz, tmp_path):
    path = npz()
    (tmp_path / "vocab.txt").write_text("sun\nrain\nhail\n")
    given = tmp_path / "words.json"
    given.write_text(json.dumps(["x", "y", "z"]))
    assert read_documents(path, vocabulary=given).words == ["x", "y", "z"]


@pytest.mark.parametrize(
    ("value", "fact"),
    [
        (-1.0, "has -1.0 in row 2, column 1, which is negative"),
        (np.nan, "has nan in row 2, column 1, which is not finite"),
        (np.inf, "has inf in row 2, column 1, which is not finite"),
        (0.5, "has 0.5 in row 2, column 1, which is not a whole number"),
    ],
)
def test_values_that_are_no_counts_are_named(npz, value, fact):
    counts = COUNTS.astype(float)
    counts[1, 0] = value
    path = npz(counts)
    assert refusal(path) == f"{path} {fact}"


def test_a_vocabulary_of_the_wrong_length_gives_both_numbers(npz, tmp_path):
    path = npz()
    (tmp_path / "vocab.txt").write_text("sun\nrain\n")
    assert "vocab.txt has 2 words but" in refusal(path)
    assert "has 3 columns" in refusal(path)


def test_labels_of_the_wrong_length_give_both_numbers(npz, tmp_path):
    path = npz()
    (tmp_path / "weather.labels").write_text("good\n")
    assert "weather.labels has 1 labels but" in refusal(path)
    assert "has 2 rows" in refusal(path)
    assert read_documents(path, label_column=None).labels is None


@pytest.mark.parametrize(
    ("name", "content", "fact"),
    [
        ("v.txt", "sun\nrain\nsun\n", "'sun' twice, as words 1 and 3"),
        ("v.txt", "sun\n\nrain\n", "'' as word 2"),
        ("v.txt", "", "no words"),
        ("v.json", '["sun", 7, "rain"]', "7 as word 2"),
        ("v.json", '{"sun": 1}', "a JSON list of words, got dict"),
        ("v.json", '["sun",\n', "line 2, column 1: broken JSON"),
    ],
)
def test_a_bad_vocabulary_is_refused(npz, tmp_path, name, content, fact):
    file = tmp_path / name
    file.write_text(content)
    sentence = refusal(npz(), vocabulary=file)
    assert str(file) in sentence
    assert fact in sentence


def test_a_missing_vocabulary_is_refused(npz, tmp_path):
    assert "no such file" in refusal(npz(), vocabulary=tmp_path / "none.txt")


def test_a_matrix_without_rows_has_no_documents(npz):
    assert "no documents: 0 rows and 3 columns" in refusal(npz(np.zeros((0, 3))))


@pytest.mark.parametrize("content", [b"", b"no archive", None])
def test_a_damaged_npz_is_refused(npz, content):
    path = npz()
    path.write_bytes(path.read_bytes()[:200] if content is None else content)
    assert f"cannot read {path}: " in refusal(path)


def test_a_flipped_byte_in_an_npz_never_passes_silently(npz):
    path = npz()
    whole = path.read_bytes()
    for place in range(0, len(whole), 37):
        path.write_bytes(
            whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :]
        )
        try:
            documents = read_documents(path)
        except InputError:
            continue
        assert documents.counts.toarray().tolist() == COUNTS.tolist()


def test_an_npz_of_dense_arrays_is_refused(tmp_path):
    path = tmp_path / "w.npz"
    np.savez(path, counts=COUNTS)
    assert "not what scipy.sparse.save_npz writes" in refusal(path)


def test_pickles_are_never_loaded(tmp_path):
    path = tmp_path / "w.npz"
    np.savez(path, format=np.array([{"a": 1}], dtype=object), shape=np.array([1, 1]))
    assert "pickled objects, which are never loaded" in refusal(path)


def test_indices_beyond_the_columns_are_refused(tmp_path):
    path = tmp_path / "w.npz"
    np.savez(
        path,
        format=b"csr",
        shape=np.array([1, 2]),
        data=np.array([1, 1]),
        indices=np.array([0, 10_000_000]),
        indptr=np.array([0, 2]),
    )
    assert str(path) in refusal(path)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "not a matrix\n",
        "%%MatrixMarket matrix coordinate integer general\n2 2 3\n1 1 4\n",
        "%%MatrixMarket matrix coordinate integer general\n2 2 1\n3 1 4\n",
        "%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 1 four\n",
    ],
)
def test_a_damaged_matrix_market_file_is_refused(tmp_path, content):
    path = tmp_path / "w.mtx"
    path.write_text(content)
    assert f"cannot read {path}: damaged MatrixMarket" in refusal(path)
