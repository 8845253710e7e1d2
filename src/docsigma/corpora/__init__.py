"""docsigma.corpora."""

from __future__ import annotations
