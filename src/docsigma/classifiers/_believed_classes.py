"""Gaussian classes under several beliefs in how much a word counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from docsigma.classifiers._class_gaussians import ClassGaussians, fit_classes, overall
from docsigma.classifiers.settings import BELIEFS

if TYPE_CHECKING:
    from torch import Tensor

    from docsigma._array_checks import Floats
    from docsigma.classifiers._factors import Factors, Information


@dataclass(frozen=True)
class BelievedClasses:
    """Gaussian classes, learned once for each belief in how much a word counts.

    `log_prior` are the classes' priors, and `centre` is the mean of all embeddings.
    """

    beliefs: tuple[float, ...]
    classes: list[ClassGaussians]
    log_prior: Tensor
    centre: Tensor

    @classmethod
    def fit(
        cls,
        information: Information,
        factors: Factors,
        known: Tensor,
        unknown: Tensor,
        log_prior: Tensor,
    ) -> BelievedClasses:
        """Learn from documents, of which some have a label.

        The arguments are those of :func:`fit_classes`.
        """
        everything = overall(information, factors, known.sum(dim=1) + unknown)
        beliefs = BELIEFS if unknown.any() else (1.0,)
        classes = [
            fit_classes(
                information,
                factors.times(belief),
                known,
                unknown,
                log_prior,
                everything,
            )
            for belief in beliefs
        ]
        return cls(beliefs, classes, log_prior, everything[0])

    def log_likelihoods(self, factors: Factors) -> Tensor:
        """Return log likelihoods of the classes, up to a constant per document.

        Under several beliefs they are those that give the mean of the probabilities.
        """
        found = [
            each.scores(factors.times(belief))
            for belief, each in zip(self.beliefs, self.classes, strict=True)
        ]
        if len(found) == 1:
            return found[0]
        proba = (torch.stack(found) + self.log_prior).softmax(dim=2).mean(dim=0)
        # Not even a class that every belief rules out has the probability 0.
        return proba.clamp(min=torch.finfo(proba.dtype).tiny).log() - self.log_prior

    def log_proba(self, factors: Factors) -> Floats:
        """Return log probabilities of the classes."""
        scores = self.log_likelihoods(factors) + self.log_prior
        return np.asarray(scores.log_softmax(dim=1).cpu().numpy())
