"""What inference computes from a model's words, cached between calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docsigma.estep.evaluator import Evaluator
from docsigma.estep.settings import NewtonSettings

if TYPE_CHECKING:
    from docsigma.covariances import CovarianceFamily
    from docsigma.models._subspace_model import SubspaceModel


class KeptWords:
    """Cache of the evaluator of a model, valid while its words are the same."""

    _kept: tuple[tuple[Any, ...], Evaluator] | None = None

    def find(self, model: SubspaceModel, family: CovarianceFamily) -> Evaluator | None:
        """Return the evaluator, rebuilt after a change; None for other families."""
        if family is not model.parts_.covariance:
            return None
        key, kept = (model.components_, family, model.device), self._kept
        if kept is None or any(a is not b for a, b in zip(key, kept[0], strict=True)):
            # Set together, so that no other thread finds one without the other.
            kept = key, Evaluator(model._model(), family, NewtonSettings())
            self._kept = kept
        return kept[1]
