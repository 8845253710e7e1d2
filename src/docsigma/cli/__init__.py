"""The command line: thin commands over the package."""

from __future__ import annotations
