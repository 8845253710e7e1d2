"""Documents as Gaussians."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from docsigma._array_checks import check_all, check_shape, floats
from docsigma._tensors import read_tensors, write_tensors
from docsigma.exceptions import InputError
from docsigma.posterior.gaussian_prior import (
    GaussianPrior,
    check_same_prior,
    stack_priors,
)

Array = NDArray[np.floating[Any]]
Value = TypeVar("Value")
KIND = "gaussian-posterior"


class GaussianPosterior:
    r"""One Gaussian per document: :math:`q(w_d) = N(\nu_d, \Sigma_d)`.

    The covariance is diagonal (pass `variance`) or full (pass `covariance`). The object
    is immutable. Slices, concatenations and files include the prior and the numbers of
    tokens.

    Parameters
    ----------
    mean : array of shape (n_documents, n_components)
        Means of the documents.
    variance : array of shape (n_documents, n_components), default=None
        Diagonal of the covariance.
    covariance : array, default=None
        Full covariances, of shape (n_documents, n_components, n_components), instead
        of `variance`.
    prior : GaussianPrior, default=None
        The prior under which the posteriors were inferred, None if unknown.
    n_tokens : array of shape (n_documents,), default=None
        Known tokens of each document, None if unknown.
    model_digest : str, default=None
        The `digest` of the model that inferred it; None if unknown.

    Attributes
    ----------
    mean, variance, log_std : arrays of shape (n_documents, n_components)
        Means, variances of each dimension, half the log of the latter.
    covariance : array or None
        The covariance matrices, None for a diagonal posterior.
    total_variance : array of shape (n_documents,)
        Trace of the covariance: the uncertainty as one number.
    prior : GaussianPrior or None
    n_tokens : array of float64, shape (n_documents,), or None
        Not always integers: counts may be fractions.
    model_digest : str or None

    Examples
    --------
    >>> import numpy as np
    >>> from docsigma import GaussianPrior
    >>> q = GaussianPosterior(
    ...     np.zeros((2, 3)),
    ...     np.array([[0.01] * 3, [0.1] * 3]),
    ...     prior=GaussianPrior.isotropic(10.0, n_components=3),
    ...     n_tokens=[50, 0],
    ... )
    >>> q.total_variance.round(3).tolist()
    [0.03, 0.3]
    >>> q
    GaussianPosterior(2 documents, 3 components, diagonal covariance, isotropic prior,
    50 tokens)
    >>> q[:1].kl().round(3).tolist()
    [2.104]
    """

    def __init__(
        self,
        mean: ArrayLike,
        variance: ArrayLike | None = None,
        *,
        covariance: ArrayLike | None = None,
        prior: GaussianPrior | None = None,
        n_tokens: ArrayLike | None = None,
        model_digest: str | None = None,
    ) -> None:
        self.mean: Array = floats("mean", mean, 2)
        if (variance is None) == (covariance is None):
            raise InputError("pass one of `variance` and `covariance`, not both")
        self.covariance: Array | None = None
        self.variance: Array
        if covariance is not None:
            self.covariance = floats("covariance", covariance, 3)
            shape = (*self.mean.shape, self.n_components)
            check_shape("covariance", self.covariance, shape)
            self.variance = np.diagonal(self.covariance, axis1=1, axis2=2).copy()
        elif variance is not None:
            self.variance = floats("variance", variance, 2)
            check_shape("variance", self.variance, self.mean.shape)
        check_all("variance", self.variance, self.variance > 0, "be positive")
        self.n_tokens: Array | None = None
        if n_tokens is not None:
            self.n_tokens = floats("n_tokens", n_tokens, 1).astype(np.float64)
            check_shape("n_tokens", self.n_tokens, (len(self),))
            allowed = self.n_tokens >= 0
            check_all("n_tokens", self.n_tokens, allowed, "not be negative")
        if prior is not None:
            if not isinstance(prior, GaussianPrior):
                raise InputError(f"`prior` must be a GaussianPrior, got {prior!r}")
            if prior.n_components != self.n_components:
                raise InputError(
                    f"`prior` has {prior.n_components} components, `mean` has "
                    f"{self.n_components}"
                )
            if prior.n_documents not in (None, len(self)):
                raise InputError(
                    f"`prior` has means of {prior.n_documents} documents, `mean` has "
                    f"{len(self)}"
                )
        self.prior = prior
        self.model_digest = model_digest
        for array in (self.variance, *self._rows().values()):
            array.flags.writeable = False

    def __len__(self) -> int:
        return int(self.mean.shape[0])

    def __repr__(self) -> str:
        parts = [f"{len(self)} documents", f"{self.n_components} components"]
        parts.append(f"{self._form} covariance")
        if self.prior is not None:
            parts.append(f"{self.prior.form} prior")
        if self.n_tokens is not None:
            parts.append(f"{self.n_tokens.sum():.0f} tokens")
        return f"GaussianPosterior({', '.join(parts)})"

    def __getitem__(self, rows: slice | ArrayLike) -> GaussianPosterior:
        """Return the posteriors of `rows`; an integer keeps the document axis."""
        index = rows if isinstance(rows, slice) else np.atleast_1d(np.asarray(rows))
        arrays = {name: array[index] for name, array in self._rows().items()}
        carried = self._carried()
        if self.prior is not None:
            carried["prior"] = self.prior.select(index)
        return GaussianPosterior(**arrays, **carried)

    def _carried(self) -> dict[str, Any]:
        """Return what all documents share."""
        return {"prior": self.prior, "model_digest": self.model_digest}

    def _rows(self, *, full: bool = False) -> dict[str, Any]:
        """Return the arrays with one row per document, by their arguments' names."""
        arrays = {"mean": self.mean}
        if full or self.covariance is not None:
            arrays["covariance"] = self._full_covariance()
        else:
            arrays["variance"] = self.variance
        if self.n_tokens is not None:
            arrays["n_tokens"] = self.n_tokens
        return arrays

    @property
    def n_components(self) -> int:
        """Size of an embedding."""
        return int(self.mean.shape[1])

    @property
    def _form(self) -> str:
        return "diagonal" if self.covariance is None else "full"

    @property
    def log_std(self) -> Array:
        """Log of the standard deviation of each dimension."""
        return np.asarray(0.5 * np.log(self.variance))

    @property
    def total_variance(self) -> Array:
        """Trace of the covariance, one number per document."""
        return np.asarray(self.variance.sum(axis=1))

    def _log_determinant(self) -> Array:
        if self.covariance is None:
            return np.asarray(np.log(self.variance.astype(np.float64)).sum(axis=1))
        return np.asarray(np.linalg.slogdet(self.covariance.astype(np.float64))[1])

    def replace(
        self, *, prior: GaussianPrior | None = None, n_tokens: ArrayLike | None = None
    ) -> GaussianPosterior:
        """Return the same Gaussians with another prior or other numbers of tokens.

        What is None stays as it is.
        """
        arrays = self._rows()
        if n_tokens is not None:
            arrays["n_tokens"] = n_tokens
        carried = self._carried() | ({} if prior is None else {"prior": prior})
        return GaussianPosterior(**arrays, **carried)

    def require_prior(self) -> GaussianPrior:
        """Return the prior, or raise an InputError if the posterior carries none."""
        how = "prior=GaussianPrior(mean, precision)"
        return _require(self.prior, "prior it was made under", how)

    def require_shared_prior(self) -> GaussianPrior:
        """Return the prior, or raise an InputError if it differs among documents."""
        prior = self.require_prior()
        if prior.n_documents is not None:
            raise InputError(
                "these documents were inferred with covariates, so that each has its "
                "own prior mean, and one prior for all is needed here: infer them "
                "without covariates"
            )
        return prior

    def require_tokens(self) -> Array:
        """Return the known tokens per document, or raise an InputError."""
        what = "number of known tokens per document"
        return _require(self.n_tokens, what, "n_tokens=...")

    def kl(self, prior_precision: float | None = None) -> Array:
        r"""Return the divergence to the prior per document, in nats.

        With the prior :math:`N(m_0, \Lambda^{-1})` that the posterior carries,

        .. math::

            \mathrm{KL}(q \| p) = \frac{1}{2} \left( \mathrm{tr}(\Lambda \Sigma)
            + (\nu - m_0)^T \Lambda (\nu - m_0) - K
            - \log|\Lambda| - \log|\Sigma| \right)

        Parameters
        ----------
        prior_precision : float, default=None
            Use the prior :math:`N(0, I/\lambda)` with this :math:`\lambda` instead.

        Examples
        --------
        >>> from docsigma import GaussianPrior
        >>> prior = GaussianPrior([1.0], 2.0)
        >>> q = GaussianPosterior([[1.0]], [[0.5]], prior=prior)
        >>> q.kl().tolist()
        [0.0]
        >>> q.kl(prior_precision=2.0).tolist()
        [1.0]
        """
        prior = self.prior
        if prior_precision is not None:
            lam = float(prior_precision)
            if not 0 < lam < np.inf:
                raise InputError(
                    f"`prior_precision` must be positive and finite, got {lam:g}"
                )
            prior = GaussianPrior.isotropic(lam, self.n_components)
        if prior is None:
            raise InputError(
                "`kl` needs a prior and this posterior carries none: pass "
                "`prior_precision`, or add it with `posterior.replace(prior=...)`"
            )
        away = self.mean.astype(np.float64) - prior.mean
        square = (prior.times_precision(away) * away).sum(axis=1)
        if self._form != "diagonal" and prior.form == "full":
            trace = np.einsum("ij,dij->d", prior.precision, self._full_covariance())
        else:
            trace = self.variance.astype(np.float64) @ prior.precision_diagonal()
        log_determinants = prior.log_determinant() + self._log_determinant()
        return np.asarray(0.5 * (trace + square - self.n_components - log_determinants))

    def entropy(self) -> Array:
        """Return the differential entropy per document, in nats."""
        constant = self.n_components * (np.log(2 * np.pi) + 1.0)
        return np.asarray(0.5 * (constant + self._log_determinant()))

    def draws(self, n_draws: int, random_state: int | None = None) -> Array:
        """Return draws of embeddings, of shape (draws, documents, components)."""
        if n_draws < 1:
            raise InputError(f"`n_draws` must be at least 1, got {n_draws}")
        random = np.random.default_rng(random_state)
        noise = random.standard_normal((n_draws, *self.mean.shape))
        if self._form == "diagonal":
            spread = noise * np.sqrt(self.variance)
        else:
            factor = np.linalg.cholesky(self._full_covariance().astype(np.float64))
            spread = np.einsum("dij,rdj->rdi", factor, noise)
        return np.asarray((self.mean + spread).astype(self.mean.dtype))

    @classmethod
    def concatenate(cls, parts: Sequence[GaussianPosterior]) -> GaussianPosterior:
        """Concatenate the documents of several posteriors.

        Covariances of different forms become full ones. Priors must be equal, except
        for means per document. The result has a prior, numbers of tokens and a digest
        if all of `parts` have them and the digests are equal.
        """
        if not parts:
            raise InputError("there are no posteriors to concatenate")
        widths = {part.n_components for part in parts}
        if len(widths) > 1:
            first, second, *_ = sorted(widths)
            raise InputError(
                f"cannot concatenate posteriors of {first} and {second} components"
            )
        mixed = len({part._form for part in parts}) > 1
        rows = [part._rows(full=mixed) for part in parts]
        # Only what all have: the tokens of some documents are no use.
        names = set.intersection(*(set(arrays) for arrays in rows))
        joined = {n: np.concatenate([arrays[n] for arrays in rows]) for n in names}
        digests = {part.model_digest for part in parts}
        digest = digests.pop() if len(digests) == 1 else None
        return cls(**joined, prior=_common_prior(parts), model_digest=digest)

    def pool(self, groups: ArrayLike | None = None) -> GaussianPosterior:
        r"""Return the posteriors of documents, given those of their pieces.

        Pieces share the document's embedding: their likelihoods multiply, and the prior
        counts once; its mean must be the same for all pieces of a document. Documents
        that only share a class are not pieces of one: see
        :meth:`EvidenceClassifier.same_topic_log_ratio`.

        Parameters
        ----------
        groups : array of shape (n_documents,), default=None
            The document of each piece; None means the same. The result is sorted by it.

        Examples
        --------
        >>> prior = GaussianPrior.isotropic(1.0, n_components=1)
        >>> pieces = GaussianPosterior([[1.0], [1.0]], [[0.5], [0.5]], prior=prior)
        >>> pieces.pool().mean.round(3).tolist()
        [[1.333]]
        """
        prior = self.require_prior()
        rows = np.zeros(len(self)) if groups is None else np.asarray(groups)
        check_shape("groups", rows, (len(self),))
        names, codes = np.unique(rows, return_inverse=True)
        once = np.bincount(codes)[:, None] - 1
        if prior.n_documents is not None:
            prior = prior.of_groups(codes, names)
        centre = prior.mean if prior.n_documents is None else prior.mean[codes]
        away = self.mean.astype(np.float64) - centre

        def add(values: Array) -> Array:
            sums = np.zeros((len(names), *values.shape[1:]))
            np.add.at(sums, codes, values)
            return sums

        pooled: dict[str, Any] = self._carried() | {"prior": prior}
        if self.n_tokens is not None:
            pooled["n_tokens"] = add(self.n_tokens)
        if self.covariance is None and prior.form != "full":
            precision = 1 / self.variance.astype(np.float64)
            total = add(precision) - once * prior.precision_diagonal()
            pooled["variance"] = 1 / total
            mean = add(precision * away) / total
        else:
            precision = np.linalg.inv(self._full_covariance().astype(np.float64))
            total = add(precision) - once[:, :, None] * prior.precision_matrix()
            pooled["covariance"] = np.linalg.inv(total)
            linear = add(np.einsum("dij,dj->di", precision, away))
            mean = np.einsum("dij,dj->di", pooled["covariance"], linear)
        return GaussianPosterior(mean + prior.mean, **pooled)

    def _full_covariance(self) -> Array:
        if self.covariance is not None:
            return self.covariance
        return self.variance[:, :, None] * np.eye(self.n_components)

    def to_arrays(self) -> dict[str, Array]:
        """Return ``mean`` and ``variance`` or ``covariance`` by name.

        ``prior_mean``, ``prior_precision`` and ``n_tokens`` are included if known.
        """
        arrays: dict[str, Array] = self._rows()
        if self.prior is not None:
            arrays["prior_mean"] = self.prior.mean
            arrays["prior_precision"] = self.prior.precision
        return arrays

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, ArrayLike], model_digest: str | None = None
    ) -> GaussianPosterior:
        """Return the posterior with the arrays of :meth:`to_arrays`; ignore others."""
        if "mean" not in arrays:
            raise InputError(f"no `mean` among the arrays {sorted(arrays)}")
        prior = None
        if "prior_mean" in arrays and "prior_precision" in arrays:
            prior = GaussianPrior(arrays["prior_mean"], arrays["prior_precision"])
        elif "prior_mean" in arrays or "prior_precision" in arrays:
            raise InputError(
                "`prior_mean` and `prior_precision` are needed together, but only one "
                f"is among the arrays {sorted(arrays)}"
            )
        return cls(
            arrays["mean"],
            arrays.get("variance"),
            covariance=arrays.get("covariance"),
            prior=prior,
            n_tokens=arrays.get("n_tokens"),
            model_digest=model_digest,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the posterior to one safetensors file."""
        digest = {} if self.model_digest is None else {"model": self.model_digest}
        write_tensors(path, self.to_arrays(), {"kind": KIND, **digest})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> GaussianPosterior:
        """Read what :meth:`save` wrote; no code is run."""
        arrays, metadata = read_tensors(path)
        if metadata.get("kind") != KIND:
            raise InputError(f"{path} holds no docsigma posterior")
        return cls.from_arrays(arrays, metadata.get("model"))


def _require(value: Value | None, what: str, how: str) -> Value:
    if value is None:
        raise InputError(
            f"this posterior does not carry the {what}: add it with "
            f"`posterior.replace({how})`"
        )
    return value


def _common_prior(parts: Sequence[GaussianPosterior]) -> GaussianPrior | None:
    known = [(i, part.prior) for i, part in enumerate(parts) if part.prior is not None]
    if not known:
        return None
    complete = len(known) == len(parts)
    if complete and any(prior.n_documents is not None for _, prior in known):
        sizes = [len(part) for part in parts]
        return stack_priors([prior for _, prior in known], sizes)
    first, prior = known[0]
    for i, other in known[1:]:
        check_same_prior(prior, other, first, i)
    return prior if complete else None
