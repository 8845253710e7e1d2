"""docsigma.experiments."""

from __future__ import annotations
