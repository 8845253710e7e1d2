"""Searches on calls: windows of words, and parts that share calls."""

from __future__ import annotations

import json

import pytest

from docsigma import load_corpus
from docsigma.cli._tune import divide
from running import refuse, succeed


@pytest.mark.usefixtures("data_folder")
def test_the_command_searches_in_a_window(tmp_path, capsys):
    out = tmp_path / "found.json"
    options = ("--objective", "perplexity", "--components", "2", "--trials", 1)
    asked = ("tune", "switchboard", "--out", out, *options, "--words")
    assert "1 <= first <= last, got 5 and 2" in refuse(capsys, *asked, "5,2")
    assert list(tmp_path.iterdir()) == []
    succeed(capsys, *asked, "201,210")
    assert json.loads(out.read_text())["words"] == [201, 210]


@pytest.mark.usefixtures("data_folder")
@pytest.mark.parametrize(
    ("hold_out", "close", "of"), [("latest", 12, 230), ("random", 193, 231)]
)
def test_the_latest_sides_have_few_other_sides_in_training(hold_out, close, of):
    # As docs/reproduced.md says.
    train = load_corpus("switchboard").train
    calls = [name.rsplit("-", 1)[0] for name in train.ids]
    seen, unseen = divide(len(calls), train.labels, 0.2, hold_out, 0)
    known = {calls[row] for row in seen}
    assert (sum(calls[row] in known for row in unseen), len(unseen)) == (close, of)
