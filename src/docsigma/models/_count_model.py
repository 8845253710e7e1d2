"""The base class of all models of word counts."""

from __future__ import annotations

import hashlib
import warnings
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakKeyDictionary

import numpy as np
import torch
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    clone,
)
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from tqdm import tqdm

from docsigma._devices import check_memory, choose_device
from docsigma.counts import Vocabulary
from docsigma.counts.memory import estimator_counts
from docsigma.counts.sorted_counts import log_unigram
from docsigma.exceptions import InputError
from docsigma.metrics.variances import LENGTHS, calibrate_variances
from docsigma.models import _storage
from docsigma.models.training_pass import TrainingPass
from docsigma.persistence import read_model, write_model

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence

    import scipy.sparse as sp
    from numpy.typing import ArrayLike, NDArray
    from sklearn.feature_extraction.text import CountVectorizer

    from docsigma.counts import Counts
    from docsigma.metrics.variances import VarianceCalibration
    from docsigma.persistence import StoredModel
    from docsigma.posterior import GaussianPosterior
    from docsigma.trainers import Trainer

    CountsLike = ArrayLike | sp.csr_matrix | Counts

# Digests of models with the loadings they belong to: training makes new loadings.
_DIGESTS: WeakKeyDictionary[Any, tuple[Any, str]] = WeakKeyDictionary()


class CountModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A transformer from word counts to embeddings, with an optional vocabulary.

    A subclass has the parameter ``output``, sets ``components_`` in ``fit``, and
    defines :meth:`posterior`.
    """

    tol: float
    n_components: int
    output: str
    device: str
    random_state: int | np.random.RandomState | None
    verbose: bool
    n_features_in_: int
    components_: NDArray[Any]
    log_unigram_: NDArray[Any]
    training_log_unigram_: NDArray[np.float64]
    history_: list[dict[str, Any]]
    n_iter_: int
    converged_: bool
    seed_: int
    vocabulary_: Vocabulary | None
    # What an embedder was calibrated on, as numbers, until the words change.
    reference_: NDArray[Any] | None = None
    # Sizes of the training corpus, and its name if known.
    trained_on_: dict[str, Any]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def gives_points(self) -> bool:
        """Whether documents become points without uncertainty, not Gaussians."""
        return False

    @property
    def digest(self) -> str:
        """Checksum of all that was learned, without the vocabulary.

        Posteriors carry it, so that those of two models are not mixed up.
        """
        check_is_fitted(self)
        known, digest = _DIGESTS.get(self, (None, ""))
        if known is not self.components_:
            found = hashlib.sha256()
            for name, array in sorted(self._digested_arrays().items()):
                found.update(f"{name} {array.dtype} {array.shape} ".encode())
                found.update(np.ascontiguousarray(array).data)
            digest = found.hexdigest()
            _DIGESTS[self] = self.components_, digest
        return digest

    def _adopt_digest(self, other: CountModel) -> None:
        """Pass for `other`, whose embeddings are the same."""
        _DIGESTS[self] = self.components_, other.digest

    def posterior(self, X: CountsLike) -> GaussianPosterior:
        """Infer the Gaussian of each document."""
        raise NotImplementedError

    def calibration(
        self,
        X: CountsLike,
        *,
        texts: Iterable[object] | None = None,
        lengths: Sequence[float] = LENGTHS,
        random_state: int = 0,
    ) -> VarianceCalibration:
        """Test the variances on parts of documents, without labels.

        Parameters
        ----------
        X : array, sparse matrix or Counts of shape (n_documents, n_features)
            Word counts, preferably not those of the training.
        texts : list or column of str, default=None
            The same documents as texts. Without them, or if the vocabulary has pairs of
            words, parts are random words only, not the first ones.
        lengths, random_state
            As for :func:`~docsigma.metrics.variances.calibrate_variances`.

        Returns
        -------
        VarianceCalibration
        """
        check_is_fitted(self)
        if self.gives_points:
            raise InputError(
                f"{type(self).__name__} gives points here, not Gaussians: there are no "
                "variances to test"
            )
        words, order = self.vocabulary_, None
        if texts is not None and words is not None and words.ngram_range == (1, 1):
            order = words.in_order(texts)
        counts = self._check_counts(X, reset=False)[:]
        return calibrate_variances(
            self.posterior, counts, order, lengths=lengths, random_state=random_state
        )

    def transform(self, X: CountsLike) -> NDArray[Any]:
        """Return the embeddings: K means, or K means and variances (see `output`)."""
        if self.output == "mean":
            return self._means(X)
        q = self.posterior(X)
        return np.hstack([q.mean, q.variance])

    def _means(self, X: CountsLike) -> NDArray[Any]:
        return self.posterior(X).mean.copy()

    def set_vocabulary(
        self, words: Vocabulary | CountVectorizer | Sequence[str]
    ) -> Self:
        """Attach the words, which are then saved with the model.

        Parameters
        ----------
        words : Vocabulary, fitted CountVectorizer, or sequence of str
            One word per column of the training counts.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        if isinstance(words, Vocabulary):
            vocabulary = words
        elif hasattr(words, "build_analyzer"):
            vocabulary = Vocabulary.from_vectorizer(words)
        else:
            vocabulary = Vocabulary.from_words(list(words))
        if len(vocabulary) != self.n_features_in_:
            raise InputError(
                f"the vocabulary has {len(vocabulary)} words, the model was fitted on "
                f"{self.n_features_in_}"
            )
        self.vocabulary_ = vocabulary
        return self

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the model to a folder: safetensors, JSON and a README.

        A folder that exists is refused without `overwrite`, unless it is empty.
        """
        from docsigma.models.card import model_card

        check_is_fitted(self)
        write_model(folder, self._pack(), model_card(self), overwrite=overwrite)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Read what :meth:`save` wrote; no code is run."""
        return cls._unpack(read_model(folder, cls.__name__), folder)

    def _learned_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that was learned, without the vocabulary."""
        return _storage.learned_arrays(self)

    def _digested_arrays(self) -> dict[str, NDArray[Any]]:
        """Return what determines the embeddings."""
        return self._learned_arrays()

    def _pack(self) -> StoredModel:
        """Return the model as it is saved."""
        return _storage.pack(self)

    @classmethod
    def _unpack(cls, stored: StoredModel, folder: str | os.PathLike[str]) -> Self:
        """Restore what :meth:`_pack` returned; `folder` is for error messages."""
        return _storage.unpack(cls, stored, folder)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Return the names of the columns of :meth:`transform`."""
        names: NDArray[Any] = super().get_feature_names_out(input_features)
        if self.output == "mean":
            return names
        variances = [f"{name}_variance" for name in names]
        return np.asarray([*names, *variances], dtype=object)

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def _begin(self, X: CountsLike, n_ranks: int = 1) -> tuple[Counts, int]:
        """Return the counts to train on, in `n_ranks` processes, and the seed."""
        counts = self._check_counts(X, reset=True)
        if not counts.n_tokens.sum() > 0:
            raise InputError(
                f"the {counts.shape[0]} documents hold no word: every count is zero"
            )
        self._check_size(*counts.shape, n_ranks)
        self.training_log_unigram_ = log_unigram(counts.word_totals)
        self.trained_on_ = {}
        self._note_training(counts)
        state = check_random_state(self.random_state)
        return counts, int(state.randint(np.iinfo(np.int32).max))

    def _note_training(self, counts: Counts) -> None:
        """Add the sizes of `counts` to those of the training corpus."""
        more = {"n_documents": len(counts), "n_tokens": int(counts.n_tokens.sum())}
        known = self.trained_on_
        # A new dictionary: copies of the model share the old one.
        self.trained_on_ = known | {k: n + known.get(k, 0) for k, n in more.items()}

    def _check_size(self, n_documents: int, n_features: int, n_ranks: int) -> None:
        """Refuse more components than fit in memory; warn if they exceed documents."""
        k = self.n_components
        # Loadings with both moments of their optimiser; means and spreads of documents.
        numbers = 3 * n_features * k + 2 * -(-n_documents // n_ranks) * k
        what = f"`n_components`={k} for {n_documents} documents and {n_features} words"
        check_memory(4 * numbers, choose_device(self.device), what)
        if k > n_documents:
            warnings.warn(
                f"`n_components`={k} is more than the {n_documents} documents: fewer "
                "components hold as much information",
                UserWarning,
                stacklevel=4,
            )

    def _empty(self, like: Counts | NDArray[Any]) -> torch.Tensor:
        """Return an empty tensor with the dtype and the device of the training."""
        dtype = torch.float64 if like.dtype == np.float64 else torch.float32
        return torch.empty(0, dtype=dtype, device=choose_device(self.device))

    def _run(
        self,
        trainer: Trainer,
        max_iter: int,
        callback: Callable[[TrainingPass], object] | None,
        save: Callable[[Trainer], None] | None = None,
    ) -> None:
        """Train with a progress bar; `save` is called after each pass."""

        def after(_: Trainer) -> bool:
            epoch, rate = trainer.history[-1], bar.format_dict["rate"] or 0.0
            shown = {
                "bound": f"{epoch.bound:.5g}",
                "KL": f"{epoch.kl:.1f}",
                "doc/s": f"{rate * trainer.n_documents:.0f}",
            }
            bar.set_postfix(shown, refresh=False)
            bar.update()
            stop = callback is not None and bool(callback(self._pass(trainer)))
            stop = trainer.ranks.any(stop)
            if save is not None:
                save(trainer)
            return stop

        hidden, done = not self.verbose, trainer.epoch
        about: dict[str, Any] = {"desc": "training", "unit": "pass"}
        with tqdm(total=max_iter, initial=done, disable=hidden, **about) as bar:
            self.converged_ = trainer.run(max_iter, self.tol, after)

    def _adopt(self, trainer: Trainer) -> Self:
        """Set the fitted attributes from a training."""
        columns, bias = trainer.fitted()
        self._set_columns(columns)
        self.log_unigram_ = bias.cpu().numpy().copy()
        self.history_ = trainer.rows()
        self.n_iter_ = trainer.epoch
        self.seed_ = trainer.seed
        self.vocabulary_ = None
        return self

    def _set_columns(self, columns: torch.Tensor) -> None:
        """Set ``components_`` from the loadings."""
        self.reference_ = None
        self.components_ = columns.t().cpu().numpy().copy()

    def _pass(self, trainer: Trainer) -> TrainingPass:
        def snapshot() -> CountModel:
            model: CountModel = clone(self)
            for name in ("n_features_in_", "feature_names_in_"):
                if hasattr(self, name):
                    setattr(model, name, getattr(self, name))
            model.training_log_unigram_ = self.training_log_unigram_
            model.trained_on_ = self.trained_on_
            model.converged_ = False
            self._prepare_snapshot(model)
            return model._adopt(trainer)

        return TrainingPass(trainer.epoch, trainer.rows, snapshot)

    def _prepare_snapshot(self, model: CountModel) -> None:
        """Copy what `model` needs besides parameters and words."""

    def _tensors(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return T and m on the device."""
        device = choose_device(self.device)
        loadings = torch.from_numpy(np.ascontiguousarray(self.components_.T))
        return loadings.to(device), torch.from_numpy(self.log_unigram_).to(device)

    def _check_counts(self, X: CountsLike, *, reset: bool) -> Counts:
        like = None if reset else self.components_.dtype
        return estimator_counts(self, X, reset=reset, like=like)
