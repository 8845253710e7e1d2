"""The subspace multinomial model with points for documents: l1 SMM and l2 SMM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np
from sklearn.utils.validation import check_is_fitted

from docsigma.exceptions import InputError
from docsigma.inference.point_estimate import infer_point, penalised_likelihood
from docsigma.inference.prior import IsotropicPrior
from docsigma.kernels import use_precision
from docsigma.models._subspace_model import SubspaceModel

if TYPE_CHECKING:
    import scipy.sparse as sp
    import torch
    from numpy.typing import ArrayLike, NDArray

    from docsigma.inference.multinomial import MultinomialCounts
    from docsigma.kernels.precision import Precision

__all__ = ["SMM"]


class SMM(SubspaceModel):
    r"""Subspace multinomial model: documents as points.

    The model that the Bayesian one extends. Words and embeddings maximise the
    penalised likelihood

    .. math::
        \sum_d \log p(x_d | w_d) - \tfrac\lambda2 \sum_d w_d^\top w_d
        - \omega \sum_{ik} |t_{ik}|,

    so there is no uncertainty, and nothing that keeps a document of few words from
    being taken at its word. With `l1` this is the paper's l1 SMM, with `l2` instead
    the l2 SMM.

    Parameters
    ----------
    n_components : int, default=100
        Size K of an embedding.
    prior_precision : float, default=10.0
        :math:`\lambda`, the weight of the squared length of an embedding.
    l1, l2 : float, default=1.0 and 0.0
        Weights of the absolute values and of half the squares of T.
    learn_log_unigram, solver, max_iter, tol, learning_rate, batch_size, init_scale
        As for :class:`~docsigma.models.bayesian_smm.BayesianSMM`.
    inference_max_iter, inference_tol, precision, device, random_state, verbose
        As for :class:`~docsigma.models.bayesian_smm.BayesianSMM`.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        T, transposed.
    log_unigram_ : array of shape (n_features,)
        m.
    history_ : list of dict
        One row a pass; ``bound`` is the objective, and ``kl`` the mean of
        :math:`\tfrac\lambda2 w^\top w`.

    References
    ----------
    S. Kesiraju, L. Burget, I. Szoke, J. Cernocky: Learning document representations
    using subspace multinomial model. Interspeech 2016.

    Examples
    --------
    >>> from docsigma import SMM, load_corpus
    >>> corpus = load_corpus("synthetic")
    >>> smm = SMM(n_components=5, max_iter=20, random_state=0).fit(corpus.train.counts)
    >>> smm.transform(corpus.test.counts).shape
    (100, 5)
    """

    point_estimates: ClassVar[bool] = True
    output: str = "mean"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SubspaceModel._shared_constraints
    }

    def __init__(
        self,
        n_components: int = 100,
        *,
        prior_precision: float = 10.0,
        l1: float = 1.0,
        l2: float = 0.0,
        learn_log_unigram: bool = True,
        solver: str = "fast",
        max_iter: int | None = None,
        tol: float = 1e-6,
        learning_rate: float | None = None,
        batch_size: int = 1024,
        init_scale: float = 1e-3,
        inference_max_iter: int = 200,
        inference_tol: float = 0.03,
        precision: Precision = "tf32",
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.prior_precision = prior_precision
        self.l1 = l1
        self.l2 = l2
        self.learn_log_unigram = learn_log_unigram
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.init_scale = init_scale
        self.inference_max_iter = inference_max_iter
        self.inference_tol = inference_tol
        self.precision = precision
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def posterior(self, X: object) -> NoReturn:  # noqa: ARG002
        """Refuse: documents are points here."""
        raise InputError("SMM gives points, no Gaussians: transform, or BayesianSMM")

    def transform(self, X: ArrayLike | sp.csr_matrix) -> NDArray[Any]:
        """Embed documents: the point of each that is most probable.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_documents, n_features)
            Word counts.

        Returns
        -------
        array of shape (n_documents, n_components)
        """
        check_is_fitted(self)
        counts = self._counted(self._check_counts(X, reset=False))
        with use_precision(self.precision):
            return np.asarray(self._points(counts).cpu().numpy())

    def score(self, X: ArrayLike | sp.csr_matrix, y: object = None) -> float:  # noqa: ARG002
        """Penalised log likelihood a token; no bound on the evidence."""
        check_is_fitted(self)
        counts = self._counted(self._check_counts(X, reset=False))
        loadings, bias = self._tensors()
        prior = IsotropicPrior(float(self.prior_precision))
        with use_precision(self.precision):
            points = self._points(counts)
            values = penalised_likelihood(counts, loadings, bias, prior, points)
        return float(values.sum()) / max(float(counts.n_tokens.double().sum()), 1.0)

    def _points(self, counts: MultinomialCounts) -> torch.Tensor:
        loadings, bias = self._tensors()
        return infer_point(
            counts,
            loadings,
            bias,
            IsotropicPrior(float(self.prior_precision)),
            max_iter=self.inference_max_iter,
            tol=self.inference_tol,
        )
