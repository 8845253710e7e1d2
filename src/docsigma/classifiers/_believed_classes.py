"""Gaussian classes under several beliefs in how much words and guesses count."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from docsigma.classifiers._class_gaussians import (
    ClassGaussians,
    fit_classes,
    left_out,
)
from docsigma.classifiers._pool import fit_pool, pooled
from docsigma.classifiers.settings import BELIEFS, STEPS

if TYPE_CHECKING:
    from torch import Tensor

    from docsigma._array_checks import Floats
    from docsigma.classifiers._factors import Factors, Information


@dataclass(frozen=True)
class BelievedClasses:
    """Gaussian classes, learned several times where documents without label take part.

    Once for each of :data:`BELIEFS` in how much a word counts that a document has for
    the first time, and once from labelled documents alone, in which every word counts.
    The probabilities are a mixture.

    Attributes
    ----------
    beliefs : tuple of float
        How much a word counts, for each time but the last.
    sharpness : tuple of float
        Exponents of the probabilities of each: inverse temperatures.
    shares : tuple of float
        Weights of the mixture.
    classes : list of ClassGaussians
    log_prior : Tensor of shape (n_classes,)
        Priors of the classes.
    """

    beliefs: tuple[float, ...]
    sharpness: tuple[float, ...]
    shares: tuple[float, ...]
    classes: list[ClassGaussians]
    log_prior: Tensor

    @classmethod
    def fit(
        cls,
        information: Information,
        factors: Factors,
        known: Tensor,
        unknown: Tensor,
        log_prior: Tensor,
        everything: Tensor,
        *,
        temperature: bool = True,
    ) -> BelievedClasses:
        """Learn from documents, of which some have a label.

        The arguments are those of :func:`fit_classes`. With `temperature`, sharpness
        and shares are what labelled documents ask for when each is left out.
        """
        beliefs = BELIEFS if unknown.any() else ()
        ways = [(factors.repeating(belief), unknown) for belief in beliefs]
        ways.append((factors, torch.zeros_like(unknown)))
        targets = known[known.any(dim=1)].cpu().numpy()
        classes, sharpness, found = [], [1.0] * len(ways), []
        for number, (counted, others) in enumerate(ways):
            arguments = counted, known, others, log_prior, everything
            classes.append(fit_classes(information, *arguments))
            scores = left_out(classes[-1], *arguments) + log_prior
            log_proba = scores.log_softmax(dim=1).cpu().numpy()
            if temperature:
                sharpness[number] = float(fit_pool([log_proba], targets)[0])
            found.append(pooled(np.array(sharpness[number : number + 1]), [log_proba]))
        shares = _shares(np.stack(found), targets)
        chosen = tuple(sharpness), tuple(shares.tolist())
        return cls(beliefs, *chosen, classes, log_prior)

    def counted(self, number: int, factors: Factors) -> Factors:
        """Return what documents say to the classes that were learned at one time."""
        if number == len(self.beliefs):
            return factors
        return factors.repeating(self.beliefs[number])

    def log_proba(self, factors: Factors) -> Floats:
        """Return log probabilities of the classes."""
        found = []
        for number, (sharp, share, classes) in enumerate(
            zip(self.sharpness, self.shares, self.classes, strict=True)
        ):
            counted = self.counted(number, factors)
            scores = (classes.scores(counted) + self.log_prior).log_softmax(dim=1)
            # A document that says nothing gets the priors, whatever the temperature.
            silent = (factors.size == 0)[:, None]
            scores = torch.where(silent, scores, sharp * scores).log_softmax(dim=1)
            found.append(scores + math.log(share))
        mixture = torch.stack(found).logsumexp(dim=0)
        return np.asarray(mixture.log_softmax(dim=1).cpu().numpy())


def _shares(log_proba: Floats, targets: Floats) -> Floats:
    """Return the shares of a mixture under which labels are likeliest, by EM.

    As if one document more per class had been seen, equally likely in all parts. The
    first axis of `log_proba` are the parts.
    """
    n_parts, _, n_classes = log_proba.shape
    own, weights = targets.argmax(axis=1), targets.sum(axis=1)
    likelihood = np.exp(log_proba[:, np.arange(len(own)), own])
    shares = np.full(n_parts, 1 / n_parts)
    for _ in range(STEPS if n_parts > 1 else 0):
        posterior = shares[:, None] * likelihood
        posterior /= np.maximum(posterior.sum(axis=0), np.finfo(np.float64).tiny)
        shares = posterior @ weights + n_classes / n_parts
        shares /= shares.sum()
    return shares
