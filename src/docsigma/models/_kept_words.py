"""What inference makes of a model's words, kept between calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docsigma.estep.evaluator import Evaluator
from docsigma.estep.settings import NewtonSettings

if TYPE_CHECKING:
    from docsigma.covariances import CovarianceFamily
    from docsigma.models._subspace_model import SubspaceModel


class KeptWords:
    """What inference made of a model's words, while these are the same."""

    _kept: tuple[tuple[Any, ...], Evaluator] | None = None

    def find(self, model: SubspaceModel, family: CovarianceFamily) -> Evaluator | None:
        """Return it, rebuilt if the model has changed; None for other families."""
        if family is not model.parts_.covariance:
            return None
        key, kept = (model.components_, family, model.device), self._kept
        if kept is None or any(a is not b for a, b in zip(key, kept[0], strict=True)):
            # At once, so that no other thread finds one without the other.
            kept = key, Evaluator(model._model(), family, NewtonSettings())
            self._kept = kept
        return kept[1]
