"""docsigma.inference."""

from __future__ import annotations
