"""What models share whose documents are Gaussians: evidence, perplexity, score."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from docsigma.exceptions import InputError
from docsigma.inference.diagonal import DiagonalGaussian
from docsigma.inference.evidence import estimate_evidence
from docsigma.inference.multinomial import MultinomialCounts
from docsigma.metrics.perplexity import Perplexity, perplexity
from docsigma.models._count_model import CountModel

if TYPE_CHECKING:
    import scipy.sparse as sp
    from numpy.typing import ArrayLike, NDArray

    from docsigma.inference.prior import IsotropicPrior
    from docsigma.posterior import GaussianPosterior

__all__ = ["GaussianModel"]


class GaussianModel(CountModel):
    """A model with ``softmax(m + T w)`` for words and a Gaussian for each document.

    A subclass says how documents are inferred, and what T, m and the prior are.
    """

    # Draws of a bound where none are asked for: those of the model's authors.
    evidence_draws: ClassVar[int] = 32

    def _prior(self) -> IsotropicPrior:
        raise NotImplementedError

    def _infer(
        self, counts: sp.csr_matrix, counted: MultinomialCounts
    ) -> DiagonalGaussian:
        """Give the posteriors of documents, whose tensors are `counted`."""
        raise NotImplementedError

    def _arithmetic(self) -> contextlib.AbstractContextManager[Any]:
        """Give the setting in which products are made."""
        return contextlib.nullcontext()

    def perplexity(
        self,
        X: ArrayLike | sp.csr_matrix,
        *,
        estimator: str = "monte_carlo",
        n_draws: int | None = None,
        posterior: GaussianPosterior | None = None,
    ) -> Perplexity:
        """Perplexity of documents, with its standard error and reference lines.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_documents, n_features)
            Word counts.
        estimator : {"monte_carlo", "jensen", "authors", "importance"}
            How the evidence is estimated, see
            :func:`docsigma.inference.evidence.estimate_evidence`. The default is a
            bound.
        n_draws : int or None, default=None
            Draws a document; None means those of the model's authors, 32 for
            BayesianSMM and 20 for NVDM.
        posterior : GaussianPosterior, default=None
            What :meth:`posterior` gave for X, to save inferring it again; any other
            Gaussians give a bound too.

        Returns
        -------
        Perplexity
        """
        check_is_fitted(self)
        n_draws = self.evidence_draws if n_draws is None else n_draws
        counts = self._check_counts(X, reset=False)
        evidence = self._evidence(counts, estimator, n_draws, posterior)
        return perplexity(
            counts,
            evidence,
            self.training_log_unigram_,
            estimator=estimator,
            n_draws=0 if estimator == "jensen" else n_draws,
        )

    def score(self, X: ArrayLike | sp.csr_matrix, y: object = None) -> float:  # noqa: ARG002
        """Bound on the log evidence, a token: higher is better, for grid searches."""
        check_is_fitted(self)
        counts = self._check_counts(X, reset=False)
        evidence = self._evidence(counts, "monte_carlo", self.evidence_draws, None)
        return float(evidence.sum() / max(float(counts.sum()), 1.0))

    def _evidence(
        self,
        counts: sp.csr_matrix,
        estimator: str,
        n_draws: int,
        posterior: GaussianPosterior | None,
    ) -> NDArray[np.float64]:
        loadings, bias = self._tensors()
        counted = MultinomialCounts(counts, bias)
        shape = (counts.shape[0], loadings.shape[1])
        if posterior is not None and posterior.mean.shape != shape:
            raise InputError(
                f"`posterior` must have the shape {shape[0]} x {shape[1]}, got "
                f"{posterior.mean.shape}"
            )
        with self._arithmetic():
            if posterior is None:
                q = self._infer(counts, counted)
            else:
                q = DiagonalGaussian(
                    torch.from_numpy(posterior.mean.copy()).to(loadings),
                    torch.from_numpy(posterior.log_std).to(loadings),
                )
            evidence = estimate_evidence(
                counted,
                q,
                loadings,
                bias,
                self._prior(),
                estimator=estimator,
                n_draws=n_draws,
                seed=self.seed_,
            )
        return np.asarray(evidence.log_evidence.cpu().numpy())
