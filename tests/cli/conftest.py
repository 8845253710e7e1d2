from __future__ import annotations

import pytest

from counting import TEXTS, write_documents


@pytest.fixture
def documents(tmp_path):
    return write_documents(tmp_path / "documents.jsonl", TEXTS)
