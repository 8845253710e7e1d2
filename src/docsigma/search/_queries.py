"""What is asked of an index, and what it finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from docsigma._array_checks import Floats
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from docsigma.posterior import GaussianPosterior


@dataclass(frozen=True)
class Query:
    """What a query says besides its Gaussian.

    `scores` are those of every document by the words they share, `equal` which have the
    same ones. `classes` are the probabilities of the classifier's classes, if it is one
    of them, and `familiarity` the log ratio of that to a topic that is none.
    """

    scores: Floats | None = None
    equal: NDArray[np.bool_] | None = None
    classes: Floats | None = None
    familiarity: float = 0.0


@dataclass(frozen=True)
class SearchResult:
    """Documents found for one query, best first.

    Attributes
    ----------
    ids : list of str
    labels : list of str or None
    scores : ndarray
        What ranks: highest first, except for distances and divergences. Documents with
        the words of the query come first whatever their score.
    probabilities : ndarray or None
        Probability of the query's class, if the index is calibrated.
    rows : ndarray of int
        Rows of the index.
    """

    ids: list[str]
    labels: list[str | None]
    scores: Floats
    probabilities: Floats | None
    rows: NDArray[np.intp]


def check_alike(
    q: GaussianPosterior, what: str, size: int | None, digest: str | None
) -> None:
    """Refuse full covariances, and what another model made than the index."""
    if q.covariance is not None:
        raise InputError(
            f"the index needs diagonal covariances, the {what} have full ones"
        )
    if size is None:
        return
    if q.n_components != size:
        raise InputError(
            f"the {what} have {q.n_components} components, the index {size}"
        )
    if q.model_digest != digest:
        other, own = (
            "unknown" if known is None else known[:8]
            for known in (q.model_digest, digest)
        )
        raise InputError(
            f"the {what} were made by another model ({other}) than the index ({own})"
        )
