"""What covariates change: differences and curves, with intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docsigma.design import Design
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from docsigma.models._count_model import CountModel


def design_of(model: CountModel) -> Design:
    """Return how the columns of a table are covariates of a model."""
    found = model.trained_on_.get("design")
    if found is None:
        raise InputError(
            "the model knows no covariates: fit it with a table of `covariates` "
            "(docsigma fit --covariates)"
        )
    return Design.from_dict(found)
