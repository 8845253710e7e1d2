from __future__ import annotations

import csv
import gzip
import json
import lzma

import numpy as np
import pytest
from scipy import sparse

from docsigma.corpora import read_documents
from docsigma.counts import CountsWriter
from docsigma.exceptions import InputError

ROWS = [
    {"id": "a", "text": "sun", "label": "good"},
    {"id": "b", "text": "rain, rain", "label": "bad"},
]
AS_TEXT = {
    ".jsonl": "".join(json.dumps(row) + "\n" for row in ROWS),
    ".csv": 'id,text,label\na,sun,good\nb,"rain, rain",bad\n',
    ".tsv": "id\ttext\tlabel\na\tsun\tgood\nb\train, rain\tbad\n",
}
OPENERS = {"": open, ".gz": gzip.open, ".xz": lzma.open}


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        raw = content if isinstance(content, bytes) else content.encode()
        with OPENERS.get(path.suffix, open)(path, "wb") as stream:
            stream.write(raw)
        return path

    return write


def refusal(path, **options) -> str:
    with pytest.raises(InputError) as caught:
        read_documents(path, **options)
    sentence = str(caught.value)
    assert "\n" not in sentence
    return sentence


@pytest.mark.parametrize("compression", OPENERS)
@pytest.mark.parametrize("suffix", AS_TEXT)
def test_tables_are_read_plain_and_compressed(write, suffix, compression):
    path = write(f"weather{suffix}{compression}", AS_TEXT[suffix])
    documents = read_documents(path)
    assert documents.ids == ["a", "b"]
    assert documents.texts == ["sun", "rain, rain"]
    assert documents.labels == ["good", "bad"]
    assert documents.source == str(path)


def test_suffixes_are_known_in_any_case(write):
    assert len(read_documents(write("W.JSONL", AS_TEXT[".jsonl"]))) == 2


def test_columns_may_have_other_names(write):
    path = write("w.csv", "key,body,class\n7,sun,1\n")
    documents = read_documents(
        path, text_column="body", label_column="class", id_column="key"
    )
    assert (documents.ids, documents.labels) == (["7"], ["1"])


def test_without_id_and_label_columns_ids_are_line_numbers(write):
    path = write("w.jsonl", '{"text": "sun"}\n\n{"text": "rain"}\n')
    documents = read_documents(path)
    assert documents.ids == ["1", "3"]
    assert documents.labels is None


def test_json_scalars_become_strings(write):
    lines = [
        {"text": "a", "id": 7, "label": True},
        {"text": "b", "id": 1.5, "label": 2},
        {"text": "c", "id": None, "label": "x"},
    ]
    path = write("w.jsonl", "\n".join(map(json.dumps, lines)))
    documents = read_documents(path)
    assert documents.ids == ["7", "1.5", "3"]
    assert documents.labels == ["true", "2", "x"]


PARTLY = [
    {"text": "a", "label": "good"},
    {"text": "b", "label": ""},
    {"text": "c", "label": None},
    {"text": "d", "label": "  "},
    {"text": "e", "label": "bad"},
]


def write_rows(path, rows):
    """Write texts and labels in the format of the suffix."""
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix in (".csv", ".tsv"):
        with path.open("w", newline="") as handle:
            delimiter = "\t" if path.suffix == ".tsv" else ","
            writer = csv.DictWriter(handle, ["text", "label"], delimiter=delimiter)
            writer.writeheader()
            writer.writerows(rows)
    elif path.suffix == ".parquet":
        pa = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".npz":
        sparse.save_npz(path, sparse.csr_matrix(np.ones((len(rows), 2))))
        lines = [(row["label"] or "") + "\n" for row in rows]
        path.with_suffix(".labels").write_text("".join(lines))
    else:
        for row in rows:
            label = (row["label"] or "").strip()
            (path / label).mkdir(parents=True, exist_ok=True)
            (path / label / row["text"]).write_text(row["text"])
    return path


FORMATS = ["w.jsonl", "w.csv", "w.tsv", "w.parquet", "w.npz", "folder"]


