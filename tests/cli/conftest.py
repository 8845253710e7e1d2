from __future__ import annotations

import json

import pytest

from counting import TEXTS


@pytest.fixture
def documents(tmp_path):
    path = tmp_path / "documents.jsonl"
    rows = [
        {"id": f"d{i}", "text": text, "label": label}
        for i, (text, label) in enumerate(TEXTS)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path
