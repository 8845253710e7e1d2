"""Groups of similar documents; their number is found as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln
from tqdm import tqdm

from docsigma._array_checks import Floats
from docsigma.classifiers.evidence import mean_evidence

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from docsigma.classifiers import EvidenceClassifier
    from docsigma.posterior import GaussianPosterior


def group_by_evidence(
    classifier: EvidenceClassifier,
    posterior: GaussianPosterior,
    *,
    verbose: bool = False,
) -> NDArray[np.intp]:
    r"""Group documents so that the evidence of the groups is largest.

    Documents of a group share its mean :math:`\mu`, so their statistics add up: a group
    has the evidence :math:`E(\sum \tilde h, \sum \tilde P)`, in the terms of
    :meth:`~docsigma.classifiers.evidence.EvidenceClassifier.same_topic_log_ratio`. Each
    document joins the group that gains most by it, or starts one, and groups are joined
    while that gains, pass after pass until nothing changes. The prior of groupings is a
    Chinese restaurant process with concentration 1: joining a group of n documents is n
    times as likely as starting one. So two documents are joined if their log ratio is
    above 0, and the number of groups need not be known.

    Parameters
    ----------
    classifier : EvidenceClassifier
        Its classes need not be those of the documents.
    posterior : GaussianPosterior
        The documents.
    verbose : bool
        Whether a pass longer than two seconds shows a progress bar.

    Returns
    -------
    ndarray of shape (n_documents,)
        Number of each document's group, 0 for the largest; -1 for documents without
        information.
    """
    linear, precision, between = classifier.marginals(posterior)
    groups = _Groups(linear, precision, between)
    informative = np.flatnonzero(precision.any(axis=1))
    # The most certain first: they start groups that the rest can join.
    certainty = precision[informative].sum(axis=1)
    order = informative[np.argsort(-certainty, kind="stable")]
    # Most runs end after fewer passes.
    for _ in range(20):
        shown = tqdm(order, "grouping", delay=2, disable=not verbose)
        moved = sum(groups.place(row) for row in shown)
        if not groups.join() and not moved:
            break
    return groups.by_size()


class _Groups:
    """Groups with the sums of their documents' statistics."""

    def __init__(self, linear: Floats, precision: Floats, between: Floats) -> None:
        self._linear, self._precision, self._between = linear, precision, between
        self._members = np.full(len(linear), -1, dtype=np.intp)
        self._sums = np.zeros((0, linear.shape[1]))
        self._precisions = np.zeros((0, linear.shape[1]))
        self._sizes = np.zeros(0, dtype=np.intp)
        self._evidence = np.zeros(0)
        self._alone = self._evidence_of(linear, precision)

    def _evidence_of(self, linear: Floats, precision: Floats) -> Floats:
        return mean_evidence(linear, precision, self._between)

    def _add(self, group: int, row: int, sign: int) -> None:
        self._sums[group] += sign * self._linear[row]
        self._precisions[group] += sign * self._precision[row]
        self._sizes[group] += sign
        if not self._sizes[group]:
            # The remainder is rounding error.
            self._sums[group] = self._precisions[group] = 0.0
        self._update(group)

    def _update(self, group: int) -> None:
        sums, precisions = self._sums[group], self._precisions[group]
        self._evidence[group] = self._evidence_of(sums, precisions)

    def place(self, row: int) -> bool:
        """Move a document to the group that gains most; return whether it moved."""
        before = int(self._members[row])
        if before >= 0:
            self._add(before, row, -1)
        joint = self._evidence_of(
            self._sums + self._linear[row], self._precisions + self._precision[row]
        )
        gains = joint - self._evidence - self._alone[row]
        gains = np.where(self._sizes > 0, gains + np.log(self._sizes.clip(1)), -np.inf)
        after = int(gains.argmax()) if len(gains) else -1
        if after < 0 or gains[after] <= 0:
            after = self._new_group()
        self._add(after, row, 1)
        self._members[row] = after
        alone = before >= 0 and self._sizes[before] == 0 and self._sizes[after] == 1
        return after != before and not alone

    def _new_group(self) -> int:
        free = np.flatnonzero(self._sizes == 0)
        if len(free):
            return int(free[0])
        zeros = np.zeros((1, self._sums.shape[1]))
        self._sums = np.concatenate([self._sums, zeros])
        self._precisions = np.concatenate([self._precisions, zeros])
        self._sizes = np.append(self._sizes, 0)
        self._evidence = np.append(self._evidence, 0.0)
        return len(self._sizes) - 1

    def join(self) -> bool:
        """Join groups while that gains, the best pair first; return whether any was."""
        joined = False
        best = {g: self._best_partner(g) for g in np.flatnonzero(self._sizes).tolist()}
        while best:
            first = max(best, key=lambda group: best[group][0])
            gain, second = best[first]
            if gain <= 0:
                break
            self._merge(first, second)
            joined = True
            del best[second]
            for group in best:
                if group == first or best[group][1] in (first, second):
                    best[group] = self._best_partner(group)
        return joined

    def _best_partner(self, group: int) -> tuple[float, int]:
        joint = self._evidence_of(
            self._sums + self._sums[group], self._precisions + self._precisions[group]
        )
        gains = joint - self._evidence - self._evidence[group]
        sizes = self._sizes.clip(1)
        own = sizes[group]
        gains += gammaln(sizes + own) - gammaln(sizes) - gammaln(own)
        gains[self._sizes == 0] = -np.inf
        gains[group] = -np.inf
        other = int(gains.argmax())
        return float(gains[other]), other

    def _merge(self, first: int, second: int) -> None:
        self._members[self._members == second] = first
        self._sums[first] += self._sums[second]
        self._precisions[first] += self._precisions[second]
        self._sizes[first] += self._sizes[second]
        self._sizes[second] = 0
        self._sums[second] = self._precisions[second] = 0.0
        self._update(first)
        self._update(second)

    def by_size(self) -> NDArray[np.intp]:
        """Return the number of each document's group, the largest group first."""
        order = np.argsort(-self._sizes, kind="stable")
        numbers = np.empty(len(order) + 1, dtype=np.intp)
        numbers[order] = np.arange(len(order))
        numbers[-1] = -1
        return numbers[self._members]