@pytest.mark.parametrize("name", FORMATS)
def test_blank_and_null_labels_are_missing_in_every_format(tmp_path, name):
    documents = read_documents(write_rows(tmp_path / name, PARTLY))
    some, labels = documents.labelled()
    assert len(documents) == 5
    assert sorted(labels) == ["bad", "good"]
    assert len(some) == 2
    if name == "folder":
        assert documents.ids == ["b", "bad/e", "c", "d", "good/a"]
        assert documents.labels == [None, "bad", None, None, "good"]
    else:
        assert documents.labels == ["good", None, None, None, "bad"]
    unread = read_documents(tmp_path / name, label_column=None)
    assert unread.labels is None
    assert len(unread) == 5


@pytest.mark.parametrize("name", FORMATS)
def test_labels_that_are_all_blank_are_no_labels(tmp_path, name):
    documents = read_documents(write_rows(tmp_path / name, PARTLY[1:4]))
    assert documents.labels is None
    with pytest.raises(InputError, match="none of the 3 documents of .* has a label"):
        documents.labelled()


def test_a_blank_id_is_the_number_of_the_line(write):
    path = write("w.csv", "id,text\na,sun\n,rain\n")
    assert read_documents(path).ids == ["a", "3"]


def test_a_folder_of_counts_is_refused(tmp_path):
    with CountsWriter(tmp_path / "counts", 2) as writer:
        writer.add(sparse.csr_matrix([[1, 2]]))
    sentence = refusal(tmp_path / "counts")
    assert "is a folder of counts" in sentence
    assert "DiskCounts" in sentence


def test_a_byte_order_mark_is_no_part_of_a_column_name(write):
    path = write("w.csv", b"\xef\xbb\xbftext,label\r\nsun,good\r\n")
    documents = read_documents(path)
    assert (documents.texts, documents.labels) == (["sun"], ["good"])


def test_unicode_line_separators_stay_in_a_text(write):
    path = write("w.txt", "sun\u2028shine\nrain\x0c\n")
    assert read_documents(path).texts == ["sun\u2028shine", "rain\x0c"]


def test_quoted_fields_hold_line_ends_and_long_texts(write):
    long = "rain " * 60_000
    path = write("w.csv", f'text\n"sun\nshine"\n{long}\n')
    documents = read_documents(path)
    assert documents.texts == ["sun\nshine", long]
    # The line break starts no row, as in a spreadsheet.
    assert documents.ids == ["2", "3"]
    assert documents.rows == [2, 3]


def test_lines_of_a_text_file_are_documents_even_if_empty(write):
    documents = read_documents(write("w.txt.gz", "sun\r\n\nrain"))
    assert documents.texts == ["sun", "", "rain"]
    assert documents.ids == ["1", "2", "3"]
    assert documents.labels is None


def test_a_folder_is_read_sorted_with_subfolders_as_labels(write, tmp_path):
    write("bad/2.txt", "rain")
    write("bad/1.txt", "hail")
    write("good/deep/3", "sun")
    write("good/.hidden", "no")
    documents = read_documents(tmp_path)
    assert documents.ids == ["bad/1.txt", "bad/2.txt", "good/deep/3"]
    assert documents.texts == ["hail", "rain", "sun"]
    assert documents.labels == ["bad", "bad", "good"]


def test_a_flat_folder_has_no_labels(write, tmp_path):
    write("1.txt", "sun")
    assert read_documents(tmp_path).labels is None


def test_a_folder_file_that_is_not_utf8_is_named(write, tmp_path):
    write("1.txt", b"sun\nca\xe9")
    sentence = refusal(tmp_path)
    assert "1.txt, line 2, byte 7" in sentence
    assert "0xe9" in sentence


def test_an_empty_folder_is_refused(tmp_path):
    assert "no documents" in refusal(tmp_path)


def test_a_missing_file_is_named(tmp_path):
    assert f"{tmp_path / 'no.jsonl'}: there is no such file" in refusal(
        tmp_path / "no.jsonl"
    )


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".tsv", ".txt", ".jsonl.gz"])
@pytest.mark.parametrize("content", ["", "\n\n"])
def test_a_file_without_documents_is_refused(write, suffix, content):
    path = write(f"w{suffix}", content)
    assert refusal(path) == f"{path} has no documents"


