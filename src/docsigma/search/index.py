"""An index of documents: their words, and their Gaussians."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from docsigma._array_checks import Floats, check_choice
from docsigma.counts._base import BLOCK
from docsigma.exceptions import InputError
from docsigma.posterior import GaussianPosterior
from docsigma.search._classes import KnownClasses
from docsigma.search._files import read_index, write_index
from docsigma.search._generations import current_generation, new_generation
from docsigma.search._measures import (
    METRICS,
    Measure,
    SameText,
    SameTopic,
    measure_of,
)
from docsigma.search._neighbours import Neighbours
from docsigma.search._queries import Query, SearchResult, check_alike
from docsigma.search._words import SharedWords, word_counts
from docsigma.search.calibration import SameTopicCalibration

if TYPE_CHECKING:
    from docsigma.classifiers import EvidenceClassifier
    from docsigma.posterior import GaussianPrior

# Up to this many documents all are compared; above it a graph of neighbours is faster.
EXACT = 10_000


class GaussianIndex:
    """Documents as Gaussians, and as counts of words, searched by similarity.

    Parameters
    ----------
    classifier : EvidenceClassifier, default=None
        Has learned how far apart documents of one class lie, for the log ratio of one
        topic to two.
    metric : str, default="joint"
        What ranks documents: ``"joint"``, the sum of the next two, or the second alone
        where documents have no counts; ``"words"``, BM25 of the words they share with
        the query; ``"same_topic"``, the log ratio of one topic to two; ``"same_text"``,
        that of one document in two languages to two documents; ``"cosine"`` of the
        means; ``"wasserstein2"`` distance; ``"kl"``, KL(document || query).
    approximate : bool, default=None
        Whether usearch finds candidates, and only those are ranked exactly; None means
        if there are more than 10 000 documents and usearch is installed. The best
        documents by words are always candidates; ``"words"`` and ``"kl"`` are exact.
    n_candidates : int, default=1000
        Least number of candidates per query that are ranked exactly.

    Attributes
    ----------
    calibration : SameTopicCalibration or None
        Turns log ratios into probabilities; learned by :meth:`calibrate`.

    Examples
    --------
    >>> q = GaussianPosterior([[0.0], [1.0], [5.0]], [[0.1], [0.1], [0.1]])
    >>> index = GaussianIndex(metric="wasserstein2")
    >>> index.add(q, ["a", "b", "c"])
    >>> index.search(q[:1], n=2)[0].ids
    ['a', 'b']
    """

    def __init__(
        self,
        classifier: EvidenceClassifier | None = None,
        *,
        metric: str = "joint",
        approximate: bool | None = None,
        n_candidates: int = 1000,
    ) -> None:
        check_choice("metric", metric, METRICS)
        self.classifier = classifier
        self.metric = metric
        self._measure: Measure = measure_of(metric, classifier)
        if approximate and not self._has_graph:
            raise InputError(f"`metric`={metric!r} has no approximate search")
        if n_candidates < 1:
            raise InputError(f"`n_candidates` must be 1 or more, got {n_candidates}")
        self.approximate = approximate
        self.n_candidates = n_candidates
        self.calibration: SameTopicCalibration | None = None
        self._arrays: dict[str, NDArray[Any]] = {}
        self._prior: GaussianPrior | None = None
        self.model_digest: str | None = None
        self.ids: list[str] = []
        self.labels: list[str | None] = []
        self._places: dict[str, int] | None = None
        self._neighbours: Neighbours | None = None
        self.counts: sp.csr_matrix | None = None
        # Made of all documents when a search needs them.
        self._words: SharedWords | None = None
        self._prepared: Any = None
        self._topics: KnownClasses | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        how = "exact" if self._neighbours is None else "approximate"
        return f"GaussianIndex({len(self)} documents, {self.metric}, {how})"

    @property
    def _has_words(self) -> bool:
        """Whether the score has a part for shared words."""
        return self.metric in ("joint", "words")

    @property
    def _has_classes(self) -> bool:
        """Whether the score has a part for the classes of a classifier."""
        return self.metric == "joint" and "classes" in self._arrays

    @property
    def _has_graph(self) -> bool:
        """Whether candidates can be found without comparing all documents."""
        return self.metric != "words" and self._measure.metric is not None

    def posterior(self, rows: Any = slice(None)) -> GaussianPosterior:
        """Return the Gaussians of some rows, by default of all."""
        names = self._arrays.keys() & {"mean", "variance", "n_tokens"}
        arrays = {name: self._arrays[name][rows] for name in names}
        return GaussianPosterior(
            **arrays, prior=self._prior, model_digest=self.model_digest
        )

    def add(
        self,
        posterior: GaussianPosterior,
        ids: Sequence[str] | None = None,
        labels: Sequence[str | None] | None = None,
        counts: Any = None,
        classes: Floats | None = None,
    ) -> None:
        """Add documents.

        Parameters
        ----------
        posterior : GaussianPosterior
            With diagonal covariances, and of the same model as those in the index.
        ids : sequence of str, default=None
            Unique names; by default numbers, as strings.
        labels : sequence of str or None, default=None
            Labels, None where there is none.
        counts : sparse matrix of shape (n_documents, n_words), default=None
            Counts of their words, to rank by words too.
        classes : ndarray of shape (n_documents, n_classes), default=None
            Probabilities of the classifier's classes, to rank by them too. What a row
            lacks of 1 is that of a topic that is none of them.
        """
        first = int(self._arrays["keys"][-1]) + 1 if len(self) else 0
        keys = np.arange(first, first + len(posterior))
        names = [str(key) for key in keys] if ids is None else [str(i) for i in ids]
        found: list[str | None] = [None] * len(posterior)
        if labels is not None:
            found = list(labels)
        for what, values in (("ids", names), ("labels", found)):
            if len(values) != len(posterior):
                raise InputError(
                    f"there are {len(posterior)} documents but {len(values)} `{what}`"
                )
        self._check(posterior)
        added = None if counts is None else word_counts(counts, len(posterior))
        if len(self) and (added is None) != (self.counts is None):
            raise InputError("all documents must have `counts`, or none")
        if self.metric == "words" and added is None:
            raise InputError("`metric`='words' needs the `counts` of documents")
        seen = set(self.ids)
        for name in names:
            if name in seen:
                raise InputError(f"the index already has a document {name!r}")
            seen.add(name)
        new: dict[str, NDArray[Any]] = {
            "keys": keys,
            "mean": posterior.mean.astype(np.float32),
            "variance": posterior.variance.astype(np.float32),
        }
        if posterior.n_tokens is not None:
            new["n_tokens"] = posterior.n_tokens
        if classes is not None:
            new["classes"] = classes.astype(np.float32)
        if len(self) and (odd := new.keys() ^ self._arrays.keys()):
            raise InputError(f"all documents must have `{min(odd)}`, or none")
        if len(self):
            new = {k: np.concatenate([self._arrays[k], new[k]]) for k in new}
        if added is not None:
            before = [] if self.counts is None or not len(self) else [self.counts]
            self.counts = sp.vstack([*before, added], format="csr")
        self._arrays = new
        self._prior, self.model_digest = posterior.prior, posterior.model_digest
        self.ids, self.labels = self.ids + names, self.labels + found
        self._forget()
        if self._neighbours is not None:
            self._neighbours.add(keys, self._measure.vectors(posterior))
        elif self.approximate or (
            self.approximate is None
            and self._has_graph
            and len(self) > EXACT
            and importlib.util.find_spec("usearch") is not None
        ):
            self._connect()

    def remove(self, ids: Sequence[str]) -> None:
        """Remove documents by their ids."""
        if isinstance(ids, str):
            raise InputError(f"`ids` must be a list of ids, got the string {ids!r}")
        rows = np.array(sorted({self.row(name) for name in ids}), dtype=np.intp)
        if self._neighbours is not None:
            self._neighbours.remove(self._arrays["keys"][rows])
        kept = np.delete(np.arange(len(self)), rows)
        self._arrays = {name: array[kept] for name, array in self._arrays.items()}
        self.ids = [self.ids[row] for row in kept]
        self.labels = [self.labels[row] for row in kept]
        if self.counts is not None:
            self.counts = self.counts[kept]
        self._forget()

    def _forget(self) -> None:
        """Drop what was made of all documents."""
        self._places = self._words = self._prepared = self._topics = None

    def row(self, name: str) -> int:
        """Return the row of the document with this id."""
        if self._places is None:
            self._places = {known: row for row, known in enumerate(self.ids)}
        if name not in self._places:
            raise InputError(f"the index has no document {name!r}")
        return self._places[name]

    def calibrate(
        self,
        posterior: GaussianPosterior | None = None,
        labels: Sequence[str | None] | None = None,
    ) -> Self:
        """Learn probabilities of one class from labelled documents.

        By default from those of the index. With too few labels there are none.
        """
        if self.classifier is None:
            raise InputError("probabilities of one class need a `classifier`")
        if self.metric not in ("joint", "same_topic"):
            raise InputError(f"`metric`={self.metric!r} has no probabilities")
        if posterior is None:
            posterior, labels = self.posterior(), self.labels
        self.calibration = SameTopicCalibration.fit(
            self.classifier, posterior, [] if labels is None else labels
        )
        return self

    def search(
        self,
        posterior: GaussianPosterior,
        n: int = 10,
        *,
        counts: Any = None,
        classes: Floats | None = None,
        labels: Sequence[str] | None = None,
        max_total_variance: float | None = None,
        exact: bool = False,
    ) -> list[SearchResult]:
        """Return the documents most similar to each query.

        Parameters
        ----------
        posterior : GaussianPosterior
            Queries, of the same model as the index.
        n : int, default=10
            Documents per query.
        counts : sparse matrix of shape (n_queries, n_words), default=None
            Counts of the queries' words, if the index has those of its documents.
        classes : ndarray of shape (n_queries, n_classes), default=None
            Probabilities of the classifier's classes, if the index has those of its
            documents: then it ranks by the probability of one topic.
        labels : sequence of str, default=None
            Return only documents with one of these labels.
        max_total_variance : float, default=None
            Return only documents that are at least this certain.
        exact : bool, default=False
            Compare every document, even in an approximate index.
        """
        if n < 1:
            raise InputError(f"`n` must be 1 or more, got {n}")
        self._check(posterior, "queries")
        if counts is None and self.counts is not None and self._has_words:
            raise InputError(f"`metric`={self.metric!r} needs the `counts` of queries")
        asked = None if counts is None else word_counts(counts, len(posterior))
        allowed = self._allowed(labels, max_total_variance)
        passing = len(self) if allowed is None else int(allowed.sum())
        wanted = max(self.n_candidates, 10 * n)
        every = exact or self._neighbours is None or passing <= max(EXACT, wanted)
        known = None
        if classes is not None and self._has_classes:
            known = self.familiarity(posterior)
        found = []
        for row in range(len(posterior)):
            query, one = posterior[row], Query()
            if asked is not None and (shared := self._shared()) is not None:
                one = shared.of_query(asked[row], self._has_words)
            if known is not None and classes is not None:
                one = replace(one, classes=classes[row], familiarity=float(known[row]))
            if every:
                rows = np.arange(len(self))
            else:
                # More of them, so that enough are expected to pass the filter.
                count = min(len(self), int(np.ceil(wanted * len(self) / passing)))
                rows = self._candidates(query, one, count)
            if allowed is not None:
                rows = rows[allowed[rows]]
            found.append(self._rank(query, one, rows, n, every))
        return found

    def familiarity(self, posterior: GaussianPosterior) -> Floats:
        """Return log ratios of the classifier's classes to a topic that it lacks."""
        assert isinstance(self._measure, SameTopic)
        return self._measure.familiarity(posterior)

    def shared_words(self, query: sp.csr_matrix, rows: NDArray[np.intp]) -> Floats:
        """Return what each word of a query adds to the scores of some documents."""
        shared = self._shared()
        if shared is None:
            return np.zeros((len(rows), query.nnz))
        return shared.by_word(query, rows)

    def _shared(self) -> SharedWords | None:
        if self._words is None and self.counts is not None:
            self._words = SharedWords(self.counts)
        return self._words

    def _allowed(
        self, labels: Sequence[str] | None, max_total_variance: float | None
    ) -> NDArray[np.bool_] | None:
        if labels is None and max_total_variance is None:
            return None
        allowed = np.ones(len(self), dtype=bool)
        if isinstance(labels, str):
            raise InputError(f"`labels` must be a list of labels, got {labels!r}")
        if labels is not None:
            wanted = set(labels)
            allowed &= np.array([label in wanted for label in self.labels], dtype=bool)
        if max_total_variance is not None and len(self):
            total = self._arrays["variance"].sum(axis=1, dtype=np.float64)
            allowed &= total <= max_total_variance
        return allowed

    def _known_classes(self) -> KnownClasses:
        if self._topics is None:
            self._topics = KnownClasses(self._arrays["classes"])
        return self._topics

    def _candidates(
        self, query: GaussianPosterior, one: Query, count: int
    ) -> NDArray[np.intp]:
        """Return the best by the graph, by words and by classes, and equal ones."""
        assert self._neighbours is not None
        (keys,) = self._neighbours.search(self._measure.vectors(query), count)
        parts = [np.searchsorted(self._arrays["keys"], keys)]
        best = [] if one.scores is None else [one.scores]
        if one.classes is not None:
            best.append(self._known_classes().alike(one.classes))
        parts += [np.argpartition(-scores, count - 1)[:count] for scores in best]
        if one.equal is not None:
            parts.append(np.flatnonzero(one.equal))
        return np.unique(np.concatenate(parts))

    def _rank(
        self,
        query: GaussianPosterior,
        one: Query,
        rows: NDArray[np.intp],
        n: int,
        every: bool,
    ) -> SearchResult:
        cost = np.zeros(len(rows))
        if self.metric != "words":
            if every and self._prepared is None:
                self._prepared = self._measure.prepare(self.posterior())
            for start in range(0, len(rows), BLOCK):
                some = rows[start : start + BLOCK]
                documents = (
                    self._prepared[some]
                    if every
                    else self._measure.prepare(self.posterior(some))
                )
                cost[start : start + BLOCK] = self._measure.costs(query, documents)
        ratios, probabilities = -cost, None
        if self.calibration is not None:
            probabilities = self.calibration.predict(ratios)
        if isinstance(self._measure, SameText) and len(rows):
            probabilities = self._measure.probabilities(ratios, len(self))
        if one.scores is not None:
            cost -= one.scores[rows]
        order: list[NDArray[Any]] = [cost]
        if one.classes is not None:
            probabilities = self._known_classes().same_topic(
                one.classes, one.familiarity, rows, ratios, probabilities
            )
            order.append(-probabilities)
        if one.equal is not None:
            order.append(~one.equal[rows])
        best = np.lexsort(order)[:n]
        chosen = rows[best]
        return SearchResult(
            [self.ids[row] for row in chosen],
            [self.labels[row] for row in chosen],
            self._measure.sign * cost[best],
            None if probabilities is None else probabilities[best],
            chosen,
        )

    def _check(self, posterior: GaussianPosterior, what: str = "documents") -> None:
        """Refuse posteriors of another model, or with full covariances."""
        size = self._arrays["mean"].shape[1] if len(self) else None
        check_alike(posterior, what, size, self.model_digest)
        if posterior.prior is not None or isinstance(self._measure, SameTopic):
            posterior.require_shared_prior()

    def _connect(self) -> None:
        """Build the graph of neighbours."""
        assert self._measure.metric is not None
        parts = range(0, len(self), BLOCK)
        vectors = [
            self._measure.vectors(self.posterior(slice(i, i + BLOCK))) for i in parts
        ]
        together = np.concatenate(vectors)
        self._neighbours = Neighbours(together.shape[1], self._measure.metric)
        self._neighbours.add(self._arrays["keys"], together)

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the index to a folder.

        A folder that exists is refused without `overwrite`, unless it is empty; a
        killed save keeps it.
        """
        config: dict[str, Any] = {}
        with new_generation(folder, config, overwrite) as files:
            write_index(self, files, config)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Read a folder that :meth:`save` wrote; arrays are mapped, no code is run."""
        return read_index(cls, *current_generation(folder))
