"""What estimators, and the four parts of a model, have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from sklearn.base import BaseEstimator

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from torch import Tensor

    from docsigma.covariances import Gaussians
    from docsigma.kernels import CountTensor
    from docsigma.objective import Model


class HasDefaults:
    """Lets `set_params` reach estimators that are None, which means a default one.

    So `embedder__n_components` can be searched where no `embedder` is given.
    """

    _defaults: ClassVar[dict[str, type[BaseEstimator]]]

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of estimators inside as ``name__parameter``."""
        for name, kind in self._defaults.items():
            inside = any(key.startswith(f"{name}__") for key in params)
            if inside and params.get(name, getattr(self, name)) is None:
                params[name] = kind()
        super().set_params(**params)  # type: ignore[misc]
        return self


class Part(BaseEstimator):
    """A likelihood, a prior, a covariance family or a treatment of the loadings.

    Its constructor's arguments are scikit-learn parameters, so that ``clone``,
    ``set_params`` and ``prior__precision`` in a grid search work. A part learns from
    sums over documents: those that :meth:`sums` returns are added over batches and
    processes before :meth:`update` gets them.
    """

    # Whether `sums` and `update` do anything.
    learns: ClassVar[bool] = False

    def learns_from_unseen(self) -> bool:
        """Whether :meth:`sums` needs documents that the words are not trained on.

        Trainers that can set some aside then call it on those.
        """
        return False

    def sums(
        self,
        counts: CountTensor,  # noqa: ARG002
        q: Gaussians,  # noqa: ARG002
        model: Model,  # noqa: ARG002
    ) -> dict[str, Tensor]:
        """Return the sums over these documents that :meth:`update` needs.

        `model` is the one under which the posteriors were inferred.
        """
        return {}

    def update(self, sums: Mapping[str, Tensor]) -> None:
        """Learn from the sums over all documents, once per pass."""

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return the learned arrays that a saved model must hold."""
        return {}

    def set_arrays(self, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
        """Restore what :meth:`arrays` returned."""
