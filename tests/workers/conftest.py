from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def texts(docstrings):
    return [str(text) for text in docstrings.train.texts[:400]]


@pytest.fixture(scope="module")
def write_raw(texts):
    """Return a function that writes the texts to four Parquet files of a folder."""
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")

    def write(folder):
        folder.mkdir()
        for start in range(0, 400, 100):
            part = {"id": [f"d{i}" for i in range(start, start + 100)]}
            part["text"] = texts[start : start + 100]
            pq.write_table(pa.table(part), folder / f"part-{start // 100}.parquet")

    return write
