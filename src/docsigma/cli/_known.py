"""Counted documents whose labels a classifier knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docsigma.cli import _common
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from docsigma.classifiers import CountsClassifier


class KnownDocuments:
    """Counted documents of the classifier's classes."""

    def __init__(
        self, classifier: CountsClassifier, reader: _common.DocumentOptions, docs: str
    ) -> None:
        import numpy as np

        self.classifier = classifier
        self.source = reader.count(docs, classifier.model_)
        n_documents = len(self.source.counts)
        found = self.source.labels(slice(None))
        rows, labels = _common.labelled_rows(found, n_documents, docs, reader)
        known = np.isin(labels, classifier.classes_)
        if not known.any():
            classes = classifier.classes_
            raise InputError(
                f"none of the {len(labels)} documents has one of the classifier's "
                f"{len(classes)} classes ({_some(classes)}): their labels are "
                f"{_some(np.unique(labels))}"
            )
        self.rows, self.labels = rows[known], labels[known]
        self.n_unlabelled = n_documents - len(rows)
        self.n_unseen = int((~known).sum())
        self.unseen = sorted(set(labels[~known].tolist()))

    def calibrate(self) -> None:
        """Calibrate the classifier on the documents; texts are cut too."""
        if self.source.texts is None:
            documents = self.source.embedded_by(self.classifier, self.rows)
            self.classifier.calibrate(documents, self.labels)
        else:
            texts = list(self.source.texts(self.rows))
            self.classifier.calibrate_on_texts(texts, self.labels)

    def sets(self, proba: Any, coverage: float) -> Any:
        """Return the prediction sets for these probabilities."""
        lengths = self.source.counts.n_tokens + self.source.n_unknown
        return self.classifier.guarantees.sets(proba, lengths[self.rows], coverage)

    def predict_log_proba(self) -> Any:
        """Return log probabilities, computed in blocks where documents are on disk."""
        import numpy as np

        from docsigma.counts._base import BLOCK

        size = len(self.rows) if self.source.counts.in_memory else BLOCK
        parts = []
        for some in np.split(self.rows, range(size, len(self.rows), size)):
            documents = self.source.embedded_by(self.classifier, some)
            parts.append(self.classifier.predict_log_proba(documents))
        return np.concatenate(parts)


def _some(names: Any) -> str:
    """Return the first few names."""
    shown = ", ".join(str(name) for name in names[:3])
    return f"{shown}, ..." if len(names) > 3 else shown
