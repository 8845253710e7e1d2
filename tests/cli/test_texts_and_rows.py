"""What the commands write and show: texts, and rows that a person can look up."""

from __future__ import annotations

import csv
import json

import pytest

from counting import TEXTS, write_documents
from running import refuse, run, succeed

FIT = ("--components", 2, "--max-iter", 2, "--min-df", 1, "--quiet")


@pytest.fixture
def table(tmp_path):
    """Twelve documents of three texts; one has a line break, and a row is blank."""
    texts = ["cats purr\nand cats sleep", "stocks rise, bonds fall", "bread and butter"]
    with (tmp_path / "table.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "text"])
        for number in range(12):
            if number == 6:
                file.write("\n")
            writer.writerow([f"t{number}", texts[number % 3]])
    return tmp_path / "table.csv"


@pytest.fixture
def model(table, tmp_path, capsys):
    succeed(capsys, "fit", table, "--out", tmp_path / "model", *FIT)
    return tmp_path / "model"


def test_rows_are_those_of_a_spreadsheet(model, table, tmp_path, capsys):
    out = tmp_path / "out.jsonl"
    succeed(capsys, "embed", model, table, "--id-column", "name", "--out", out)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["id"] for row in rows] == [f"t{number}" for number in range(12)]
    # The header is row 1, and the blank row after the sixth document counts.
    assert [row["row"] for row in rows] == [*range(2, 8), *range(9, 15)]
    assert rows[0]["text"] == "cats purr\nand cats sleep"
    succeed(capsys, "embed", model, table, "--out", out, "--force", "--no-text")
    first = json.loads(out.read_text().splitlines()[7])
    assert "text" not in first
    # Without ids the row is the id.
    assert (first["row"], first["id"]) == (10, "10")


def test_duplicates_and_clusters_have_rows_and_texts(model, table, tmp_path, capsys):
    out = tmp_path / "pairs.csv"
    succeed(capsys, "duplicates", model, table, "--out", out)
    with out.open(newline="") as file:
        first = next(csv.DictReader(file))
    assert first["first_text"] == first["second_text"]
    assert int(first["second_row"]) > int(first["first_row"]) >= 2


def test_topics_of_fewer_texts_than_groups(model, table, capsys):
    code, out, err = run(capsys, "topics", model, table, "--clusters", 5)
    assert code == 0
    assert err == (
        f"docsigma: {table} makes 3 groups and not 5: it has only 3 documents "
        "with different words\n"
    )
    # A piece of the text, and the id.
    assert "stocks rise, bonds fall" in " ".join(out.split())
    found = json.loads(
        run(capsys, "topics", model, table, "--clusters", 5, "--json")[1]
    )
    assert sum(cluster["size"] for cluster in found["clusters"]) == 12
    assert len(found["clusters"]) <= 3


def test_utf_16_is_recognised_by_its_mark(model, tmp_path, capsys):
    for name, text in {"a.csv": "text\ncafé cats\n", "a.txt": "café cats\n"}.items():
        (tmp_path / name).write_text(text, encoding="utf-16")
        out = tmp_path / f"{name}.jsonl"
        succeed(capsys, "embed", model, tmp_path / name, "--out", out)
        assert json.loads(out.read_text())["text"] == "café cats"
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.txt").write_text("café cats", encoding="utf-16")
    out = tmp_path / "folder.jsonl"
    succeed(capsys, "embed", model, tmp_path / "folder", "--out", out)
    row = json.loads(out.read_text())
    assert (row["text"], row["id"], "row" in row) == ("café cats", "a.txt", False)


def test_an_index_is_described_and_grows(model, tmp_path, capsys):
    write_documents(tmp_path / "docs.jsonl", TEXTS)
    more = tmp_path / "more.jsonl"
    more.write_text(json.dumps({"id": "new", "text": "cats and cats"}) + "\n")
    index = tmp_path / "index"
    succeed(capsys, "index", model, tmp_path / "docs.jsonl", "--out", index)
    report = json.loads(succeed(capsys, "add", index, more, "--json"))
    assert (report["n_added"], report["n_documents"]) == (1, 26)
    about = json.loads(succeed(capsys, "info", index, "--json"))
    assert (about["kind"], about["n_documents"], about["n_labelled"]) == (
        "index",
        26,
        25,
    )
    assert "26" in succeed(capsys, "info", index)
    assert "new" in succeed(capsys, "search", index, "cats and cats")
    said = refuse(capsys, "add", index, more)
    assert "already has 1 of the ids" in said
    assert json.loads(succeed(capsys, "info", index, "--json"))["n_documents"] == 26
    counts = tmp_path / "counts"
    succeed(capsys, "count", tmp_path / "docs.jsonl", "--out", counts)
    assert json.loads(succeed(capsys, "info", counts, "--json"))["kind"] == "counts"


def test_drift_shows_the_texts_that_nothing_explains(tmp_path, capsys):
    words = {"a": "cats dogs mice birds", "b": "stocks bonds loans funds"}
    strange = "bread butter cheese wine"

    def rows(names, n):
        for row in range(n):
            text = " ".join([names[row % len(names)]] * (10 + row % 5))
            yield json.dumps({"id": f"d{row}", "text": text}) + "\n"

    old, new, every = (tmp_path / f"{name}.jsonl" for name in ("old", "new", "all"))
    old.write_text("".join(rows(list(words.values()), 80)))
    new.write_text("".join(rows([*words.values(), strange], 60)))
    every.write_text(old.read_text() + new.read_text())
    model = tmp_path / "model"
    succeed(capsys, "fit", every, "--out", model, "--components", 3, "--quiet")
    said = succeed(capsys, "drift", model, old, new, "--topics", 2)
    shown = said[said.index("Least like the old ones:") :].splitlines()[1:6]
    assert all("bread butter cheese" in line for line in shown)
    assert all("(d" in line for line in shown)
