"""Numbers that say how good a model is."""

from __future__ import annotations

from docsigma.metrics.perplexity import Perplexity, perplexity

__all__ = ["Perplexity", "perplexity"]
