from __future__ import annotations

import gzip
import sys

import pytest

from docsigma.corpora import read_documents
from docsigma.exceptions import InputError

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def write(tmp_path):
    def write(columns, name="w.parquet"):
        path = tmp_path / name
        parquet.write_table(pyarrow.table(columns), path)
        return path

    return write


def test_a_parquet_file_is_read(write):
    path = write({"text": ["sun", "rain"], "label": [1, 2], "more": [0.5, 0.5]})
    documents = read_documents(path)
    assert documents.texts == ["sun", "rain"]
    assert documents.labels == ["1", "2"]
    assert documents.ids == ["1", "2"]


def test_dictionary_columns_and_compressed_files_are_read(write):
    labels = pyarrow.array(["good", "bad", "good"]).dictionary_encode()
    path = write({"id": [7, 8, 9], "text": ["a", "b", "c"], "label": labels})
    packed = path.with_name("w.parquet.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    documents = read_documents(packed)
    assert documents.ids == ["7", "8", "9"]
    assert documents.labels == ["good", "bad", "good"]


@pytest.mark.parametrize(
    ("columns", "fact"),
    [
        ({"body": ["sun"], "label": [1]}, "no column `text`, found `body`, `label`"),
        ({"text": ["sun", None]}, "row 2: column `text` must be a string"),
        ({"text": [1, 2]}, "row 1: column `text` must be a string, got int"),
        ({"text": pyarrow.array([], "string")}, "has no documents"),
        ({"text": ["a"], "label": [[1]]}, "row 1: column `label` must be one value"),
    ],
)
def test_bad_columns_are_refused(write, columns, fact):
    path = write(columns)
    with pytest.raises(InputError, match=fact) as caught:
        read_documents(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"not a table at all", None])
def test_a_damaged_parquet_file_is_refused(write, content):
    path = write({"text": ["sun"] * 100})
    path.write_bytes(path.read_bytes()[:-20] if content is None else content)
    with pytest.raises(InputError, match=r"w.parquet: damaged Parquet"):
        read_documents(path)


def test_without_pyarrow_the_sentence_says_what_to_install(write, monkeypatch):
    path = write({"text": ["sun"]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"pip install docsigma\[tables\]"):
        read_documents(path)
