"""Tables as spreadsheets write them, folders with pictures in them, tables out."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from docsigma import InputError, load_model, read_documents
from running import refuse, run, succeed

ROWS = [
    ("1", "cats purr, dogs bark", "pets"),
    ("2", "stocks rise, bonds fall", "money"),
]


def table(path, mark=",", header=("id", "text", "label"), encoding="utf-8", times=5):
    with path.open("w", encoding=encoding, newline="") as handle:
        writer = csv.writer(handle, delimiter=mark)
        writer.writerow(header)
        writer.writerows(ROWS * times)
    return path


@pytest.fixture
def model(tmp_path, capsys):
    file = table(tmp_path / "train.csv")
    succeed(capsys, "fit", file, "--out", tmp_path / "model", "--components", 2)
    return tmp_path / "model"


@pytest.mark.parametrize(("mark", "given"), [(";", ";"), ("\t", "tab"), ("|", "|")])
def test_a_table_with_another_delimiter_is_read(tmp_path, mark, given):
    file = table(tmp_path / "own.csv", mark)
    found = read_documents(file, delimiter=given)
    assert found.texts[0] == ROWS[0][1]
    assert found.labels[1] == "money"


@pytest.mark.parametrize(
    ("mark", "said"), [(";", "semicolons"), ("\t", "tabs"), ("|", "bars")]
)
def test_a_wrong_delimiter_is_hinted_at(tmp_path, mark, said):
    file = table(tmp_path / "own.csv", mark)
    with pytest.raises(InputError, match=f"separated by {said}, set `delimiter`"):
        read_documents(file)
    file.write_text(f'"id"{mark}"text"\n"1"{mark}"sun"\n')
    with pytest.raises(InputError, match=f"separated by {said}"):
        read_documents(file)


def test_a_comma_in_a_column_of_the_right_table_is_no_hint(tmp_path):
    file = table(tmp_path / "own.csv", header=("id", "body; all", "label"))
    with pytest.raises(InputError, match=r"no column `text`, found .*`label`: set"):
        read_documents(file)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_another_case_of_a_column_is_hinted_at(tmp_path, suffix):
    file = tmp_path / f"own{suffix}"
    if suffix == ".csv":
        table(file, header=("id", "Text", "label"))
    elif suffix == ".jsonl":
        file.write_text(json.dumps({"Text": "sun"}))
    else:
        pa = pytest.importorskip("pyarrow")
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"Text": ["sun"]}), file)
    with pytest.raises(InputError, match="set `text_column` to `Text`"):
        read_documents(file)
    assert read_documents(file, text_column="Text").texts


def test_a_column_that_was_named_must_be_there(tmp_path):
    file = table(tmp_path / "own.csv")
    assert read_documents(file, label_column="id").labels[0] == "1"
    for name in ("label_column", "id_column"):
        with pytest.raises(InputError, match="no column `topic`, found `id`"):
            read_documents(file, **{name: "topic"})


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "utf-16"])
@pytest.mark.parametrize("suffix", [".csv", ".txt", ".jsonl"])
def test_another_encoding_is_read(tmp_path, encoding, suffix):
    file = tmp_path / f"own{suffix}"
    text = {"text": "café crème"}
    shown = {
        ".csv": "text\ncafé crème\n",
        ".txt": "café crème\n",
        ".jsonl": json.dumps(text, ensure_ascii=False) + "\n",
    }
    file.write_text(shown[suffix], encoding)
    assert read_documents(file, encoding=encoding).texts == ["café crème"]
    if encoding == "utf-16":
        # Its mark says so.
        assert read_documents(file).texts == ["café crème"]
        return
    with pytest.raises(InputError, match="set `encoding` to it, for example cp1252"):
        read_documents(file)


def test_encodings_that_do_not_fit_are_refused(tmp_path):
    file = tmp_path / "own.txt"
    file.write_bytes(b"sun\n\xff\xfe\n")
    with pytest.raises(InputError, match="there is no encoding 'klingon'"):
        read_documents(file, encoding="klingon")
    with pytest.raises(InputError, match="there is no encoding 'base64'"):
        read_documents(file, encoding="base64")
    with pytest.raises(InputError, match="not ascii"):
        read_documents(file, encoding="ascii")


@pytest.mark.parametrize("delimiter", ["", ";;", '"', "\n"])
def test_delimiters_that_cannot_be_are_refused(tmp_path, delimiter):
    with pytest.raises(InputError, match="must be one character"):
        read_documents(table(tmp_path / "own.csv"), delimiter=delimiter)
    (tmp_path / "own.txt").write_text("sun")
    with pytest.raises(InputError, match=r"is for \.csv and \.tsv"):
        read_documents(tmp_path / "own.txt", delimiter=";")


def test_a_folder_leaves_out_files_that_are_no_text(tmp_path):
    (tmp_path / "a.txt").write_text("sun")
    (tmp_path / "b.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    (tmp_path / "c.pdf").write_bytes(b"%PDF-1.7 all in letters")
    with pytest.warns(UserWarning, match=r"2 of 3 files are not text .*b\.png, c\.pdf"):
        found = read_documents(tmp_path)
    assert found.ids == ["a.txt"]
    (tmp_path / "a.txt").unlink()
    with pytest.raises(InputError, match="2 of 2 files are not text"):
        read_documents(tmp_path)


def test_the_command_line_reads_such_tables(tmp_path, capsys, model):
    file = table(tmp_path / "own.csv", ";", ("Id", "Text", "Label"), "cp1252")
    out = tmp_path / "e.csv"
    said = refuse(capsys, "embed", model, file, "--out", out)
    assert "semicolons" in said
    flags = ("--delimiter", ";", "--encoding", "cp1252")
    said = refuse(capsys, "embed", model, file, "--out", out, *flags)
    assert "set --text-column to `Text`" in said
    assert not out.exists()
    columns = ("--text-column", "Text", "--label-column", "Label", "--id-column", "Id")
    succeed(capsys, "embed", model, file, "--out", out, *flags, *columns)
    assert out.exists()
    counts = tmp_path / "counts"
    succeed(capsys, "count", file, "--out", counts, *flags, *columns)


def test_embeddings_as_csv_are_those_of_the_model(tmp_path, capsys, model):
    out = tmp_path / "e.csv"
    succeed(capsys, "embed", model, tmp_path / "train.csv", "--out", out)
    with out.open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert list(rows[0])[:3] == ["row", "id", "text"]
    assert list(rows[0])[3:6] == ["label", "mean[0]", "mean[1]"]
    smm = load_model(model)
    q = smm.posterior(smm.vocabulary_.count([row[1] for row in ROWS]).counts)
    for k in range(2):
        means = np.array([float(row[f"mean[{k}]"]) for row in rows[:2]])
        np.testing.assert_allclose(means, q.mean[:, k], rtol=1e-4, atol=1e-4)
        variances = np.array([float(row[f"variance[{k}]"]) for row in rows[:2]])
        np.testing.assert_allclose(variances, q.variance[:, k], rtol=1e-4)


def test_predictions_as_csv(tmp_path, capsys, model):
    file = tmp_path / "train.csv"
    succeed(capsys, "classifier", "fit", model, file, "--out", tmp_path / "clf")
    out = tmp_path / "p.csv"
    predict = ("classifier", "predict", tmp_path / "clf", file, "--probabilities")
    succeed(capsys, *predict, "--out", out)
    with out.open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert [row["id"] for row in rows[:2]] == ["1", "2"]
    for row in rows:
        chances = [float(row[f"probability[{name}]"]) for name in ("money", "pets")]
        assert sum(chances) == pytest.approx(1, abs=1e-6)
        assert float(row[f"probability[{row['predicted']}]"]) == max(chances)


def tuned(path):
    parameters = {"n_components": 3, "l1": 0.5, "prior_precision": 2.0}
    report = {"parameters": parameters, "solver": "fast", "seconds": 1.0}
    path.write_text(json.dumps(report))
    return path


def test_fit_takes_what_tune_wrote(tmp_path, capsys):
    file = table(tmp_path / "own.csv")
    config = tuned(tmp_path / "tuned.json")
    out = tmp_path / "m"
    succeed(capsys, "fit", file, "--out", out, "--config", config)
    made = load_model(out)
    assert (made.n_components, made.l1, made.prior_precision) == (3, 0.5, 2.0)
    args = ("fit", file, "--out", tmp_path / "x", "--config")
    (tmp_path / "other.json").write_text("{}")
    assert "is not a file of `docsigma tune`" in refuse(
        capsys, *args, tmp_path / "other.json"
    )


def test_stop_words_are_suggested_where_topics_are_full_of_them(tmp_path, capsys):
    file = tmp_path / "own.txt"
    # With its stop words left out each line still has a word of its own.
    lines = [f"the cat and the dog are {noun}" for noun in ["abc", "def", "ghi", "jkl"]]
    lines += [f"stocks of it and bonds {noun}" for noun in ["mno", "pqr", "stu", "vwx"]]
    file.write_text("\n".join(lines * 5))
    for words in ("english", None):
        out = tmp_path / str(words)
        flags = () if words is None else ("--stop-words", words)
        flags += ("--components", 2, "--l1", 0.01)
        succeed(capsys, "fit", file, "--out", out, *flags)
        _, shown, _ = run(capsys, "topics", out, file, "--clusters", 2)
        assert ("English stop words" in shown) == (words is None)
