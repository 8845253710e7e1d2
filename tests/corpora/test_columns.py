"""Columns of texts from tables of every kind."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from docsigma.corpora.files import read_columns
from docsigma.exceptions import InputError

ROWS = [("sun", "Sonne"), ("rain", None), ("wind and\nrain", "Wind")]
WANTED = {"en": ["sun", "rain", "wind and\nrain"], "de": ["Sonne", "", "Wind"]}


def write(folder, suffix):
    file = folder / f"rows{suffix}"
    table = pd.DataFrame(ROWS, columns=["en", "de"])
    if suffix == ".jsonl":
        lines = [json.dumps(dict(zip(("en", "de"), row, strict=True))) for row in ROWS]
        file.write_text("\n".join(lines), "utf-8")
    elif suffix == ".parquet":
        table.to_parquet(file)
    else:
        table.to_csv(file, sep="\t" if ".tsv" in suffix else ",", index=False)
    return file


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet", ".csv.gz"])
def test_missing_texts_are_empty(tmp_path, suffix):
    assert read_columns(write(tmp_path, suffix), ["en", "de"], texts=True) == WANTED


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_column_that_is_not_there_is_named(tmp_path, suffix):
    with pytest.raises(InputError, match=r"fr(?=.*en)(?=.*de)"):
        read_columns(write(tmp_path, suffix), ["en", "fr"], texts=True)


def test_what_is_no_table_of_texts_is_refused(tmp_path):
    (tmp_path / "rows.txt").write_text("sun\n", "utf-8")
    with pytest.raises(InputError, match="is none"):
        read_columns(tmp_path / "rows.txt", ["en"], texts=True)
    with pytest.raises(InputError, match="is none"):
        read_columns(tmp_path, ["en"], texts=True)
    file = tmp_path / "rows.jsonl"
    file.write_text('{"en": "sun"}\n{"en": 3}\n', "utf-8")
    with pytest.raises(InputError, match=r"line 2: column `en` must be a string"):
        read_columns(file, ["en"], texts=True)
