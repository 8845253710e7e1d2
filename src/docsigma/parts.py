"""The four parts of a model, by name or as objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from sklearn.base import clone

from docsigma.covariances import COVARIANCES, CovarianceFamily
from docsigma.exceptions import InputError
from docsigma.likelihoods import LIKELIHOODS, Likelihood
from docsigma.loadings import LOADINGS, Loadings
from docsigma.objective import Model, WordSpread
from docsigma.priors import PRIORS, Prior

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from torch import Tensor

    from docsigma._base import Part
    from docsigma.kernels import Views


Value = TypeVar("Value")
# The kinds that each parameter of a model may name.
KINDS: dict[str, Mapping[str, type[Part]]] = {
    "likelihood": LIKELIHOODS,
    "prior": PRIORS,
    "covariance": COVARIANCES,
    "loadings": LOADINGS,
}
BASES: dict[str, type[Part]] = {
    "likelihood": Likelihood,
    "prior": Prior,
    "covariance": CovarianceFamily,
    "loadings": Loadings,
}


def make_part(role: str, given: object, **defaults: Any) -> Part:
    """Return the part that a parameter names or holds.

    A named kind gets those `defaults` that its constructor accepts; an object is
    copied, so that training never changes the user's.

    Raises
    ------
    InputError
        If there is no part of that name, or the object is not a part of this role.

    Examples
    --------
    >>> make_part("prior", "isotropic", precision=4.0)
    IsotropicPrior(precision=4.0)
    """
    known = KINDS[role]
    if isinstance(given, str) and given in known:
        cls = known[given]
        names = cls._get_param_names()
        return cls(**{k: v for k, v in defaults.items() if k in names})
    if isinstance(given, BASES[role]):
        copied: Part = clone(given)
        return copied
    raise InputError(
        f"`{role}` must be one of {', '.join(known)}, or a "
        f"{BASES[role].__name__} object, got {given!r}"
    )


def kind_name(role: str, part: Part) -> str:
    """Return the name under which a part's class is registered."""
    for name, cls in KINDS[role].items():
        if type(part) is cls:
            return name
    known = ", ".join(KINDS[role])
    raise InputError(
        f"the {role} {type(part).__name__} cannot be saved: it is registered under no "
        f"name (docsigma.parts.KINDS[{role!r}] has {known})"
    )


def under(prefix: str, named: Mapping[str, Value]) -> dict[str, Value]:
    """Return the values whose names start with `prefix`, named by the rest."""
    return {k.removeprefix(prefix): v for k, v in named.items() if k.startswith(prefix)}


@dataclass(frozen=True)
class Parts:
    """Likelihood, prior, covariance family and loadings of one model."""

    likelihood: Likelihood
    prior: Prior
    covariance: CovarianceFamily
    loadings: Loadings

    @classmethod
    def of(
        cls,
        *,
        likelihood: object = "multinomial",
        prior: object = "isotropic",
        covariance: object = "diagonal",
        loadings: object = "point",
        prior_precision: float = 10.0,
        l1: float | None = None,
        l2: float = 0.0,
    ) -> Parts:
        """Return the parts that a model's parameters describe.

        `prior_precision`, `l1` (None is 1) and `l2` are for parts given by name.
        """
        parts: dict[str, Any] = {
            "likelihood": make_part("likelihood", likelihood),
            "prior": make_part("prior", prior, precision=float(prior_precision)),
            "covariance": make_part("covariance", covariance),
            "loadings": make_part(
                "loadings",
                loadings,
                l1=1.0 if l1 is None else l1,
                l2=l2,
                prior_precision=float(prior_precision),
            ),
        }
        return cls(**parts)

    def items(self) -> list[tuple[str, Part]]:
        """Return the parts with their roles."""
        return [(role, getattr(self, role)) for role in KINDS]

    def model(
        self,
        loadings: Tensor,
        bias: Tensor,
        variance: Tensor | None = None,
        views: Views | None = None,
    ) -> Model:
        """Return the model of these parts and words; `variance` is of the loadings."""
        prior = self.prior.tensors(loadings.shape[1], loadings)
        words = None
        if variance is not None:
            words = WordSpread(variance, self.loadings.second_moment(variance))
        return Model(loadings, bias, self.likelihood, prior, words, views)

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return the arrays of all parts, named ``role.array``."""
        return {
            f"{role}.{name}": array
            for role, part in self.items()
            for name, array in part.arrays().items()
        }

    def set_arrays(self, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
        """Restore what :meth:`arrays` returned."""
        for role, part in self.items():
            part.set_arrays(under(f"{role}.", arrays))
