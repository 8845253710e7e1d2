"""The paper's early stopping mechanism: topic ID at checkpoints of a training."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from docsigma.classifiers import UncertainGaussianClassifier
from docsigma.exceptions import InputError
from docsigma.metrics.classification import accuracy, cross_entropy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from docsigma.models import TrainingPass
    from docsigma.posterior import GaussianPosterior


@dataclass(frozen=True)
class CrossValidation:
    """Accuracy (per cent) and cross-entropy (nats) over all folds."""

    accuracy: float
    cross_entropy: float


@dataclass(frozen=True)
class Checkpoint:
    """Accuracy (per cent) and cross-entropy (nats) after `epoch` passes."""

    epoch: int
    accuracy: float
    cross_entropy: float


def cross_validate(
    features: NDArray[Any] | GaussianPosterior,
    labels: Sequence[str] | NDArray[Any],
    classifier: Any,
    *,
    n_folds: int = 5,
    random_state: int = 0,
) -> CrossValidation:
    """Evaluate a classifier on documents it has not seen, fold by fold.

    Parameters
    ----------
    features : array of shape (n_documents, n_features) or GaussianPosterior
        Input of the classifier.
    labels : sequence of str
        One per document.
    classifier : scikit-learn classifier
        Cloned for each fold; needs ``predict_log_proba``.
    n_folds : int, default=5
        Folds, stratified by label.
    random_state : int, default=0
        Decides the folds.

    Examples
    --------
    >>> from docsigma.classifiers import GaussianLinearClassifier
    >>> random = np.random.default_rng(0)
    >>> labels = np.repeat(["a", "b"], 50)
    >>> features = random.standard_normal((100, 2)) + 6 * (labels == "a")[:, None]
    >>> cross_validate(features, labels, GaussianLinearClassifier()).accuracy
    100.0
    """
    labels = np.asarray(labels)
    _, counts = np.unique(labels, return_counts=True)
    if len(counts) < 2 or counts.min() < 2:
        raise InputError(
            "cross-validation needs two classes and two documents in each, got "
            f"{len(counts)} classes, the smallest of {counts.min()}"
        )
    folds = StratifiedKFold(
        min(n_folds, int(counts.min())), shuffle=True, random_state=random_state
    )
    log_proba = np.empty((len(labels), len(counts)))
    for train, test in folds.split(features, labels):
        model = clone(classifier).fit(features[train], labels[train])
        log_proba[test] = model.predict_log_proba(features[test])
    # Every fold has every class, so all share one order of them.
    classes = np.unique(labels)
    return CrossValidation(
        100 * accuracy(np.exp(log_proba), labels, classes=classes),
        cross_entropy(log_proba, labels, classes=classes, log=True),
    )


class EarlyStopping:
    """A callback that evaluates topic ID at checkpoints and keeps the best model.

    It is a callback for ``fit`` of any model. At each checkpoint it embeds the training
    documents and evaluates a classifier on them by cross-validation. Without `patience`
    training runs to its end, so that the curve shows whether the model over-trains.

    Parameters
    ----------
    counts : sparse matrix
        The training documents.
    labels : sequence of str
        Their labels; the model never sees them.
    classifier : scikit-learn classifier, default=None
        Default is GLCU. A classifier of means alone needs ``variance=False``.
    every : int, default=50
        Passes between two checkpoints.
    variance : bool, default=True
        Whether the classifier needs a GaussianPosterior, or an array of means.
    criterion : {"cross_entropy", "accuracy"}, default="cross_entropy"
        Measure that selects the best model.
    patience : int, default=None
        Checkpoints without improvement after which the training ends.
    n_folds : int, default=5
        Folds of the cross-validation.

    Attributes
    ----------
    curve : list of Checkpoint
        All checkpoints.
    best, best_model : Checkpoint and fitted model, or None
        The best checkpoint, and the model at that point.

    Examples
    --------
    >>> from docsigma import BayesianSMM, load_corpus
    >>> corpus = load_corpus("synthetic")
    >>> labels = np.where(corpus.truth.train_embeddings[:, 0] > 0, "up", "down")
    >>> stop = EarlyStopping(corpus.train.counts, labels, every=10)
    >>> smm = BayesianSMM(4, solver="paper", max_iter=30, learning_rate=0.05)
    >>> smm = smm.fit(corpus.train.counts, callback=stop)
    >>> [point.epoch for point in stop.curve]
    [10, 20, 30]
    """

    def __init__(
        self,
        counts: Any,
        labels: Sequence[str] | NDArray[Any],
        classifier: Any = None,
        *,
        every: int = 50,
        variance: bool = True,
        criterion: str = "cross_entropy",
        patience: int | None = None,
        n_folds: int = 5,
    ) -> None:
        if len(labels) != counts.shape[0]:
            raise InputError(
                f"there are {len(labels)} labels for {counts.shape[0]} documents"
            )
        if criterion not in {"cross_entropy", "accuracy"}:
            raise InputError(
                f"`criterion` must be cross_entropy or accuracy, got {criterion!r}"
            )
        if every < 1:
            raise InputError(f"`every` must be at least 1, got {every}")
        self.counts = counts
        self.labels = labels
        self.classifier = classifier
        self.every = every
        self.variance = variance
        self.criterion = criterion
        self.patience = patience
        self.n_folds = n_folds
        self.curve: list[Checkpoint] = []
        self.best: Checkpoint | None = None
        self.best_model: Any = None

    def __call__(self, now: TrainingPass) -> bool:
        """Evaluate the model if this is a checkpoint; true ends the training."""
        if now.epoch % self.every:
            return False
        model = now.snapshot()
        if self.variance:
            features = model.posterior(self.counts)
        else:
            # A model of points has no posterior; another may give its variances too.
            features = model.transform(self.counts)[:, : len(model.components_)]
        classifier = self.classifier
        if classifier is None:
            classifier = UncertainGaussianClassifier()
        seen = cross_validate(features, self.labels, classifier, n_folds=self.n_folds)
        point = Checkpoint(now.epoch, seen.accuracy, seen.cross_entropy)
        self.curve.append(point)
        if self.best is None or self._better(point, self.best):
            self.best, self.best_model = point, model
        if self.patience is None:
            return False
        since = len(self.curve) - 1 - self.curve.index(self.best)
        return since >= self.patience

    def _better(self, one: Checkpoint, other: Checkpoint) -> bool:
        if self.criterion == "accuracy":
            return one.accuracy > other.accuracy
        return one.cross_entropy < other.cross_entropy

    def rows(self) -> list[dict[str, Any]]:
        """Return the curve as plain dictionaries."""
        return [asdict(point) for point in self.curve]