def test_a_table_of_a_header_alone_has_no_documents(write):
    assert "has no documents" in refusal(write("w.csv", "text,label\n"))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("w.jsonl", '{"body": "sun", "class": 1}\n'),
        ("w.csv", "body,class\nsun,1\n"),
        ("w.tsv", "body\tclass\nsun\t1\n"),
    ],
)
def test_a_missing_text_column_lists_the_columns_found(write, name, content):
    sentence = refusal(write(name, content))
    assert "line 1: no column `text`, found `body`, `class`" in sentence


@pytest.mark.parametrize(
    ("line", "fact"),
    [
        ('{"text": "su', "line 2, column 10: broken JSON"),
        ('["text"]', "line 2: must be a JSON object, got list"),
        ('{"text": 3}', "line 2: column `text` must be a string, got int"),
        ('{"text": null}', "line 2: column `text` must be a string, got NoneType"),
        ('{"text": "b", "label": [1]}', "line 2: column `label` must be one value"),
        ('{"text": "b", "id": {}}', "line 2: column `id` must be one value, got dict"),
        ('{"text": "\\ud800"}', "line 2: column `text` has half of a surrogate"),
        ("[" * 100_000, "line 2: JSON that cannot be read"),
        ("1" * 5000, "line 2: JSON that cannot be read"),
    ],
)
def test_a_bad_json_line_is_named(write, line, fact):
    path = write("w.jsonl", '{"text": "a"}\n' + line + "\n")
    assert f"{path}, {fact}" in refusal(path)


def test_a_whole_surrogate_pair_is_read(write):
    path = write("w.jsonl", '{"text": "\\ud83c\\udf27"}\n')
    assert read_documents(path).texts == ["\U0001f327"]


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".txt"])
def test_bytes_that_are_not_utf8_are_named(write, suffix):
    path = write(f"w{suffix}", b"\n\nca\xe9\n")
    assert f"{path}, line 3, byte 3: not UTF-8 (0xe9)" in refusal(path)


@pytest.mark.parametrize(
    ("content", "fact"),
    [
        ("text,label\nsun,1\nrain\n", "line 3: 1 fields, but the header names 2 col"),
        ('text,label\n"a\nb",1\nx,1,2\n', "line 4: 3 fields, but the header names 2"),
        ('text\nsun\n"rain\nhail\n', 'line 3: a quote (") opens in this row'),
        ('text\n"sun" shine\n', "line 2:"),
        ("text,text\nsun,rain\n", "line 1: the header names `text` more than once"),
    ],
)
def test_a_bad_table_line_is_named(write, content, fact):
    path = write("w.csv", content)
    assert f"{path}, {fact}" in refusal(path)


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_a_truncated_file_is_refused(write, suffix):
    path = write(f"w.jsonl{suffix}", AS_TEXT[".jsonl"] * 50)
    path.write_bytes(path.read_bytes()[:-12])
    sentence = refusal(path)
    assert str(path) in sentence
    assert "too early" in sentence


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_a_file_that_is_not_compressed_as_its_suffix_says_is_refused(tmp_path, suffix):
    path = tmp_path / f"w.csv{suffix}"
    path.write_text(AS_TEXT[".csv"])
    assert f"{path}: it is damaged or not a {suffix} file" in refusal(path)


@pytest.mark.parametrize("name", ["w.docx", "w", "w.docx.gz"])
def test_an_unknown_suffix_lists_the_known_ones(write, name):
    sentence = refusal(write(name, "sun"))
    assert "unknown suffix" in sentence
    assert ".jsonl, .csv, .tsv, .parquet, .txt, .mtx, .npz" in sentence


def test_a_vocabulary_for_texts_is_refused(write):
    path = write("w.txt", "sun")
    assert "`vocabulary` names the columns of counts" in refusal(path, vocabulary="v")


def test_a_path_that_no_system_has_is_refused():
    assert "cannot read" in refusal("we\0ather.txt")
