"""Tempering and the weight of unlabelled documents, chosen on training documents."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from docsigma.classifiers._class_gaussians import Membership, fit_classes
from docsigma.classifiers._full_classes import FullClasses, refine_classes
from docsigma.classifiers._splits import deal
from docsigma.classifiers._tempering import (
    DEFAULT,
    Tempering,
    choose_tempering,
    thinned_copy,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from docsigma.classifiers._class_gaussians import ClassGaussians, ClassPrior
    from docsigma.classifiers._likelihood_factors import LikelihoodFactors
    from docsigma.classifiers._semi_supervised_labels import SemiSupervisedLabels

# Documents that a choice looks at, at the most, with labels and without.
MOST_DOCUMENTS = 4000
N_FOLDS = 3
# Steps of EM per choice and fold, and what ends them; where nothing but the tempering
# changed, they start from the classes of the last choice.
MAX_ITER = 10
TOL = 1e-2
# The same for full covariances, in passes; with them documents are costly, so that
# there are fewer: this many operations per pass, if these allow the least number.
FULL_PASSES = 4
MOST_OPERATIONS = 1e9
LEAST_DOCUMENTS = 600
# Mean number of labels per class below which nothing is chosen.
LEAST_LABELS = 3
# What an unlabelled document may count, and what it counts if nothing is chosen.
UNLABELLED_WEIGHTS = (0.0, 0.03, 0.1, 0.3, 1.0)
UNLABELLED_WEIGHT = 1.0


class EvidenceChoices:
    """Cross-validation of what :class:`EvidenceClassifier` chooses.

    Parameters
    ----------
    factors : LikelihoodFactors
        Of the labelled documents and then of the rest.
    axes : Tensor of shape (K, K) or None
        Axes along which classes with a full covariance start.
    labels : SemiSupervisedLabels
    prior : ClassPrior
        Along the axes.
    random_state : int
    groups : ndarray, optional
        Groups of the labelled documents, which folds keep together.
    """

    def __init__(
        self,
        factors: LikelihoodFactors,
        axes: Tensor | None,
        labels: SemiSupervisedLabels,
        prior: ClassPrior,
        random_state: int,
        groups: NDArray[Any] | None = None,
    ) -> None:
        random = np.random.default_rng(random_state)
        codes = labels.labels.codes
        n, n_classes = len(codes), len(labels.labels.classes)
        self.prior, self.axes = prior, axes
        self.labels_per_class = n / n_classes
        self.can_choose = self.labels_per_class >= LEAST_LABELS
        most = MOST_DOCUMENTS
        if axes is not None:
            most = max(
                LEAST_DOCUMENTS, min(most, int(MOST_OPERATIONS / len(axes) ** 3))
            )
        some = random.permutation(n)[:most]
        rest = n + random.permutation(len(factors) - n)[:most]
        rows = np.concatenate([np.sort(some), np.sort(rest)])
        self.factors = factors[rows]
        self.membership = labels.membership(1.0, factors.observed)[
            torch.from_numpy(rows).to(factors.observed.device)
        ]
        self.codes = codes[rows[: len(some)]]
        seed = int(random.integers(2**31))
        own = None if groups is None else groups[rows[: len(some)]]
        self.folds = deal(self.codes, N_FOLDS, seed, own)
        # One group of all documents leaves none to hold out.
        self.can_choose &= bool(self.folds.any())
        self.thin = thinned_copy(self.factors, random)
        self._last: dict[int, ClassGaussians | FullClasses] = {}

    def choose(
        self, tempering: Tempering | None, weight: float | None
    ) -> tuple[Tempering, float]:
        """Return tempering and weight; what is given stays."""
        temper = tempering is None
        if tempering is None:
            tempering = self._choose_tempering(weight or 0.0)
        if weight is None:
            weight = self._choose_weight(tempering)
            if temper and weight:
                tempering = self._choose_tempering(weight)
        return tempering, weight

    def smoothing(self, weight: float) -> float:
        """Return the share of the class priors in the predicted probabilities.

        Classes need not be what the words cluster by. Documents without label were
        counted in by a rule where labels are too few to tell, and then these count as
        if one more label per class had been drawn from the priors.
        """
        if self.can_choose or weight == 0:
            return 0.0
        return 1 / (1 + self.labels_per_class)

    def _choose_weight(self, tempering: Tempering) -> float:
        if not self.membership.unlabelled.any():
            return 0.0
        if not self.can_choose:
            return UNLABELLED_WEIGHT if self._documents_tell_classes() else 0.0
        losses = [self._loss(tempering, weight) for weight in UNLABELLED_WEIGHTS]
        return UNLABELLED_WEIGHTS[int(np.argmin(losses))]

    def _documents_tell_classes(self) -> bool:
        """Return whether documents without label say enough to choose a class by.

        To choose between C classes takes up to log C nats. Half of the documents must
        tell that much about their embeddings: titles of five words tell half a nat,
        snippets of fourteen tell four.
        """
        rows = self.membership.unlabelled > 0
        factors = self.factors[rows]
        if self.axes is not None:
            factors = factors.turned(self.axes)
        shares = self.prior.variance * factors.root.square()
        nats = torch.log1p(shares).sum(dim=1) / 2
        return float(nats.median()) >= math.log(self.membership.labelled.shape[1])

    def _choose_tempering(self, weight: float) -> Tempering:
        if not self.can_choose:
            return DEFAULT
        return choose_tempering(lambda t: self._loss(t, weight, thinned=True))

    def _loss(
        self, tempering: Tempering, weight: float, *, thinned: bool = False
    ) -> float:
        """Return the cross-entropy of held-out documents, whole and thinned."""
        device = self.factors.observed.device
        codes = torch.from_numpy(self.codes).to(device)
        copies = [tempering(self.factors)]
        if thinned:
            copies.append(tempering(self.thin))
        total, seen = 0.0, 0
        for fold in range(int(self.folds.max()) + 1):
            held = torch.from_numpy(np.flatnonzero(self.folds == fold)).to(device)
            classes, class_weights = self._fit(fold, held, tempering, weight)
            # A class without training documents here cannot be judged.
            held = held[(class_weights > 0)[codes[held]]]
            for copy in copies:
                log_proba = classes.log_proba(copy[held])
                total -= float(log_proba.gather(1, codes[held, None]).sum())
            seen += len(held)
        return total / max(seen, 1)

    def _fit(
        self, fold: int, held: Tensor, tempering: Tempering, weight: float
    ) -> tuple[ClassGaussians | FullClasses, Tensor]:
        """Return classes learned without the `held` documents, and their weights."""
        kept = self.membership.labelled.any(dim=1) | (weight > 0)
        kept[held] = False
        members = self.membership[kept]
        members = Membership(members.labelled, weight * members.unlabelled)
        stop: dict[str, Any] = {"max_iter": MAX_ITER, "tol": TOL}
        factors = tempering(self.factors[kept])
        prior = self.prior.of_tempered(tempering.kept(factors, members))
        start = None if weight else self._last.get(fold)
        if self.axes is None:
            assert not isinstance(start, FullClasses)
            found: ClassGaussians | FullClasses
            found, _ = fit_classes(factors, members, prior, start=start, **stop)
        else:
            if not isinstance(start, FullClasses):
                turned = factors.turned(self.axes)
                first, _ = fit_classes(turned, members, prior, **stop)
                variance = self.axes.square() @ self.prior.variance
                start = FullClasses.of(first, self.axes, variance)
            stop["max_iter"] = FULL_PASSES
            found, _ = refine_classes(factors, members, start, **stop)
        if not weight:
            self._last[fold] = found
        return found, members.labelled.sum(dim=0)
