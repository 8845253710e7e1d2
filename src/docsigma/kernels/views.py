"""Several views of a document: ranges of words, each with a softmax of its own."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np
import torch

from docsigma.kernels.softmax_moments import SoftmaxMoments, softmax_moments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from scipy.sparse import csr_matrix
    from torch import Tensor

    from docsigma.kernels.softmax_moments import SoftmaxWords
    from docsigma.kernels.tiles import Workspace


@dataclass(frozen=True)
class Views:
    """Views of a document, such as languages, as ranges of columns.

    Attributes
    ----------
    sizes : tuple of int
        Words of each view, in the order of the columns.
    n_fitted : int or None
        Number of those that were trained together, if others were added: only these
        shape the steps of the E-step, which then stay the same. None means all.

    Examples
    --------
    >>> Views((3, 2)).ranges
    [slice(0, 3, None), slice(3, 5, None)]
    """

    sizes: tuple[int, ...]
    n_fitted: int | None = None

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def ranges(self) -> list[slice]:
        """The columns of each view."""
        bounds = accumulate(self.sizes, initial=0)
        return [slice(start, stop) for start, stop in pairwise(bounds)]

    def of_columns(self) -> NDArray[np.intp]:
        """Return the number of the view of each column."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def tokens(self, counts: csr_matrix) -> NDArray[np.float64]:
        """Return the tokens of each document in each view."""
        found = np.zeros((counts.shape[0], len(self)))
        rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        np.add.at(found, (rows, self.of_columns()[counts.indices]), counts.data)
        return found


def view_moments(
    points: Tensor,
    words: Sequence[SoftmaxWords],
    shares: Tensor,
    *,
    first: bool = False,
    second: bool = False,
    weights: Tensor | None = None,
    workspace: Workspace | None = None,
) -> SoftmaxMoments:
    r"""Return the moments of each view, averaged over the views of a document.

    With N tokens of a document, :math:`N_l` of them in view l, N times the average
    with shares :math:`N_l / N` is the sum over views with :math:`N_l`. A view that a
    document lacks has the share 0 and is not evaluated.

    Parameters
    ----------
    points : Tensor of shape (n, K)
    words : sequence of SoftmaxWords
        Those of each view.
    shares : Tensor of shape (n, L)
    first, second, workspace
        As for :func:`softmax_moments`. ``second - first**2`` of the result is the
        average of the variances within views.
    weights : Tensor of shape (n, L), default=None
        If given, also return the gradients of the sum of ``weights * lse`` over
        documents and views, one view after the other.
    """
    n, k = points.shape
    lse = points.new_zeros(n)
    mean = points.new_zeros(n, k if first or second else 0)
    spread = points.new_zeros(n, k if second else 0)
    gradients = []
    for view, (own, share) in enumerate(zip(words, shares.unbind(dim=1), strict=True)):
        rows = present(share)
        share = share[rows]
        moments = softmax_moments(
            points[rows],
            own,
            first=first,
            second=second,
            weights=None if weights is None else weights[rows, view],
            workspace=workspace,
        )
        add_rows(lse, rows, share * moments.lse)
        if moments.first is not None:
            add_rows(mean, rows, share[:, None] * moments.first)
        if moments.second is not None:
            assert moments.first is not None
            variance = moments.second - moments.first.square()
            add_rows(spread, rows, share[:, None] * variance)
        gradients.append((moments.loading_gradient, moments.bias_gradient))
    loading_gradients, bias_gradients = zip(*gradients, strict=True)
    return SoftmaxMoments(
        lse=lse,
        first=mean if first or second else None,
        second=spread + mean.square() if second else None,
        loading_gradient=None if weights is None else torch.cat(loading_gradients),
        bias_gradient=None if weights is None else torch.cat(bias_gradients),
    )


def present(share: Tensor) -> slice | Tensor:
    """Return the documents that have a view, as a slice if all do."""
    rows = torch.nonzero(share > 0)[:, 0]
    return slice(None) if len(rows) == len(share) else rows


def add_rows(total: Tensor, rows: slice | Tensor, values: Tensor) -> None:
    """Add values to some rows in place."""
    if isinstance(rows, slice):
        total += values
    else:
        total.index_add_(0, rows, values)
