"""The subspace multinomial model with points for documents: l1 SMM and l2 SMM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.utils.validation import check_is_fitted

from docsigma.kernels import CountTensor, softmax_moments, use_rounding
from docsigma.models._subspace_model import SubspaceModel
from docsigma.objective import document_bound, kl_divergence
from docsigma.parts import Parts

if TYPE_CHECKING:
    import numpy as np

    from docsigma.kernels.rounding import Rounding
    from docsigma.models._count_model import CountsLike


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
    inference_max_iter, inference_tol, rounding, device, random_state, verbose
        As for :class:`~docsigma.models.bayesian_smm.BayesianSMM`.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        T, transposed.
    log_unigram_ : array of shape (n_features,)
        m.
    history_ : list of dict
        One row per pass; ``bound`` is the objective, and ``kl`` the mean of
        :math:`\tfrac\lambda2 w^\top w`.

    References
    ----------
    S. Kesiraju, L. Burget, I. Szoke, J. Cernocky: Learning document representations
    using subspace multinomial model. Interspeech 2016.

    Examples
    --------
    >>> from docsigma import load_corpus
    >>> from docsigma_paper import SMM
    >>> corpus = load_corpus("synthetic")
    >>> smm = SMM(n_components=5, max_iter=20, random_state=0).fit(corpus.train.counts)
    >>> smm.transform(corpus.test.counts).shape
    (100, 5)
    """

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
        inference_tol: float = 0.04,
        rounding: Rounding = "tf32",
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
        self.rounding = rounding
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def _parts(self) -> Parts:
        return Parts.of(
            covariance="point",
            prior_precision=self.prior_precision,
            l1=self.l1,
            l2=self.l2,
        )

    def score(self, X: CountsLike, y: object = None) -> float:  # noqa: ARG002
        """Penalised log likelihood per token; no bound on the evidence."""
        check_is_fitted(self)
        model = self._model()
        value = tokens = 0.0
        with use_rounding(self.rounding):
            for block in self._check_counts(X, reset=False).iter_blocks():
                counts = CountTensor(block, model.bias)
                likelihood = model.likelihood.bind(counts, model.loadings, model.bias)
                q = self._infer(block)
                lse = softmax_moments(q.mean, model.loadings, model.bias).lse
                terms = likelihood.value(q.mean, lse)
                penalty = kl_divergence(q, model.prior)
                value += float(document_bound(terms, penalty).sum())
                tokens += float(counts.n_tokens.double().sum())
        return value / max(tokens, 1.0)
