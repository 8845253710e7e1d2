"""A corpus made ready for a person to look at, label and compare."""

from __future__ import annotations
