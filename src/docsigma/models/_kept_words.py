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

    def __init__(self) -> None:
        self._key: Any = None
        self._words: Evaluator | None = None

    def find(self, model: SubspaceModel, family: CovarianceFamily) -> Evaluator | None:
        """Return it, made anew if the model has changed; None for other families."""
        if family is not model.parts_.covariance:
            return None
        key = model.components_, family, model.device
        if self._key is None or _differ(key, self._key):
            # The key last: another thread that finds it finds these words.
            self._words = Evaluator(model._model(), family, NewtonSettings())
            self._key = key
        return self._words


def _differ(one: Any, other: Any) -> bool:
    return any(a is not b for a, b in zip(one, other, strict=True))
