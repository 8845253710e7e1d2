"""The Bayesian subspace multinomial model as a scikit-learn estimator."""

from __future__ import annotations

import copy
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from docsigma.covariances import CovarianceFamily
from docsigma.estep.curvature import LoadingsBasis
from docsigma.exceptions import InputError
from docsigma.likelihoods import Likelihood
from docsigma.loadings import GaussianLoadings, Loadings
from docsigma.models._covariates import learn_covariate_prior
from docsigma.models._gaussian_model import GaussianModel
from docsigma.models._subspace_model import SubspaceModel
from docsigma.parts import Parts
from docsigma.posterior import GaussianPosterior, GaussianPrior
from docsigma.priors import CovariatePrior, Prior
from docsigma.trainers import StreamTrainer

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from docsigma.kernels.rounding import Rounding
    from docsigma.models._count_model import CountsLike
    from docsigma.trainers import Trainer


class BayesianSMM(SubspaceModel, GaussianModel):
    r"""Bayesian subspace multinomial model: documents as Gaussians.

    Each document's word counts come from a multinomial whose log probabilities lie
    in a low-dimensional subspace (Kesiraju et al., 2020):

    .. math::
        w \sim N(0, I/\lambda), \qquad
        \theta = \mathrm{softmax}(m + T w), \qquad
        x \sim \mathrm{Multinomial}(\theta; N).

    Training maximises the evidence lower bound over :math:`m`, :math:`T` and one
    diagonal Gaussian per document; a new document's Gaussian comes from maximising
    its own bound under the model found.

    Parameters
    ----------
    n_components : int, default=100
        Size K of an embedding.
    prior_precision : float, default=10.0
        :math:`\lambda` of a prior given by name (an object has its own). It sets the
        scale of the embeddings.
    l1 : float, default=None
        Weight :math:`\omega` of the absolute values of T, for ``loadings="point"``:
        the higher, the more loadings are exactly zero. 0 means no penalty; None means
        1, as in the paper.
    l2 : float, default=0.0
        Weight of half the squares of T, for ``loadings="point"``.
    likelihood : {"multinomial", "polya"} or Likelihood, default="multinomial"
        Distribution of the counts given the probabilities of the words. ``"polya"``
        models burstiness: a word that occurred once is likely to occur again.
    prior : {"isotropic", "diagonal", "full", "covariates"} or Prior
        Distribution of the embeddings before any word is read. The default,
        ``"isotropic"``, is ``IsotropicPrior(precision=prior_precision)``;
        ``"diagonal"`` learns the variance of each dimension, ``"full"`` a mean and a
        covariance matrix; under ``"covariates"`` the mean depends on covariates that
        :meth:`fit` gets.
    covariance : {"diagonal", "full", "point"} or CovarianceFamily
        Form of the documents' covariances; the default is ``"diagonal"``. Train with
        ``"full"`` for few components only; with many, :meth:`posterior` infers full
        covariances after a diagonal training. ``"point"`` has none.
    loadings : {"auto", "gaussian", "point"} or Loadings, default="auto"
        What is learned of T. ``"gaussian"`` is a mean and a variance per word and
        dimension under a prior that is learned, with nothing to tune; ``"point"`` is
        ``PointLoadings(l1=l1, l2=l2)``, as in the paper. ``"auto"`` is the former,
        unless `l1` or `l2` is given or the solver is ``"paper"``.
    learn_log_unigram : bool, default=True
        Whether m is learned; otherwise it stays the corpus's log uni-gram.
    solver : {"fast", "paper"}, default="fast"
        Both maximise the same objective. ``"fast"`` trains in minibatches with Newton
        steps on the posteriors and needs about ten passes; ``"paper"`` is
        Algorithm 1 as printed: passes over the whole corpus, Adam on the posteriors,
        orthant-wise Adam on T. It needs several hundred passes.
    max_iter : int or None, default=None
        Maximum number of passes over the corpus. None means 1000 for ``"paper"``; for
        ``"fast"``, whose learning rate falls over all passes, 11, or more with fewer
        than ten thousand documents or more than 100 components.
    tol : float, default=1e-6
        Training ends when the bound, averaged over fifty passes (a fifth of them for
        ``"fast"``), grows by less than `tol` of itself per pass. ``"paper"`` does not
        end before 100 passes, nor while the KL still grows by one per cent; ``"fast"``
        does not end in its first half. 0 means that only `max_iter` ends it.
    learning_rate : float or None, default=None
        Initial step size of Adam. None means 0.04 for ``"fast"``, less beyond 100
        components, and 0.01 for ``"paper"``, which uses it for the posteriors too.
    batch_size : int, default=1024
        Documents per minibatch of ``"fast"``; fewer if the corpus has less than ten
        minibatches.
    n_draws : int, default=1
        Draws R per document and pass of ``"paper"``.
    init_variance : float, default=0.1
        Initial variance of the posteriors of ``"paper"``.
    init_scale : float, default=0.001
        Standard deviation of the initial T; ``"fast"`` adds such noise to its start.
    inference_max_iter : int, default=200
        Maximum number of passes over the words per document in :meth:`posterior`.
    inference_tol : float, default=0.04
        A document has converged when its mean would move by less than this fraction of
        its standard deviation, and its variance by less than this fraction of itself.
    rounding : {"tf32", "float32"}, default="tf32"
        Rounding of the operands of products on a GPU; sums are float32. The fused
        kernels need ``"tf32"``. A CPU always uses float32 or float64.
    output : {"mean", "mean_variance"}, default="mean"
        Result of :meth:`transform`: K means, or K means and K variances.
    device : str, default="auto"
        Any torch device, or ``"auto"``: the GPU if there is one.
    random_state : int, RandomState instance or None, default=None
        Seeds the start of T and all noise; an int makes the result reproducible.
    verbose : bool, default=False
        Whether to show a progress bar.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        T, transposed.
    components_variance_ : array of shape (n_components, n_features) or None
        Variances of T, transposed, if `loadings` has them.
    n_effective_components_ : int
        Number of components in use; the rest were not needed.
    log_unigram_ : array of shape (n_features,)
        m.
    training_log_unigram_ : array of shape (n_features,)
        Log uni-gram of the training corpus: the reference line of
        :meth:`perplexity`, and m itself if it is not learned.
    history_ : list of dict
        One row per pass: ``epoch``, ``bound``, ``kl`` (mean per document),
        ``sparsity``, ``seconds``.
    n_iter_ : int
        Passes done.
    converged_ : bool
        Whether the bound met `tol`.
    seed_ : int
        The seed drawn from `random_state`.
    vocabulary_ : Vocabulary or None
        Set by :meth:`set_vocabulary`.
    n_features_in_ : int
        Size V of the vocabulary.

    Notes
    -----
    Arithmetic is float32, unless the counts given to :meth:`fit` are float64. The
    bound is accumulated in float64. Sparse counts stay sparse; counts may be fractions.

    References
    ----------
    S. Kesiraju, O. Plchot, L. Burget, S. V. Gangashetty: Learning document
    embeddings along with their uncertainties. IEEE/ACM Transactions on Audio,
    Speech and Language Processing 28, 2020.

    Examples
    --------
    >>> from docsigma import BayesianSMM, load_corpus
    >>> corpus = load_corpus("synthetic")
    >>> smm = BayesianSMM(n_components=5, max_iter=50, random_state=0)
    >>> smm = smm.fit(corpus.train.counts)
    >>> q = smm.posterior(corpus.test.counts)
    >>> q.mean.shape, q.variance.shape
    ((100, 5), (100, 5))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SubspaceModel._shared_constraints,
        "l1": [Interval(Real, 0, None, closed="left"), None],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "init_variance": [Interval(Real, 0, None, closed="neither")],
        "output": [StrOptions({"mean", "mean_variance"})],
        # Names are checked when used: a kind may be registered later.
        "likelihood": [str, Likelihood],
        "prior": [str, Prior],
        "covariance": [str, CovarianceFamily],
        "loadings": [str, Loadings],
    }

    def __init__(
        self,
        n_components: int = 100,
        *,
        prior_precision: float = 10.0,
        l1: float | None = None,
        l2: float = 0.0,
        likelihood: str | Likelihood = "multinomial",
        prior: str | Prior = "isotropic",
        covariance: str | CovarianceFamily = "diagonal",
        loadings: str | Loadings = "auto",
        learn_log_unigram: bool = True,
        solver: str = "fast",
        max_iter: int | None = None,
        tol: float = 1e-6,
        learning_rate: float | None = None,
        batch_size: int = 1024,
        n_draws: int = 1,
        init_variance: float = 0.1,
        init_scale: float = 1e-3,
        inference_max_iter: int = 200,
        inference_tol: float = 0.04,
        rounding: Rounding = "tf32",
        output: str = "mean",
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.prior_precision = prior_precision
        self.l1 = l1
        self.l2 = l2
        self.likelihood = likelihood
        self.prior = prior
        self.covariance = covariance
        self.loadings = loadings
        self.learn_log_unigram = learn_log_unigram
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_draws = n_draws
        self.init_variance = init_variance
        self.init_scale = init_scale
        self.inference_max_iter = inference_max_iter
        self.inference_tol = inference_tol
        self.rounding = rounding
        self.output = output
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def paper(cls, n_components: int = 100, **parameters: Any) -> BayesianSMM:
        """Return the model of the paper: point loadings, l1 of 1, Algorithm 1.

        Examples
        --------
        >>> BayesianSMM.paper(50, max_iter=300)
        BayesianSMM(l1=1.0, loadings='point', max_iter=300, n_components=50,
                    solver='paper')
        """
        settings = {"loadings": "point", "l1": 1.0, "solver": "paper", **parameters}
        return cls(n_components, **settings)

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: CountsLike, y: object = None) -> Self:  # noqa: ARG002
        """Learn from a stream of documents, each seen once.

        Each call makes one pass over its documents in minibatches: their posteriors
        are inferred, then T and m take a step. Steps get shorter from call to call.
        :meth:`fit`, which sees documents many times, learns more from the same ones.

        Parameters
        ----------
        X : array, sparse matrix or Counts of shape (n_documents, n_features)
            Word counts. Training starts from those of the first call, which should
            have at least some thousand documents.
        y : ignored
            For scikit-learn.

        Returns
        -------
        self
        """
        first = not hasattr(self, "components_")
        if self.views_ is not None:
            raise InputError(
                f"`partial_fit` learns one view, and the model has {len(self.views_)}: "
                "use `fit`"
            )
        if isinstance(self._parts().prior, CovariatePrior):
            raise InputError(
                "`partial_fit` learns no prior, so it takes no covariates: use `fit`, "
                "or `learn_prior` afterwards"
            )
        if first:
            counts, self.seed_ = self._begin(X)
            self.history_: list[dict[str, Any]] = []
            self.n_iter_, self.converged_, self.vocabulary_ = 0, False, None
            self.parts_ = self._parts()
        else:
            counts = self._check_counts(X, reset=False)
        if not hasattr(self, "_stream"):
            # A model keeps its dtype; counts on disk are always float32.
            rate = self.minibatch_settings.learning_rate(self.n_components)
            self._stream = StreamTrainer(
                self.parts_,
                self._empty(counts if first else self.components_),
                n_features=counts.shape[1],
                n_components=self.n_components,
                learning_rate=self.learning_rate or rate,
                batch_size=self.batch_size,
                learn_bias=self.learn_log_unigram,
                seed=self.seed_,
                settings=self.minibatch_settings,
            )
            if not first:
                shares = np.exp(self.training_log_unigram_)
                n_tokens = self.trained_on_["n_tokens"]
                self._stream.resume(self._model(), n_tokens * shares)
        with self._arithmetic():
            row = self._stream.learn(counts.iter_blocks())
        columns, bias = self._stream.fitted()
        self._set_columns(columns)
        self.log_unigram_ = bias.cpu().numpy().copy()
        self.training_log_unigram_ = self._stream.log_unigram()
        self.n_iter_ += 1
        if not first:
            self._note_training(counts)
        self.history_.append({"epoch": self.n_iter_, **row})
        return self

    def _adopt(self, trainer: Trainer) -> Self:
        self.__dict__.pop("_stream", None)
        return super()._adopt(trainer)

    def learn_prior(self, X: CountsLike, covariates: ArrayLike) -> BayesianSMM:
        r"""Return the same words with a prior of covariates, learned from documents.

        What `fit` with ``prior="covariates"`` learns besides the words, for a model
        that is fitted already: other covariates can be tried in seconds.

        Parameters
        ----------
        X : array, sparse matrix or Counts of shape (n_documents, n_features)
            Word counts.
        covariates : array of shape (n_documents,) or (n_documents, n_covariates)

        Examples
        --------
        >>> from docsigma import load_corpus
        >>> counts = load_corpus("synthetic").train.counts
        >>> smm = BayesianSMM(3, max_iter=20, random_state=0).fit(counts)
        >>> early = (np.arange(counts.shape[0]) < 100).astype(float)
        >>> smm.learn_prior(counts, early).parts_.prior.weights_.shape
        (1, 3)
        """
        check_is_fitted(self)
        return learn_covariate_prior(self, X, covariates)

    def principal_axes(self) -> BayesianSMM:
        r"""Return the same model in the axes that suit diagonal covariances best.

        The prior is isotropic, so rotating :math:`T` and the embeddings does not
        change the probability of any document. In the axes of this method, the
        components of :math:`T` are uncorrelated under the uni-gram: there the true
        posterior of a short document is nearly diagonal, and the bound is tighter.
        Components are sorted by their variance, largest first. The price is sparsity:
        only words without any loading keep their zeros. Of the variances of words,
        those along the new axes are kept.

        Examples
        --------
        >>> from docsigma import load_corpus
        >>> corpus = load_corpus("synthetic")
        >>> smm = BayesianSMM(n_components=5, max_iter=50, random_state=0)
        >>> turned = smm.fit(corpus.train.counts).principal_axes()
        >>> test = corpus.test.counts
        >>> bool(turned.perplexity(test).corpus < smm.perplexity(test).corpus)
        True
        """
        check_is_fitted(self)
        prior = self.parts_.prior.gaussian(self.n_components)
        if prior.form != "isotropic" or prior.mean.any():
            raise InputError(
                f"principal axes need a prior that is the same in all directions, got "
                f"{self.parts_.prior!r}"
            )
        loadings, bias = (
            torch.from_numpy(np.array(array, dtype=np.float64))
            for array in (self.components_.T, self.log_unigram_)
        )
        tensors = self.parts_.prior.tensors(self.n_components, loadings)
        axes = LoadingsBasis(loadings, bias, tensors, self._views()).vectors.flip(1)
        # An axis and its opposite are equivalent: the largest entry becomes positive.
        largest = axes.abs().argmax(dim=0, keepdim=True)
        axes = axes * axes.gather(0, largest).sign()
        turned = copy.copy(self)
        turned.__dict__.pop("_stream", None)
        # Further training appends to it, and must not append to this model's.
        turned.history_ = list(self.history_)
        turned.components_ = np.ascontiguousarray(
            (loadings @ axes).T.numpy(), self.components_.dtype
        )
        if self.components_variance_ is not None:
            squares = axes.square().numpy()
            variance = squares.T @ self.components_variance_
            turned.components_variance_ = variance.astype(self.components_.dtype)
            turned.parts_ = copy.deepcopy(self.parts_)
            turned.parts_.loadings.turn(squares)
        return turned

    @property
    def n_effective_components_(self) -> int:
        """Number of components in use."""
        check_is_fitted(self)
        return self.parts_.loadings.n_effective(self.components_, self.log_unigram_)

    def words(self) -> GaussianPosterior:
        """Return each word's Gaussian, in the order of the vocabulary.

        The variances of rare words are large, those of frequent words small.

        Examples
        --------
        >>> from docsigma import load_corpus
        >>> train = load_corpus("synthetic").train
        >>> smm = BayesianSMM(3, max_iter=20, random_state=0).fit(train.counts)
        >>> words, frequency = smm.words(), train.counts.sum(axis=0)
        >>> rare, frequent = frequency.argmin(), frequency.argmax()
        >>> variance = words.total_variance
        >>> bool(variance[rare] > variance[frequent])
        True
        """
        loadings = self._gaussian_loadings()
        assert self.components_variance_ is not None
        prior = GaussianPrior(np.zeros(self.n_components), 1 / loadings.prior_variance_)
        variance = self.components_variance_.T
        return GaussianPosterior(self.components_.T, variance, prior=prior)

    def similar_words(self, word: str | int, n: int = 10) -> list[tuple[Any, float]]:
        r"""Return the `n` words most similar to a word, with their similarities.

        The similarity is a cosine between loadings, in units of their effect on a
        document's logits, with expected squared lengths
        :math:`\sum_k E[w_k^2](M_k^2 + S_k^2)`: the more uncertain a word, the less
        similar it is to any other. Without a vocabulary, words are column numbers.
        """
        words, unit = self.words(), self._gaussian_loadings().second_moment_
        if n < 1:
            raise InputError(f"`n` must be at least 1, got {n}")
        terms = None if self.vocabulary_ is None else list(self.vocabulary_.words)
        row = _column(word, terms, len(words))
        mean = words.mean.astype(np.float64)
        length = np.sqrt((mean**2 + words.variance) @ unit)
        alike = (mean * unit) @ mean[row] / (length * length[row])
        alike[row] = -np.inf
        best = np.argsort(-alike, kind="stable")[: min(n, len(alike) - 1)]
        return [(int(i) if terms is None else terms[i], float(alike[i])) for i in best]

    def _gaussian_loadings(self) -> GaussianLoadings:
        check_is_fitted(self)
        loadings = self.parts_.loadings
        if not isinstance(loadings, GaussianLoadings):
            raise InputError(
                f"words have no variances under the loadings {loadings!r}: fit with "
                'loadings="gaussian"'
            )
        return loadings

    def _parts(self) -> Parts:
        loadings = self.loadings
        if isinstance(loadings, str) and loadings == "auto":
            point = self.l1 is not None or self.l2 > 0 or self.solver == "paper"
            loadings = "point" if point else "gaussian"
        return Parts.of(
            likelihood=self.likelihood,
            prior=self.prior,
            covariance=self.covariance,
            loadings=loadings,
            prior_precision=self.prior_precision,
            l1=self.l1,
            l2=self.l2,
        )


def _column(word: str | int, terms: list[str] | None, n_words: int) -> int:
    if not isinstance(word, str):
        if not 0 <= word < n_words:
            raise InputError(f"`word` must be from 0 to {n_words - 1}, got {word}")
        return int(word)
    if terms is None:
        raise InputError(
            f"the model has no vocabulary to look up {word!r} in: pass the word's "
            "number, or call `set_vocabulary`"
        )
    if word not in terms:
        raise InputError(f"{word!r} is not among the {n_words} words of the vocabulary")
    return terms.index(word)
