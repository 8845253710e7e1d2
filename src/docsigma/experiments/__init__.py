"""The paper's tables and figures, and the demo: recipes that read as such."""

from __future__ import annotations
