"""What a classifier of counts promises, once it is calibrated."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from docsigma._array_checks import Floats
from docsigma.classifiers._base import BaseClassifier
from docsigma.classifiers._labels import encode
from docsigma.classifiers.guarantees import Guarantees, with_cut_copies
from docsigma.exceptions import InputError
from docsigma.models.components import known_words

if TYPE_CHECKING:
    from docsigma.classifiers.documents import EmbeddedDocuments
    from docsigma.models._count_model import CountModel


class Promises(BaseClassifier):
    """Sets, risk and p-values from documents that nothing was fitted to."""

    _guarantees: Guarantees | None
    model_: CountModel
    classifier_: Any

    def predict(
        self,
        X: Any,
        *,
        reject: float = 0.0,
        unknown: Any = None,
        level: float = 0.05,
    ) -> NDArray[Any]:
        """Return the label of each document.

        Parameters
        ----------
        X : matrix of shape (n_documents, n_words) or EmbeddedDocuments
            Word counts.
        reject : float
            Least probability of a label, None is returned below it; :meth:`reject`
            chooses one by risk.
        unknown : object, optional
            What to return for documents that belong to none of the classes: those whose
            `unknown_p_value` is at most `level`.
        level : float
            Share of documents of known classes that may be called unknown.
        """
        if not isinstance(reject, Real) or not reject >= 0:
            raise InputError(f"`reject` must be a probability, got {reject!r}")
        if unknown is not None and unknown in self.classes_.tolist():
            raise InputError(f"`unknown` is {unknown}, which is one of the classes")
        documents = self._documents(X)
        labels = chosen_labels(self.predict_log_proba(documents), self.classes_, reject)
        if unknown is not None:
            if not 0 < level < 1:
                raise InputError(f"`level` must be between 0 and 1, got {level:g}")
            labels = labels.astype(object)
            labels[self.unknown_p_value(documents) <= level] = unknown
        return labels

    def predict_sets(self, X: Any, coverage: float = 0.9) -> NDArray[np.bool_]:
        """Return which labels may be right, documents x classes.

        The true one is among them for the share `coverage` of documents like those of
        :meth:`calibrate`, or more. The most probable label is always in the set; a
        document without known words may be anything.
        """
        documents = self._documents(X)
        return self.sets_of(documents, self.predict_proba(documents), coverage)

    def sets_of(
        self, documents: EmbeddedDocuments, proba: Floats, coverage: float = 0.9
    ) -> NDArray[np.bool_]:
        """Return the sets of documents whose probabilities are known already."""
        chosen = self.guarantees.sets(proba, documents.lengths, coverage)
        return np.asarray(chosen | (documents.n_tokens == 0)[:, None])

    def reject(self, risk: float = 0.05, confidence: float = 0.9) -> float:
        """Return the least probability at which to answer, for `predict`.

        At most the share `risk` of the answers is then wrong, with the probability
        `confidence`; infinite where the documents of :meth:`calibrate` are too few.
        """
        return self.guarantees.reject(risk, confidence)

    def unknown_p_value(self, X: Any) -> Floats:
        """Return a p-value of each document belonging to one of the known classes.

        Of documents like those of :meth:`calibrate` at most the share p has a value of
        p or less, whatever their length.
        """
        documents = self._documents(X)
        familiarity = self._familiarity(documents)
        found = self.guarantees.p_values(familiarity, documents.lengths)
        # Nothing speaks against a document without words, known or not.
        return np.asarray(np.where(documents.lengths == 0, 1.0, found))

    def _familiarity(self, documents: EmbeddedDocuments) -> Floats:
        """Return how much documents are like those of training."""
        return np.asarray(self.classifier_.familiarity(self._input(documents)))

    @property
    def guarantees(self) -> Guarantees:
        """What the documents of :meth:`calibrate` promise."""
        check_is_fitted(self)
        if self._guarantees is None:
            raise InputError(
                f"this classifier ({self._kind_name}) promises nothing yet: "
                "`calibrate` it on labelled documents that it has not seen"
            )
        return self._guarantees

    @property
    def is_calibrated(self) -> bool:
        """Whether :meth:`calibrate` was called."""
        check_is_fitted(self)
        return self._guarantees is not None

    def calibrate(self, X: Any, y: Any, *, is_cut: Any = None) -> Self:
        """Learn what can be promised from labelled documents not seen before.

        Neither the classifier nor the model may have been fitted to them.

        Parameters
        ----------
        X : matrix of shape (n_documents, n_words) or EmbeddedDocuments
            Word counts.
        y : array-like of shape (n_documents,)
            Labels, all of known classes.
        is_cut : array-like of shape (n_documents,), optional
            Which documents are cut copies of others: they stand for short ones where
            there are too few.
        """
        documents = self._documents(X)
        codes, n = encode(y, self.classes_, len(documents)), len(documents)
        proba = self.predict_proba(documents)
        cut = np.zeros(n) if is_cut is None else np.asarray(is_cut, dtype=np.float64)
        self._guarantees = Guarantees(
            proba[np.arange(n), codes],
            proba.max(axis=1),
            documents.lengths,
            self._familiarity(documents),
            cut,
        )
        return self

    def calibrate_on_texts(self, texts: Sequence[str], y: Any) -> Self:
        """Calibrate on texts, with cut copies for lengths that few of them have."""
        counted = known_words(self.model_).count(texts)
        every, rows = with_cut_copies(texts, counted.n_tokens + counted.n_unknown)
        is_cut = np.arange(len(rows)) >= len(texts)
        return self.calibrate(
            self.embed_texts(every), np.asarray(y)[rows], is_cut=is_cut
        )


def chosen_labels(
    log_proba: Floats, classes: NDArray[Any], reject: float
) -> NDArray[Any]:
    """Return the most probable labels, None where they are not probable enough."""
    winners: NDArray[Any] = classes[log_proba.argmax(axis=1)]
    if reject <= 0:
        return winners
    winners = winners.astype(object)
    winners[np.exp(log_proba.max(axis=1)) < reject] = None
    return winners
