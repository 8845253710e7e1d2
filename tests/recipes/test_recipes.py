"""The recipes of docs/interchange.md, run with the real systems.

Outside `make test`: `make test-recipes` installs what they need and runs them.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from docsigma import distances

PAGE = Path(__file__).parents[2] / "docs" / "interchange.md"
BLOCKS = re.findall(r"^```py\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)

pytestmark = [
    pytest.mark.recipes,
    # What the systems themselves warn of is not ours.
    pytest.mark.filterwarnings("ignore"),
]


def test_every_system_finds_what_the_library_finds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for block in BLOCKS:
        exec(compile(block, str(PAGE), "exec"), names)
    asked = names["embedder"].posterior(["rain and sun"])
    exact = distances.wasserstein2(asked, names["q"])[0]
    best = np.sort(exact)[:5]
    found = {
        "duckdb": [row[1] for row in names["found"]],
        "polars": names["nearest"]["wasserstein2"].to_list(),
        "qdrant": [point.score for point in names["points"]],
        "lancedb": [row["_distance"] ** 0.5 for row in names["rows"]],
    }
    # float32 vectors of length 1 or so; squares are compared by LanceDB.
    for name, values in found.items():
        np.testing.assert_allclose(values, best, atol=1e-3, err_msg=name)
    ids = [int(row[0]) for row in names["found"]]
    np.testing.assert_allclose(exact[ids], best, atol=1e-6)
