"""Fixtures that every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# Before torch loads: workers of pytest-xdist share the cores, and processes that tests
# start inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Return the folder of the corpora, or skip where there is none."""
    root = os.environ.get("DOCSIGMA_DATA", "")
    if not root:
        pytest.skip("DOCSIGMA_DATA is not set: it names the folder of the corpora")
    folder = Path(root)
    if not folder.is_dir():
        pytest.skip(f"DOCSIGMA_DATA is {root}, which is not a folder")
    return folder
