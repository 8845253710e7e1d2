"""docsigma.models."""

from __future__ import annotations
