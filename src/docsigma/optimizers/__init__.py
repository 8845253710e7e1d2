"""Ascent on tensors: Adam, Adam with exact zeros, and its proximal form."""

from __future__ import annotations

from docsigma.optimizers.adam import Adam, OrthantAdam, pseudo_gradient
from docsigma.optimizers.proximal_adam import ProximalAdam

__all__ = ["Adam", "OrthantAdam", "ProximalAdam", "pseudo_gradient"]
