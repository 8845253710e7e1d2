"""Choice of the documents to label next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from docsigma._array_checks import Floats

if TYPE_CHECKING:
    from docsigma.posterior import GaussianPosterior


def propose(
    posterior: GaussianPosterior,
    labelled: NDArray[np.intp],
    n: int = 10,
    entropy: Floats | None = None,
    random_state: int = 0,
) -> NDArray[np.intp]:
    r"""Return the rows of `n` documents whose labels would help most, the best first.

    There are as many groups as labels and proposals together, at most 200. Those with
    the fewest labelled documents come first, and among them those with the largest sum
    of `entropy` (1 per document without it). Each is represented by the document with
    the least expected distance from its centre,
    :math:`\|\nu - c\|^2 + \mathrm{tr}\,\Sigma`, which leaves out uncertain ones.
    """
    random = np.random.default_rng(random_state)
    open_rows = np.setdiff1d(np.arange(len(posterior)), labelled)
    if posterior.n_tokens is not None:
        open_rows = open_rows[posterior.n_tokens[open_rows] > 0]
    if len(open_rows) > 10_000:
        # A sample represents the rest.
        open_rows = np.sort(random.choice(open_rows, 10_000, replace=False))
    n = min(n, len(open_rows))
    if n == 0:
        return open_rows
    rows = np.concatenate([open_rows, labelled]).astype(np.intp)
    means = posterior.mean[rows].astype(np.float64)
    n_groups = min(len(open_rows), max(n, min(200, len(labelled) + n)))
    groups = KMeans(n_groups, n_init=1, random_state=random_state).fit(means)
    of = groups.labels_
    is_open = np.arange(len(rows)) < len(open_rows)
    entropies = np.ones(len(rows)) if entropy is None else entropy[rows]
    weight = np.bincount(of, weights=entropies * is_open, minlength=n_groups)
    covered = np.bincount(of, weights=~is_open, minlength=n_groups)
    # Groups with the fewest labels first, the most uncertain among them.
    order = np.lexsort((-weight, covered))
    away = np.square(means - groups.cluster_centers_[of]).sum(axis=1)
    cost = away + posterior.total_variance[rows]
    chosen: list[int] = []
    for group in order:
        inside = np.flatnonzero((of == group) & is_open)
        if len(inside) and len(chosen) < n:
            chosen.append(int(rows[inside[cost[inside].argmin()]]))
    return np.array(chosen, dtype=np.intp)
