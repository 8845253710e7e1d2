"""docsigma.classifiers."""

from __future__ import annotations
