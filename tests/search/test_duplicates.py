from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp

from docsigma import BayesianSMM, InputError, load_corpus
from docsigma.search.duplicates import find_duplicates
from running import refuse, succeed


@pytest.fixture(scope="module")
def model():
    counts = load_corpus("synthetic").train.counts
    return BayesianSMM(3, max_iter=20, random_state=0).fit(counts)


def overlap(x, y):
    return np.minimum(x, y).sum() / np.maximum(x, y).sum()


def test_planted_copies_are_found_and_nothing_else(model):
    counts = load_corpus("synthetic").test.counts.toarray()
    changed = counts[5].copy()
    changed[np.flatnonzero(changed)[0]] += 1
    rows = np.vstack([counts, counts[3], counts[3], changed, np.zeros_like(changed)])
    rows = np.vstack([rows, np.zeros_like(changed)])
    found = find_duplicates(model.posterior(sp.csr_matrix(rows)), rows)
    n = len(counts)
    assert found.pairs.tolist() == [[3, n], [3, n + 1], [5, n + 2]]
    assert found.similarities[:2].tolist() == [1.0, 1.0]
    assert found.similarities[2] == pytest.approx(overlap(counts[5], changed))
    assert found.extra.tolist() == [n, n + 1, n + 2]
    assert found.groups[[3, n, n + 1]].tolist() == [0, 0, 0]
    assert (found.groups >= 0).sum() == 5


def test_a_lower_threshold_finds_what_every_pair_shows(model):
    rows = load_corpus("synthetic").test.counts.toarray()[:40]
    found = find_duplicates(model.posterior(rows), rows, 0.4, n_neighbours=39)
    expected = [
        (a, b)
        for a in range(40)
        for b in range(a + 1, 40)
        if overlap(rows[a], rows[b]) >= 0.4
    ]
    assert [tuple(pair) for pair in found.pairs.tolist()] == expected


def test_wrong_arguments_are_refused(model):
    rows = load_corpus("synthetic").test.counts[:3]
    q = model.posterior(rows)
    with pytest.raises(InputError, match="`threshold` must be above 0"):
        find_duplicates(q, rows, 0.0)
    with pytest.raises(InputError, match="3 posteriors but counts of 2"):
        find_duplicates(q, rows[:2])


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
    assert rows[-1] == {"first": "d14", "second": "d15", "similarity": 1.0, "group": 4}
    assert rows[0] == {"first": "d0", "second": "d4", "similarity": 1.0, "group": 0}
    assert "--threshold" in refuse(capsys, *arguments, "--threshold", "2", "--force")
