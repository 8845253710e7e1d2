"""A corpus prepared once, so that a page can show it."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from docsigma._array_checks import Floats
from docsigma._files import harmless_cell
from docsigma.exceptions import InputError
from docsigma.explore.drift import compare_batches
from docsigma.explore.labels import Labels
from docsigma.explore.packing import pack, to_bytes
from docsigma.explore.predictions import Predictions, fit_few_labels
from docsigma.explore.projection import Projection, arrange_by_neighbours
from docsigma.explore.words import mark_words
from docsigma.groups.gaussians import Groups
from docsigma.groups.proposals import propose
from docsigma.models.components import known_words
from docsigma.search._measures import Wasserstein2
from docsigma.text import beginning

if TYPE_CHECKING:
    from pathlib import Path

    from docsigma.classifiers.counts_classifier import CountsClassifier
    from docsigma.models._count_model import CountModel
    from docsigma.posterior import GaussianPosterior
    from docsigma.search import DocumentIndex


class Workspace:
    """Documents as Gaussians, their map, topics, labels and predictions.

    Parameters
    ----------
    model : CountModel
        Must know its words.
    posterior : GaussianPosterior
        Embeddings of all documents; the first `n_old` are an old batch to compare with.
    ids, texts : sequence of str
        Ids and texts of the documents.
    given : sequence of str or None, default=None
        Their initial labels.
    n_topics : int, default=10
        Number of groups.
    n_unknown : array of shape (n_documents,), default=None
        Tokens per document that the model does not know.
    classifier : CountsClassifier, default=None
        Predicts until another is learned from labels.
    index : DocumentIndex, default=None
        Searches; by default documents are ranked by the distance of their Gaussians.
    labels_file : Path, default=None
        File that keeps the labels.
    numbers : sequence of int, default=None
        Rows of the documents in their file, as a spreadsheet counts them.
    """

    def __init__(
        self,
        model: CountModel,
        posterior: GaussianPosterior,
        ids: Sequence[str],
        texts: Sequence[str],
        given: Sequence[str | None] | None = None,
        *,
        n_topics: int = 10,
        n_old: int = 0,
        n_unknown: NDArray[Any] | None = None,
        classifier: CountsClassifier | None = None,
        index: DocumentIndex | None = None,
        labels_file: Path | None = None,
        numbers: Sequence[int] | None = None,
        title: str = "documents",
    ) -> None:
        self.words = known_words(model)
        if not len(posterior):
            raise InputError(f"{title} has no documents to show")
        self.model, self.posterior, self.title = model, posterior, title
        self.ids, self.texts, self.index = ids, texts, index
        self.numbers = numbers
        self.n_topics, self.n_old = n_topics, n_old
        self._n_unknown = n_unknown
        self.labels = Labels(ids, given, labels_file)
        self._counts = counts = self.words.count(texts).counts
        n_groups = min(n_topics, len(posterior))
        self.groups = Groups.fit(model, posterior, n_groups, counts=counts)
        # The page numbers topics by their place in the list.
        self.topic = np.unique(self.groups.of, return_inverse=True)[1]
        self.predictions: Predictions | None = None
        if classifier is not None:
            self.predictions = Predictions.of_texts(classifier, texts)
        # Their Euclidean distance is the Wasserstein-2 distance of diagonal Gaussians.
        self._vectors = Wasserstein2().vectors(posterior)
        self._squares = np.square(self._vectors).sum(axis=1)

    def __len__(self) -> int:
        return len(self.posterior)

    @cached_property
    def certainty(self) -> Floats:
        """Share of the prior's variance removed, per document, from 0 to 1."""
        prior = self.posterior.require_prior()
        before = float(np.sum(1 / prior.precision_diagonal()))
        return np.asarray(1 - self.posterior.total_variance / before)

    @cached_property
    def oddness(self) -> Floats:
        """Rank of each document's distance from the groups, from 0 to 1."""
        distances = self.groups.distances(self.posterior)
        ranks = np.searchsorted(np.sort(distances), distances, side="left")
        return np.asarray(ranks / len(self))

    def about(self) -> dict[str, Any]:
        """Return what the page needs to start, except the points."""
        odd = np.argsort(-self.oddness, kind="stable")[:20].tolist()
        return {
            "title": self.title,
            "n": len(self),
            "n_old": self.n_old,
            "n_components": self.posterior.n_components,
            "topics": [
                {"words": c.words, "size": c.size, "typical": self.rows(c.nearest)}
                for c in self.groups.found
            ],
            "odd": self.rows(odd),
            "unknown": self._unknown(),
            "drift": self.drift,
            "can_learn": True,
        }

    def _unknown(self) -> list[dict[str, Any]]:
        """Return the documents with most unknown tokens, half of them or more.

        Their embeddings are too uncertain for their distance from the topics to matter.
        """
        if self._n_unknown is None or self.posterior.n_tokens is None:
            return []
        n_tokens = self.posterior.n_tokens + self._n_unknown
        share = self._n_unknown / np.maximum(n_tokens, 1)
        order = np.argsort(-share, kind="stable")[:20]
        kept = order[share[order] >= 0.5]
        return self.rows(kept.tolist(), unknown=share[kept].tolist())

    def points(self) -> bytes:
        """Return positions, ellipses, certainty, topics and oddness of documents."""
        means = np.asarray(self.posterior.mean, dtype=np.float64)
        projection = Projection.principal(means)
        parts = [projection.points(means), projection.covariances(self.posterior)]
        columns = np.hstack(parts).astype(np.float32).T
        arrays: dict[str, NDArray[Any]] = {}
        arrays |= zip(("x", "y", "xx", "xy", "yy"), columns, strict=True)
        arrays["topic"] = self.topic.astype(np.int16)
        arrays["certainty"] = to_bytes(self.certainty)
        arrays["odd"] = to_bytes(self.oddness)
        return pack(arrays)

    @cached_property
    def neighbour_map(self) -> bytes:
        """Places of documents by their neighbours, computed when first asked for."""
        means = np.asarray(self.posterior.mean, dtype=np.float64)
        x, y = arrange_by_neighbours(means).astype(np.float32).T
        return pack({"x": x, "y": y})

    def state(self) -> bytes:
        """Return the current labels and predictions of all documents."""
        found = self.predictions
        classes = [] if found is None else found.classes
        names = list(dict.fromkeys([*self.labels.names(), *classes]))
        place = {name: number for number, name in enumerate(names)}
        label = np.full(len(self), -1, dtype=np.int16)
        for row, name in self.labels.of.items():
            label[row] = place[name]
        arrays: dict[str, NDArray[Any]] = {"label": label}
        if found is not None:
            code = np.array([place[name] for name in classes], dtype=np.int16)
            arrays["predicted"] = code[found.best]
            arrays["probability"] = to_bytes(found.proba.max(axis=1))
            arrays["doubt"] = to_bytes(found.doubt)
        return pack(arrays, names=names, n_labels=len(self.labels))

    def rows(self, rows: Sequence[int], **more: Sequence[Any]) -> list[dict[str, Any]]:
        """Return ids, excerpts and labels of documents, for a list."""
        return [
            {
                "row": int(row),
                "id": self.ids[row],
                "excerpt": beginning(self.texts[row], 140),
                "label": self.labels.of.get(int(row)),
                **{name: values[place] for name, values in more.items()},
            }
            for place, row in enumerate(rows)
        ]

    def document(self, row: int, n: int = 8) -> dict[str, Any]:
        """Return everything about one document."""
        if not 0 <= row < len(self):
            raise InputError(f"there is no document {row}: there are {len(self)}")
        text = self.texts[row]
        shown = text[:20_000]
        near, away = self._nearest(self._vectors[row], n + 1)
        kept = np.flatnonzero(near != row)[:n]
        distance = away[kept].astype(float).tolist()
        neighbours = self.rows(near[kept].tolist(), distance=distance)
        tokens = self.posterior.n_tokens
        found: dict[str, Any] = {
            **self.rows([row])[0],
            "pieces": mark_words(self.words, shown),
            "left_out": len(text) - len(shown),
            "number": None if self.numbers is None else self.numbers[row],
            "n_tokens": None if tokens is None else float(tokens[row]),
            "certainty": float(self.certainty[row]),
            "oddness": float(self.oddness[row]),
            "topic": int(self.topic[row]),
            "neighbours": neighbours,
        }
        if (p := self.predictions) is not None:
            order = np.argsort(-p.proba[row], kind="stable")[:8]
            found["classes"] = [
                {"label": p.classes[c], "probability": float(p.proba[row, c])}
                for c in order
            ]
            found["entropy"], found["n_classes"] = float(p.entropy[row]), len(p.classes)
        return found

    def search(self, text: str, n: int = 20) -> list[dict[str, Any]]:
        """Return the documents most like a text, each with a number `sure`.

        With a calibrated index it is the probability that the document is of the text's
        class. Without an index it is the share of draws, from the Gaussians of the text
        and of the documents, in which it is among the first ten.
        """
        if self.index is not None:
            places = {name: row for row, name in enumerate(self.ids)}
            matches = [m for m in self.index.search([text], n)[0] if m.id in places]
            return self.rows(
                [places[match.id] for match in matches],
                sure=[match.probability for match in matches],
                words=[[word for word, _ in match.words[:4]] for match in matches],
            )
        q = self.model.posterior(self.words.count([text]).counts)
        if q.require_tokens()[0] == 0:
            return []
        # Draws rank the first hundred.
        found, _ = self._nearest(Wasserstein2().vectors(q)[0], max(n, 100))
        sure = _share_in_front(q, self.posterior[found], min(10, len(found)))
        return self.rows(found[:n].tolist(), sure=sure[:n].tolist())

    def propose(self, n: int = 10) -> list[dict[str, Any]]:
        """Return the documents whose labels would help most."""
        labelled = np.array(sorted(self.labels.of), dtype=np.intp)
        entropy = None if self.predictions is None else self.predictions.entropy
        found = propose(self.posterior, labelled, n, entropy)
        return self.rows(found.tolist())

    def learn(self) -> None:
        """Fit a classifier to the labels, and predict every document."""
        classifier = fit_few_labels(self.posterior, self.labels.of)
        self.predictions = Predictions.by(classifier, self.posterior)

    @cached_property
    def drift(self) -> dict[str, Any] | None:
        """Differences of the new batch from the old one; None without an old one."""
        if not self.n_old:
            return None
        old, new = self.posterior[: self.n_old], self.posterior[self.n_old :]
        found = compare_batches(
            self.model,
            old,
            new,
            n_topics=self.n_topics,
            counts=self._counts,
            n_unknown=self._n_unknown,
        )
        result = asdict(found)
        for topic in result["topics"]:
            topic["typical"] = self._new_rows(topic["typical"])
        result["unexplained_rows"] = self._new_rows(result["unexplained_rows"])
        return result

    def _new_rows(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        return self.rows([row + self.n_old for row in rows])

    def predictions_csv(self, with_text: bool = True) -> str:
        """Return labels, predictions and texts of all documents as a table."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        p = self.predictions
        for row, name in enumerate(self.ids):
            line: dict[str, object] = {}
            if self.numbers is not None:
                line["row"] = self.numbers[row]
            line |= {"id": name, "label": self.labels.of.get(row, "")}
            if p is not None:
                best = int(p.proba[row].argmax())
                line["predicted"] = p.classes[best]
                line["probability"] = f"{p.proba[row, best]:.4f}"
                line["entropy"] = f"{p.entropy[row]:.4f}"
            if with_text:
                line["text"] = self.texts[row]
            line["topic"] = int(self.topic[row])
            line["certainty"] = f"{self.certainty[row]:.4f}"
            line["oddness"] = f"{self.oddness[row]:.4f}"
            if row == 0:
                writer.writerow(line)
            writer.writerow([harmless_cell(value) for value in line.values()])
        return out.getvalue()

    def _nearest(
        self, vector: NDArray[Any], n: int
    ) -> tuple[NDArray[np.intp], NDArray[Any]]:
        square = self._squares - 2 * self._vectors @ vector + vector @ vector
        n = min(n, len(square))
        first = np.argpartition(square, n - 1)[:n]
        order = first[np.argsort(square[first], kind="stable")]
        return order, np.sqrt(np.maximum(square[order], 0))


def _share_in_front(
    query: GaussianPosterior, documents: GaussianPosterior, n: int, n_draws: int = 64
) -> Floats:
    """Return the share of draws in which each document is among the `n` nearest."""
    points = documents.draws(n_draws, random_state=0)
    away = points - query.draws(n_draws, random_state=1)
    square = np.square(away).sum(axis=2)
    limit = np.partition(square, n - 1, axis=1)[:, n - 1 : n]
    return np.asarray((square <= limit).mean(axis=0))
