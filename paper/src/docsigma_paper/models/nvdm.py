"""The neural variational document model as a scikit-learn estimator."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import torch
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from docsigma.exceptions import InputError
from docsigma.models._gaussian_model import GaussianModel
from docsigma.parts import Parts, under
from docsigma.posterior import GaussianPosterior
from docsigma_paper.models.nvdm_network import (
    ACTIVATIONS,
    PRIOR,
    NVDMNetwork,
    encoder_shapes,
)
from docsigma_paper.models.nvdm_trainer import NVDMTrainer

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    import numpy as np
    import scipy.sparse as sp
    from numpy.typing import NDArray

    from docsigma.covariances import DiagonalGaussians
    from docsigma.models._count_model import CountsLike
    from docsigma.models.training_pass import TrainingPass
    from docsigma.objective import Model
    from docsigma.persistence import StoredModel
    from docsigma.trainers import Trainer


PREFIX = "encoder."


class NVDM(GaussianModel):
    r"""Neural variational document model: documents as Gaussians, by a network.

    A document's word counts come from a multinomial over an embedding, as in
    :class:`~docsigma.models.bayesian_smm.BayesianSMM` (Miao, Yu and Blunsom, 2016):

    .. math::
        h \sim N(0, I), \qquad
        \theta = \mathrm{softmax}(R h + b), \qquad
        x \sim \mathrm{Multinomial}(\theta; N).

    Its Gaussian :math:`q(h) = N(\mu, \mathrm{diag}(\sigma^2))` is not found by
    maximising the document's own bound: a perceptron, the encoder, computes
    :math:`\mu` and :math:`\log\sigma` from the counts. Training maximises the sum of
    the documents' evidence lower bounds over the weights of the decoder and of the
    encoder, by turns. This is the paper's baseline.

    Parameters
    ----------
    n_components : int, default=50
        Size K of an embedding.
    hidden_units : int, default=500
        Width of each hidden layer of the encoder.
    n_layers : int, default=2
        Hidden layers of the encoder.
    activation : {"relu", "sigmoid", "tanh"}, default="tanh"
        What follows each hidden layer.
    max_iter : int, default=50
        Most rounds. A round is twice `alternate_passes` passes over the
        corpus.
    alternate_passes : int, default=10
        Passes of a round that move the decoder alone; as many then move the encoder
        alone.
    tol : float, default=1e-5
        Training ends when the bound, averaged over five rounds, grows by less than
        `tol` of itself per round. 0 means that only `max_iter` ends it.
    learning_rate : float, default=2e-4
        Adam's step size. The default is for thousands of documents; a few hundred
        need some 1e-3.
    batch_size : int, default=64
        Documents in a minibatch.
    n_draws : int, default=1
        Draws per document and step, in training.
    output : {"mean", "mean_variance"}, default="mean"
        Result of :meth:`transform`: K means, or K means and K variances.
    device : str, default="auto"
        ``"cpu"``, ``"cuda"``, any torch device, or ``"auto"``: the GPU if there is
        one.
    random_state : int, RandomState instance or None, default=None
        Decides the first weights, the order of documents and all noise; an int gives
        the same result each time.
    verbose : bool, default=False
        Whether a progress bar is shown.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        R, transposed.
    log_unigram_ : array of shape (n_features,)
        b, which starts at the log uni-gram.
    encoder_ : dict of arrays
        Weights of the encoder by name: ``hidden1.weight``, ``hidden1.bias``, and so
        on; ``mean.weight``, ``mean.bias``, ``log_std.weight``, ``log_std.bias``.
    training_log_unigram_ : array of shape (n_features,)
        Log uni-gram of the training corpus: the reference line of
        :meth:`perplexity`.
    history_ : list of dict
        One row per round: ``epoch``, ``bound``, ``kl`` (mean per document),
        ``sparsity`` (of R), ``seconds``.
    n_iter_ : int
        Rounds done.
    converged_ : bool
        Whether the bound met `tol`.
    seed_ : int
        The seed drawn from `random_state`.
    vocabulary_ : Vocabulary or None
        The words, if :meth:`set_vocabulary` was called.
    n_features_in_ : int
        Size V of the vocabulary.

    Notes
    -----
    Arithmetic is float32, unless the counts given to :meth:`fit` are float64. Counts
    may be sparse and stay so: the first layer is a sparse product, and only the
    logits of one minibatch are dense.

    Trained for long, the model fits its training documents ever better and new ones
    worse. A `callback` such as
    :class:`~docsigma_paper.early_stopping.EarlyStopping` sees the model after
    each round.

    References
    ----------
    Y. Miao, L. Yu, P. Blunsom: Neural variational inference for text processing.
    International Conference on Machine Learning, 2016.

    Examples
    --------
    >>> from docsigma import load_corpus
    >>> from docsigma_paper import NVDM
    >>> corpus = load_corpus("synthetic")
    >>> nvdm = NVDM(5, hidden_units=20, max_iter=2, learning_rate=1e-3, random_state=0)
    >>> q = nvdm.fit(corpus.train.counts).posterior(corpus.test.counts)
    >>> q.mean.shape, q.variance.shape
    ((100, 5), (100, 5))
    """

    evidence_draws: ClassVar[int] = 20

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "hidden_units": [Interval(Integral, 1, None, closed="left")],
        "n_layers": [Interval(Integral, 1, None, closed="left")],
        "activation": [StrOptions(set(ACTIVATIONS))],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "alternate_passes": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "output": [StrOptions({"mean", "mean_variance"})],
        "device": [str],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_components: int = 50,
        *,
        hidden_units: int = 500,
        n_layers: int = 2,
        activation: str = "tanh",
        max_iter: int = 50,
        alternate_passes: int = 10,
        tol: float = 1e-5,
        learning_rate: float = 2e-4,
        batch_size: int = 64,
        n_draws: int = 1,
        output: str = "mean",
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.hidden_units = hidden_units
        self.n_layers = n_layers
        self.activation = activation
        self.max_iter = max_iter
        self.alternate_passes = alternate_passes
        self.tol = tol
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_draws = n_draws
        self.output = output
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: CountsLike,
        y: object = None,  # noqa: ARG002
        *,
        callback: Callable[[TrainingPass], object] | None = None,
    ) -> Self:
        """Learn decoder and encoder from word counts.

        Parameters
        ----------
        X : array, sparse matrix or Counts of shape (n_documents, n_features)
            Word counts; those on disk are read a minibatch at a time.
        y : ignored
            For scikit-learn.
        callback : callable, default=None
            Called after each round with a
            :class:`~docsigma.models.training_pass.TrainingPass`: its number, the
            history, and a way to have the model as it is then. A true answer ends
            the training early.

        Returns
        -------
        self
        """
        counts, seed = self._begin(X)
        like = self._empty(counts)
        network = NVDMNetwork.initial(
            torch.from_numpy(self.training_log_unigram_).to(like),
            n_components=self.n_components,
            hidden_units=self.hidden_units,
            n_layers=self.n_layers,
            activation=self.activation,
            seed=seed,
        )
        trainer = NVDMTrainer(
            counts,
            network,
            alternate_passes=self.alternate_passes,
            learning_rate=float(self.learning_rate),
            batch_size=self.batch_size,
            n_draws=self.n_draws,
            seed=seed,
        )
        self._run(trainer, self.max_iter, callback)
        return self._adopt(trainer)

    def _adopt(self, trainer: Trainer) -> Self:
        super()._adopt(trainer)
        assert isinstance(trainer, NVDMTrainer)
        self.encoder_ = {
            name: tensor.detach().cpu().numpy().copy()
            for name, tensor in trainer.network.encoder.items()
        }
        return self

    def posterior(self, X: CountsLike) -> GaussianPosterior:
        """Return the Gaussian of each document: one pass through the encoder.

        A document with no known word gets the encoding of zeros, which is
        not exactly the prior.

        Parameters
        ----------
        X : array, sparse matrix or Counts of shape (n_documents, n_features)
            Word counts.

        Returns
        -------
        GaussianPosterior
        """
        check_is_fitted(self)
        counts = self._check_counts(X, reset=False)
        found = self._network().encode_counts(counts).arrays()
        prior = PRIOR.gaussian(self.n_components)
        return GaussianPosterior(
            **found,
            prior=prior,
            n_tokens=counts.n_tokens,
            model_digest=self.digest,
        )

    def _model(self) -> Model:
        parts = Parts.of(prior=PRIOR)
        return parts.model(*self._tensors())

    def _infer(self, counts: sp.csr_matrix) -> DiagonalGaussians:
        return self._network().encode_counts(counts)

    def _network(self) -> NVDMNetwork:
        loadings, bias = self._tensors()
        encoder = {
            name: torch.from_numpy(array).to(bias.device)
            for name, array in self.encoder_.items()
        }
        decoder = {"loadings": loadings, "bias": bias}
        return NVDMNetwork(encoder, decoder, self.activation)

    def _learned_arrays(self) -> dict[str, NDArray[Any]]:
        encoder = {f"{PREFIX}{name}": array for name, array in self.encoder_.items()}
        return super()._learned_arrays() | encoder

    @classmethod
    def _unpack(cls, stored: StoredModel, folder: str | os.PathLike[str]) -> Self:
        model = super()._unpack(stored, folder)
        model.encoder_ = under(PREFIX, stored.arrays)
        size = (model.n_features_in_, model.n_components)
        expected = encoder_shapes(*size, model.hidden_units, model.n_layers)
        if {k: array.shape for k, array in model.encoder_.items()} != expected:
            raise InputError(
                f"{folder} is damaged: its encoder is not the one of {model.n_layers} "
                f"layers of {model.hidden_units} units that config.json describes"
            )
        return model
