"""Groups of documents, found from their embeddings without labels."""

from __future__ import annotations
