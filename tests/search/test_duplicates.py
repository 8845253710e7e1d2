from __future__ import annotations

import json

import numpy as np
import pytest

from docsigma import InputError, load_corpus
from docsigma.search.duplicates import find_duplicates
from running import refuse, succeed


def overlap(x, y):
    return np.minimum(x, y).sum() / np.maximum(x, y).sum()


def test_planted_copies_are_found_and_nothing_else():
    counts = load_corpus("synthetic").test.counts.toarray()
    changed = counts[5].copy()
    changed[np.flatnonzero(changed)[0]] += 1
    rows = np.vstack([counts, counts[3], counts[3], changed, np.zeros_like(changed)])
    rows = np.vstack([rows, np.zeros_like(changed)])
    found = find_duplicates(rows)
    n = len(counts)
    assert found.pairs.tolist() == [[3, n], [3, n + 1], [5, n + 2]]
    assert found.similarities[:2].tolist() == [1.0, 1.0]
    assert found.similarities[2] == pytest.approx(overlap(counts[5], changed))
    assert found.extra.tolist() == [n, n + 1, n + 2]
    assert found.groups[[3, n, n + 1]].tolist() == [0, 0, 0]
    assert (found.groups >= 0).sum() == 5


@pytest.mark.parametrize("threshold", [0.4, 0.25, 1 / 3])
def test_every_pair_of_that_overlap_is_found(threshold):
    rows = load_corpus("synthetic").test.counts.toarray()[:40]
    found = find_duplicates(rows, threshold)
    expected = [
        (a, b)
        for a in range(40)
        for b in range(a + 1, 40)
        if overlap(rows[a], rows[b]) >= threshold
    ]
    assert [tuple(pair) for pair in found.pairs.tolist()] == expected


def test_wrong_arguments_are_refused():
    with pytest.raises(InputError, match="`threshold` must be above 0"):
        find_duplicates(np.eye(3), 0.0)


def test_no_member_is_less_alike_its_representative_than_the_threshold():
    random = np.random.default_rng(0)
    # Each document is the one before with one word of ten replaced: a chain.
    words = np.zeros((40, 200), dtype=int)
    words[0, :10] = 1
    for row in range(1, 40):
        words[row] = words[row - 1]
        words[row, random.choice(np.flatnonzero(words[row]))] -= 1
        words[row, 10 + row] += 1
    rows = np.vstack([words, words[[5, 20, 39]]])
    found = find_duplicates(rows, 0.65)
    assert len(np.unique(found.groups)) > 5
    for number in range(found.groups.max() + 1):
        first, *others = np.flatnonzero(found.groups == number)
        assert others
        assert all(overlap(rows[first], rows[other]) >= 0.65 for other in others)
    # Equal documents are in one group.
    assert found.groups[[5, 20, 39]].tolist() == found.groups[40:].tolist()


def test_command_writes_pairs(tmp_path, capsys):
    pytest.importorskip("typer")
    texts = ["sun and rain", "wind and snow", "bread and salt", "salt and milk"] * 3
    # The model knows no number and no word that comes once; a reader does.
    texts += ["salt for 12", "salt for 990", "zork blip", "zork blip!", "", ""]
    docs = tmp_path / "docs.jsonl"
    lines = [json.dumps({"id": f"d{i}", "text": t}) for i, t in enumerate([*texts])]
    docs.write_text("\n".join(lines))
    model, out = tmp_path / "model", tmp_path / "pairs.jsonl"
    succeed(capsys, "fit", docs, "--out", model, "--components", "2", "--quiet")
    arguments = ("duplicates", model, docs, "--out", out)
    report = json.loads(succeed(capsys, *arguments, "--json"))
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert report["n_pairs"] == len(rows) == 9
    assert report["n_extra"] == 9
    assert {"d12", "d13"}.isdisjoint(row["first"] for row in rows)
    last = {"first": "d14", "second": "d15", "similarity": 1.0, "group": 4}
    last |= {"first_row": 15, "second_row": 16}
    last |= {"first_text": "zork blip", "second_text": "zork blip!"}
    assert rows[-1] == last
    first = {"first": "d0", "second": "d4", "similarity": 1.0, "group": 0}
    assert first.items() <= rows[0].items()
    assert "--threshold" in refuse(capsys, *arguments, "--threshold", "2", "--force")
