"""Choosing the hybrid's settings on held-out documents, with few and warm fits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import log_softmax
from tqdm import tqdm

from docsigma.classifiers._pool import Pool
from docsigma.classifiers._softmax_regression import Coefficients, fit_regression
from docsigma.classifiers.settings import (
    BOUNDS,
    FIRST_C,
    FIRST_MARGIN,
    FIRST_SCALE,
    FIT_TOLERANCE,
    LEAST_GAIN,
    STEP,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import scipy.sparse as sp
    from numpy.typing import NDArray

    from docsigma._array_checks import Floats
    from docsigma.classifiers._margins import Margins
    from docsigma.classifiers._softmax_regression import Features


class Point(NamedTuple):
    """Inverse l2 weight of the regression, scale of the embedding, C of the machine."""

    C: float = FIRST_C
    scale: float = FIRST_SCALE
    margin: float = FIRST_MARGIN


@dataclass(frozen=True)
class Fold:
    """One split: what is trained on, and what is held out, whole and cut.

    `machine` trains the support vector machine with an inverse l2 weight. `score` has
    the log probabilities of the held-out documents by their likelihood, None where
    embeddings are points.
    """

    train: Features
    targets: Floats
    held_out: Features
    machine: Callable[[float], Margins]
    held_out_wide: sp.csr_matrix
    codes: NDArray[np.intp]
    weights: Floats
    n_tokens: Floats
    score: Floats | None


@dataclass(frozen=True)
class Outcome:
    """What a point gave on held-out documents."""

    loss: float
    pool: Pool
    log_proba: Floats


@dataclass
class Search:
    """Cross-entropies of points, each evaluated once, from the nearest fit on."""

    folds: list[Fold]
    verbose: bool = False
    outcomes: dict[Point, Outcome] = field(default_factory=dict)
    _fits: list[Coefficients] = field(default_factory=list)
    _regressions: dict[tuple[float, float], Floats] = field(default_factory=dict)
    _machines: dict[float, Floats] = field(default_factory=dict)

    def evaluate(self, point: Point) -> float:
        """Return the cross-entropy of held-out documents, in nats."""
        if point in self.outcomes:
            return self.outcomes[point].loss
        parts = [self._regression(point.C, point.scale), self._machine(point.margin)]
        opinions = [fold.score for fold in self.folds if fold.score is not None]
        if opinions:
            parts.append(np.concatenate(opinions))
        codes, weights, n_tokens = (
            self.column(name) for name in ("codes", "weights", "n_tokens")
        )
        pool = Pool.fit(parts, codes, weights, n_tokens)
        log_proba = pool.log_proba(parts, n_tokens)
        truth = log_proba[np.arange(len(codes)), codes]
        loss = float(-(weights @ truth) / weights.sum())
        self.outcomes[point] = Outcome(loss, pool, log_proba)
        return loss

    def _regression(self, C: float, scale: float) -> Floats:
        """Return the log probabilities of held-out documents by the regression."""
        if (C, scale) not in self._regressions:
            fits = self._fits or [
                Coefficients.zeros(fold.train, fold.targets.shape[1], scale)
                for fold in self.folds
            ]
            self._fits = [
                fit_regression(
                    fold.train,
                    fold.targets,
                    start.rescaled(scale),
                    C,
                    tol=FIT_TOLERANCE,
                )
                for fold, start in zip(self.folds, fits, strict=True)
            ]
            pairs = zip(self.folds, self._fits, strict=True)
            scores = np.concatenate([fit.scores(fold.held_out) for fold, fit in pairs])
            self._regressions[C, scale] = np.asarray(log_softmax(scores, axis=1))
        return self._regressions[C, scale]

    def _machine(self, margin: float) -> Floats:
        """Return the log probabilities by the support vector machine."""
        if margin not in self._machines:
            found = [
                fold.machine(margin).log_proba(fold.held_out_wide)
                for fold in self.folds
            ]
            self._machines[margin] = np.concatenate(found)
        return self._machines[margin]

    def column(self, name: str) -> NDArray[Any]:
        """Return a column of all folds' held-out documents."""
        return np.concatenate([getattr(fold, name) for fold in self.folds])

    def choose(self) -> Point:
        """Return the point of the least cross-entropy among those that are tried.

        Steps go along one setting after the other while they gain enough.
        """
        point, names = Point(), ("margin", "scale", "C", "scale")
        for name in tqdm(names, "choosing", delay=2, disable=not self.verbose):
            point = self._along(point, name)
        return min(self.outcomes, key=lambda each: self.outcomes[each].loss)

    def _along(self, point: Point, name: str) -> Point:
        """Step to the better neighbour, and on in its direction."""
        low, high = BOUNDS[name]

        def neighbour(factor: float) -> Point:
            value = getattr(point, name) * factor
            inside = low <= value <= high
            return point._replace(**{name: float(value)}) if inside else point

        factor = min((STEP, 1 / STEP), key=lambda each: self.evaluate(neighbour(each)))
        while (other := neighbour(factor)) != point:
            gain = 1 - self.evaluate(other) / self.evaluate(point)
            point = other if gain > 0 else point
            if gain < LEAST_GAIN:
                break
        if name == "scale" and point.scale < low * STEP:
            self.evaluate(point._replace(scale=0.0))
        return point
