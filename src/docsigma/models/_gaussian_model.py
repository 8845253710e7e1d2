"""Models whose documents are Gaussians: evidence, perplexity and score."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from docsigma.counts._base import BLOCK
from docsigma.exceptions import InputError
from docsigma.kernels import CountTensor
from docsigma.marginal_likelihood import chunk_rows, estimate_marginal_likelihood
from docsigma.metrics.perplexity import Perplexity, perplexity
from docsigma.models._count_model import CountModel
from docsigma.models._given_posterior import gaussians
from docsigma.priors import PriorTensors

if TYPE_CHECKING:
    import scipy.sparse as sp
    from numpy.typing import NDArray

    from docsigma.counts import Counts
    from docsigma.covariances import Gaussians
    from docsigma.models._count_model import CountsLike
    from docsigma.objective import Model
    from docsigma.posterior import GaussianPosterior


class GaussianModel(CountModel):
    """A model with word probabilities ``softmax(m + T w)`` and Gaussian documents.

    A subclass defines the model, and how documents are inferred under it.
    """

    # Default number of draws of a bound: that of the model's authors.
    evidence_draws: ClassVar[int] = 32

    def _model(self) -> Model:
        raise NotImplementedError

    def _infer(self, counts: sp.csr_matrix) -> Gaussians:
        """Return the posteriors of documents."""
        raise NotImplementedError

    def _arithmetic(self) -> contextlib.AbstractContextManager[Any]:
        """Return a context that sets how products round."""
        return contextlib.nullcontext()

    def perplexity(
        self,
        X: CountsLike,
        *,
        estimator: str = "monte_carlo",
        n_draws: int | None = None,
        posterior: GaussianPosterior | None = None,
    ) -> Perplexity:
        """Return the perplexity, with its standard error and reference lines.

        Parameters
        ----------
        X : array, sparse matrix or Counts of shape (n_documents, n_features)
            Word counts.
        estimator : {"monte_carlo", "jensen", "authors", "importance"}
            How the evidence is estimated, see
            :func:`docsigma.marginal_likelihood.estimate_marginal_likelihood`. The
            default is a bound.
        n_draws : int or None, default=None
            Draws per document; None means as many as the model's authors used, 32 for
            BayesianSMM and 20 for NVDM.
        posterior : GaussianPosterior, default=None
            Result of :meth:`posterior` for X, which saves inferring it again. Any
            other Gaussians give a bound too. If it was inferred with covariates, the
            evidence is that under its prior.

        Returns
        -------
        Perplexity
        """
        check_is_fitted(self)
        if posterior is None and self.gives_points:
            raise InputError(
                f"{type(self).__name__} gives points here, not Gaussians, and so "
                "has no perplexity unless `posterior` is given"
            )
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

    def score(self, X: CountsLike, y: object = None) -> float:  # noqa: ARG002
        """Return the bound on the log evidence per token: higher is better."""
        check_is_fitted(self)
        counts = self._check_counts(X, reset=False)
        evidence = self._evidence(counts, "monte_carlo", self.evidence_draws, None)
        return float(evidence.sum() / max(float(counts.n_tokens.sum()), 1.0))

    def _evidence(
        self,
        counts: Counts,
        estimator: str,
        n_draws: int,
        posterior: GaussianPosterior | None,
    ) -> NDArray[np.float64]:
        model = self._model()
        shape = (counts.shape[0], model.n_components)
        if posterior is not None and posterior.mean.shape != shape:
            raise InputError(
                f"`posterior` must have the shape {shape[0]} x {shape[1]}, got "
                f"{posterior.mean.shape}"
            )
        rows = chunk_rows(n_draws)
        # Whole chunks of draws, so that a document's draws do not depend on the blocks.
        size = None if counts.in_memory else rows * max(1, BLOCK // rows)
        values = []
        start = 0
        with self._arithmetic():
            for block in counts.iter_blocks(size):
                if posterior is None:
                    q = self._infer(block)
                else:
                    some = slice(start, start + block.shape[0])
                    q = gaussians(posterior, some, model.loadings)
                    own = posterior[some].prior
                    if own is not None and own.n_documents is not None:
                        prior = PriorTensors(own, model.loadings)
                        model = replace(model, prior=prior)
                evidence = estimate_marginal_likelihood(
                    CountTensor(block, model.bias, views=model.views),
                    q,
                    model,
                    estimator=estimator,
                    n_draws=n_draws,
                    seed=self.seed_,
                    first_chunk=start // rows,
                )
                values.append(evidence.log_evidence.cpu().numpy())
                start += block.shape[0]
        return np.concatenate(values)
