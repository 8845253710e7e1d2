"""Rotation of a model to other axes."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from docsigma.models._count_model import CountModel

if TYPE_CHECKING:
    from numpy.typing import NDArray

Model = TypeVar("Model", bound=CountModel)


def turn_model(model: Model, axes: NDArray[np.float64]) -> Model:
    r"""Return the same model along the columns of `axes`: :math:`T R`, :math:`R^T w`.

    Of the variances of words, those along the new axes are kept.
    """
    turned: Any = copy.copy(model)
    turned.__dict__.pop("_stream", None)
    # Further training appends to it, and must not append to the first model's.
    turned.history_ = list(getattr(model, "history_", []))
    loadings = axes.T @ model.components_.astype(np.float64)
    turned.components_ = np.ascontiguousarray(loadings, model.components_.dtype)
    variance = getattr(model, "components_variance_", None)
    if variance is not None:
        squares = axes**2
        turned.components_variance_ = (squares.T @ variance).astype(variance.dtype)
        turned.parts_ = copy.deepcopy(turned.parts_)
        turned.parts_.loadings.turn(squares)
    result: Model = turned
    return result
