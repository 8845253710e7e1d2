"""Documents in blocks are the documents that reading all at once gives."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
import scipy.sparse as sp

from docsigma.corpora import files, read_documents
from docsigma.corpora.files import can_stream, iter_documents
from docsigma.exceptions import InputError

ROWS = [
    {
        "id": f"d{i}",
        "text": f"sun {i}, rain\n" * (i % 3),
        # Neither the first nor the last block of a few has one.
        "label": "good" if 3 < i < 7 else None,
    }
    for i in range(11)
]


@pytest.fixture(params=["jsonl", "jsonl.gz", "csv", "tsv", "txt", "parquet", "folder"])
def path(request, tmp_path):
    kind = request.param
    path = tmp_path / f"weather.{kind}"
    lines = "".join(json.dumps(row) + "\n\n" for row in ROWS)
    if kind == "jsonl":
        path.write_text(lines)
    elif kind == "jsonl.gz":
        path.write_bytes(gzip.compress(lines.encode()))
    elif kind in ("csv", "tsv"):
        import csv

        with path.open("w", newline="") as handle:
            delimiter = "\t" if kind == "tsv" else ","
            writer = csv.DictWriter(handle, list(ROWS[0]), delimiter=delimiter)
            writer.writeheader()
            writer.writerows(ROWS)
    elif kind == "txt":
        path.write_text("sun\n\nrain\r\n" * 5)
    elif kind == "parquet":
        pa = pytest.importorskip("pyarrow")
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(ROWS), path)
    else:
        for row in ROWS:
            file = path / (row["label"] or "") / row["id"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(row["text"])
        (path / ".hidden").write_text("no")
    return path


@pytest.mark.parametrize("size", [1, 3, 11, 100])
@pytest.mark.parametrize("labelled", ["label", None])
def test_blocks_together_are_all_documents(path, monkeypatch, size, labelled):
    monkeypatch.setattr(files, "BLOCK", size)
    assert can_stream(path)
    whole = read_documents(path, label_column=labelled)
    parts = list(iter_documents(path, label_column=labelled))
    assert max(map(len, parts)) <= size
    assert sum(map(len, parts)) == len(whole)
    assert [one for part in parts for one in part.ids] == whole.ids
    assert [text for part in parts for text in part.texts] == whole.texts
    if whole.labels is None:
        assert all(part.labels is None for part in parts)
    else:
        found = [one for part in parts for one in part.labels or [None] * len(part)]
        assert found == whole.labels
    assert parts[0].source == whole.source


def test_long_texts_make_blocks_of_fewer(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "BLOCK_CHARACTERS", 10)
    path = tmp_path / "weather.txt"
    path.write_text("sun sun\n" * 4)
    assert [len(block) for block in iter_documents(path)] == [2, 2]


BAD = {
    "empty.jsonl": b"",
    "blank.txt": b"\n \n",
    "empty.csv": b"",
    "broken.jsonl": b'{"text": "a"}\n{"text": \n',
    "list.jsonl": b'{"text": "a"}\n[1]\n',
    "half.jsonl": b'{"text": "a \\ud800"}\n',
    "number.jsonl": b'{"text": 7}\n',
    "columns.csv": b"body\nsun\n",
    "twice.csv": b"text,text\nsun,rain\n",
    "fields.csv": b"text,label\nsun,good\nrain\n",
    "quotes.tsv": b'text\n"sun" x\n',
    "latin.csv": b"text\ncaf\xe9\n",
    "cut.csv.gz": b"\x1f\x8b\x08\x00nonsense",
    "bad.parquet": b"PAR1 not",
}


@pytest.mark.parametrize("size", [1, 2, 100])
@pytest.mark.parametrize("name", BAD)
def test_refusals_are_the_same_sentence(tmp_path, monkeypatch, name, size):
    monkeypatch.setattr(files, "BLOCK", size)
    (tmp_path / name).write_bytes(BAD[name])
    with pytest.raises(InputError) as whole:
        read_documents(tmp_path / name)
    with pytest.raises(InputError) as parts:
        list(iter_documents(tmp_path / name))
    assert str(parts.value) == str(whole.value)


def test_refusals_of_folders_are_the_same_sentence(tmp_path):
    for make in (lambda: None, _latin(tmp_path)):
        make()
        sentences = []
        for read in (read_documents, lambda path: list(iter_documents(path))):
            with pytest.raises(InputError) as caught:
                read(tmp_path)
            sentences.append(str(caught.value))
        assert sentences[0] == sentences[1]


def _latin(folder):
    def make():
        (folder / "good").mkdir()
        (folder / "good" / "2").write_bytes(b"caf\xe9")

    return make


def test_what_has_no_texts_is_not_streamed(tmp_path):
    assert not can_stream("counts.npz")
    assert not can_stream("counts.mtx.gz")
    assert not can_stream("a\0b")
    with pytest.raises(InputError, match="there is no such file"):
        list(iter_documents(tmp_path / "nowhere.jsonl"))


def test_a_matrix_comes_in_blocks_too(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "BLOCK", 2)
    matrix = sp.csr_matrix(np.arange(15).reshape(5, 3))
    sp.save_npz(tmp_path / "counts.npz", matrix)
    (tmp_path / "counts.labels").write_text("a\n\nb\n \na\n")
    blocks = list(iter_documents(tmp_path / "counts.npz"))
    assert [len(block) for block in blocks] == [2, 2, 1]
    whole = sp.vstack([block.counts for block in blocks])
    np.testing.assert_array_equal(whole.toarray(), matrix.toarray())
    assert [one for block in blocks for one in block.labels] == [
        "a",
        None,
        "b",
        None,
        "a",
    ]
    assert [one for block in blocks for one in block.ids] == list("12345")
    together = read_documents(tmp_path / "counts.npz")
    np.testing.assert_array_equal(together.counts.toarray(), matrix.toarray())
    assert together.labels == ["a", None, "b", None, "a"]
