"""Choosing the hybrid's settings by cross-validation, with few and warm fits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from docsigma._array_checks import Floats
from docsigma.classifiers._mixing import Mixture, fit_mixture
from docsigma.classifiers._softmax_regression import (
    Coefficients,
    Features,
    fit_regression,
)
from docsigma.classifiers.conformal import PredictionSets

# Steps of the search, half a decade each; the search stays between the bounds.
STEP = 10**0.5
C_BOUNDS = 0.1, 3000.0
SCALE_BOUNDS = 0.02, 10.0
# Fits of the search end earlier than the last: an iteration gains less than this part.
TOLERANCE = 3e-5
# A step must lower the cross-entropy by this part to be taken. Smaller gains in C cost
# fits and do not last: held-out documents are nearer to the others than later ones are.
# The embedding must earn its scale, so that steps to less of it need hardly a gain.
GAINS = {"C": 0.01, "scale": 0.001, "soft": 0.0}


class Point(NamedTuple):
    """Settings of the regression.

    `C` is the inverse l2 weight, `scale` multiplies the embedding, and `soft` is what
    the score's opinion on a document without label counts.
    """

    C: float = 100.0
    scale: float = 0.3
    soft: float = 0.0


@dataclass(frozen=True)
class Fold:
    """One split of the cross-validation.

    `labelled` and `guessed` are weights of the classes for the documents in `train`:
    from labels, and by the score where there is none. The other arrays are of the
    documents in `evaluated`, of which `whole` are no shorter copies; `score` is None
    without a likelihood score.
    """

    train: Features
    labelled: Floats
    guessed: Floats | None
    evaluated: Features
    codes: NDArray[np.intp]
    weights: Floats
    n_tokens: Floats
    whole: NDArray[np.bool_]
    score: Floats | None


@dataclass
class Search:
    """Cross-entropies of points, each evaluated once, from the nearest fit on."""

    folds: list[Fold]
    start: Mixture
    losses: dict[Point, float] = field(default_factory=dict)
    _outcomes: dict[Point, tuple[Mixture, Floats, Floats]] = field(default_factory=dict)
    _fits: list[Coefficients] = field(default_factory=list)

    def evaluate(self, point: Point) -> float:
        """Return the cross-entropy of held-out documents, whole ones, in nats."""
        if point in self.losses:
            return self.losses[point]
        log_proba = []
        for number, fold in enumerate(self.folds):
            targets = blend(fold.labelled, fold.guessed, point.soft)
            if number == len(self._fits):
                n_classes = targets.shape[1]
                self._fits.append(
                    Coefficients.zeros(fold.train, n_classes, point.scale)
                )
            start = self._fits[number].rescaled(point.scale)
            kept = np.flatnonzero(targets.any(axis=1))
            everyone = len(kept) == len(targets)
            found = fit_regression(
                fold.train if everyone else fold.train[kept],
                targets if everyone else targets[kept],
                start,
                point.C,
                tol=TOLERANCE,
            )
            self._fits[number] = found
            log_proba.append(log_softmax(found.scores(fold.evaluated), axis=1))
        parts = [np.concatenate(log_proba)]
        if self.folds[0].score is not None:
            parts.append(np.concatenate([fold.score for fold in self.folds]))
        codes, weights, n_tokens = (
            np.concatenate([getattr(fold, name) for fold in self.folds])
            for name in ("codes", "weights", "n_tokens")
        )
        mixture, true, top = fit_mixture(parts, codes, weights, n_tokens, self.start)
        weights = weights * np.concatenate([fold.whole for fold in self.folds])
        self.losses[point] = float(-(weights @ true)) / float(weights.sum())
        self._outcomes[point] = mixture, np.exp(true), np.exp(top)
        return self.losses[point]

    def mixture(self, point: Point) -> Mixture:
        """Return the weights of regression and score that go with a point."""
        return self._outcomes[point][0] if self.folds else self.start

    def calibration(self, point: Point) -> PredictionSets:
        """Return what the classes of held-out whole documents got."""
        if not self.folds:
            return PredictionSets(*(np.zeros(0) for _ in range(3)))
        whole = np.concatenate([fold.whole for fold in self.folds])
        n_tokens = np.concatenate([fold.n_tokens for fold in self.folds])
        _, true, top = self._outcomes[point]
        return PredictionSets(true[whole], top[whole], n_tokens[whole])

    def choose(self, point: Point) -> Point:
        """Step from neighbour to neighbour while that lowers the cross-entropy.

        Without a fold that could be evaluated the point stays where it is.
        """
        if not self.folds:
            return point
        for name in ("soft", "scale", "C", "scale"):
            point = self._along(point, name)
        return point

    def _along(self, point: Point, name: str) -> Point:
        if name == "soft":
            # All or nothing of what the score believes.
            return self._better(point, point._replace(soft=0.0), name)
        low, high = C_BOUNDS if name == "C" else SCALE_BOUNDS
        for factor in (STEP, 1 / STEP):
            first = point
            while low <= (value := getattr(point, name) * factor) <= high:
                step = self._better(point, point._replace(**{name: float(value)}), name)
                if step is point:
                    break
                point = step
            if point is not first:
                break
        if name == "scale" and point.scale < SCALE_BOUNDS[0] * STEP:
            point = self._better(point, point._replace(scale=0.0), name)
        return point

    def _better(self, point: Point, other: Point, name: str) -> Point:
        least = (1 - GAINS[name]) * self.evaluate(point)
        return other if self.evaluate(other) < least else point


def blend(labelled: Floats, guessed: Floats | None, soft: float) -> Floats:
    """Return the weights of the classes that a regression is trained with."""
    if guessed is None or soft == 0:
        return labelled
    return labelled + soft * guessed
