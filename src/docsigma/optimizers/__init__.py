"""Gradient ascent on tensors: Adam, orthant-wise Adam and proximal Adam."""

from __future__ import annotations

from docsigma.optimizers.adam import Adam, Optimizer, OrthantAdam, pseudo_gradient
from docsigma.optimizers.proximal_adam import ProximalAdam

__all__ = ["Adam", "Optimizer", "OrthantAdam", "ProximalAdam", "pseudo_gradient"]
