"""Tempering and the weight of unlabelled documents, chosen on training documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from docsigma.classifiers._class_gaussians import fit_classes
from docsigma.classifiers._full_classes import FullClasses
from docsigma.classifiers._labels import deal_folds
from docsigma.classifiers._tempering import (
    DEFAULT,
    Tempering,
    choose_tempering,
    thinned_copy,
)

if TYPE_CHECKING:
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
# Operations on the matrices of held-out documents, per choice.
MOST_OPERATIONS = 1e9
# Mean number of labels per class below which nothing is chosen.
LEAST_LABELS = 3
# What an unlabelled document may count, and what it counts if nothing is chosen.
UNLABELLED_WEIGHTS = (0.0, 0.03, 0.1, 0.3, 1.0)
UNLABELLED_WEIGHT = 0.3


class EvidenceChoices:
    """Cross-validation of what :class:`EvidenceClassifier` chooses.

    Parameters
    ----------
    factors : LikelihoodFactors
        Of the labelled documents and then of the rest.
    axes : Tensor of shape (K, K) or None
        Axes along which classes are learned, if they are then to have a full
        covariance; documents are held out in full.
    labels : SemiSupervisedLabels
    prior : ClassPrior
        Along the axes.
    random_state : int
    """

    def __init__(
        self,
        factors: LikelihoodFactors,
        axes: Tensor | None,
        labels: SemiSupervisedLabels,
        prior: ClassPrior,
        random_state: int,
    ) -> None:
        random = np.random.default_rng(random_state)
        codes = labels.labels.codes
        n, n_classes = len(codes), len(labels.labels.classes)
        self.prior, self.axes = prior, axes
        self.can_choose = n >= LEAST_LABELS * n_classes
        some = random.permutation(n)[:MOST_DOCUMENTS]
        rest = n + random.permutation(len(factors) - n)[:MOST_DOCUMENTS]
        rows = np.concatenate([np.sort(some), np.sort(rest)])
        self.factors = factors[rows]
        self.membership = labels.membership(1.0, factors.observed)[
            torch.from_numpy(rows).to(factors.observed.device)
        ]
        self.codes = codes[rows[: len(some)]]
        seed = int(random.integers(2**31))
        self.folds = deal_folds(self.codes, N_FOLDS, seed)
        self.thin = thinned_copy(self.factors, random)
        # Along its axes, what EM sees.
        self.turned = self.factors if axes is None else self.factors.turned(axes)
        self.n_judged = n
        if axes is not None:
            self.n_judged = max(300, int(MOST_OPERATIONS / len(axes) ** 3))
        self._last: dict[int, ClassGaussians] = {}

    def choose(
        self, tempering: Tempering | None, weight: float | None
    ) -> tuple[Tempering, float]:
        """Return tempering and weight; what is given stays."""
        if weight is None:
            weight = self._choose_weight(tempering or DEFAULT)
        if tempering is None:
            tempering = self._choose_tempering()
        return tempering, weight

    def _choose_weight(self, tempering: Tempering) -> float:
        if not self.membership.unlabelled.any():
            return 0.0
        if not self.can_choose:
            return UNLABELLED_WEIGHT
        losses = [self._loss(tempering, weight) for weight in UNLABELLED_WEIGHTS]
        return UNLABELLED_WEIGHTS[int(np.argmin(losses))]

    def _choose_tempering(self) -> Tempering:
        if not self.can_choose:
            return DEFAULT
        return choose_tempering(lambda t: self._loss(t, 0.0, thinned=True))

    def _loss(
        self, tempering: Tempering, weight: float, *, thinned: bool = False
    ) -> float:
        """Return the cross-entropy of held-out documents, whole and thinned."""
        n, device = len(self.codes), self.factors.observed.device
        turned = tempering(self.turned)
        copies = [tempering(self.factors)]
        if thinned:
            copies.append(tempering(self.thin))
        total, seen = 0.0, 0
        for fold in range(int(self.folds.max()) + 1):
            out = torch.zeros(len(self.factors), dtype=torch.bool, device=device)
            out[:n] = torch.from_numpy(self.folds == fold).to(device)
            kept = ~out if weight else ~out & self.membership.labelled.any(dim=1)
            members = self.membership[kept]
            members = type(members)(members.labelled, weight * members.unlabelled)
            classes, _ = fit_classes(
                turned[kept],
                members,
                self.prior,
                max_iter=MAX_ITER,
                tol=TOL,
                start=self._last.get(fold) if weight == 0 else None,
            )
            if weight == 0:
                self._last[fold] = classes
            # A class without training documents here cannot be judged.
            held = out.nonzero().flatten()
            codes = torch.from_numpy(self.codes).to(device)[held]
            known = (members.labelled.sum(dim=0) > 0)[codes]
            each = -(-self.n_judged // N_FOLDS)
            held, codes = held[known][:each], codes[known][:each]
            judged: ClassGaussians | FullClasses = classes
            if self.axes is not None:
                variance = self.axes.square() @ self.prior.variance
                judged = FullClasses.of(classes, self.axes, variance)
            for copy in copies:
                log_proba = judged.log_proba(copy[held])
                total -= float(log_proba.gather(1, codes[:, None]).sum())
            seen += len(held)
        return total / max(seen, 1)
