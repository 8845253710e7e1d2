"""An index of documents as Gaussians."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from docsigma._array_checks import Floats, check_choice
from docsigma.counts._base import BLOCK
from docsigma.exceptions import InputError
from docsigma.posterior import GaussianPosterior
from docsigma.search._files import read_index, write_index
from docsigma.search._generations import current_generation, new_generation
from docsigma.search._measures import KL, Measure, SameTopic, Wasserstein2
from docsigma.search._neighbours import Neighbours
from docsigma.search.calibration import SameTopicCalibration

if TYPE_CHECKING:
    from docsigma.classifiers import EvidenceClassifier
    from docsigma.posterior import GaussianPrior

METRICS = ("wasserstein2", "kl")
# Up to this many documents all are compared; above it a graph of neighbours is faster.
EXACT = 10_000


@dataclass(frozen=True)
class SearchResult:
    """Documents found for one query, best first.

    Attributes
    ----------
    ids : list of str
    labels : list of str or None
    scores : ndarray
        Distances or divergences, lowest first; with a classifier log ratios of one
        class to two, highest first.
    probabilities : ndarray or None
        Probability of the query's class, if the index is calibrated.
    rows : ndarray of int
        Rows of the index.
    """

    ids: list[str]
    labels: list[str | None]
    scores: Floats
    probabilities: Floats | None
    rows: NDArray[np.intp]


class GaussianIndex:
    """Documents as Gaussians, searched by similarity.

    Parameters
    ----------
    classifier : EvidenceClassifier, default=None
        Ranks by the log ratio of one class to two, which accounts for uncertainty.
    metric : {"wasserstein2", "kl"}, default="wasserstein2"
        Ranks without a classifier. KL(document || query) has no approximate search.
    approximate : bool, default=None
        Whether usearch finds candidates, and only those are ranked exactly; None means
        if there are more than 10 000 documents and usearch is installed.
    n_candidates : int, default=1000
        Least number of candidates per query that are ranked exactly.

    Attributes
    ----------
    calibration : SameTopicCalibration or None
        Turns log ratios into probabilities; learned by :meth:`calibrate`.

    Examples
    --------
    >>> q = GaussianPosterior([[0.0], [1.0], [5.0]], [[0.1], [0.1], [0.1]])
    >>> index = GaussianIndex()
    >>> index.add(q, ["a", "b", "c"])
    >>> index.search(q[:1], n=2)[0].ids
    ['a', 'b']
    """

    def __init__(
        self,
        classifier: EvidenceClassifier | None = None,
        *,
        metric: str = "wasserstein2",
        approximate: bool | None = None,
        n_candidates: int = 1000,
    ) -> None:
        check_choice("metric", metric, METRICS)
        self.classifier = classifier
        self._measure: Measure = KL() if metric == "kl" else Wasserstein2()
        if classifier is not None:
            self._measure = SameTopic(classifier)
        if approximate and self._measure.metric is None:
            raise InputError("`metric`='kl' has no approximate search")
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

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        how = "exact" if self._neighbours is None else "approximate"
        return f"GaussianIndex({len(self)} documents, {self.metric}, {how})"

    @property
    def metric(self) -> str:
        """The measure: wasserstein2, kl or same_topic."""
        return self._measure.name

    def posterior(self, rows: Any = slice(None)) -> GaussianPosterior:
        """Return the Gaussians of some rows, by default of all."""
        arrays = {name: a[rows] for name, a in self._arrays.items() if name != "keys"}
        return GaussianPosterior(
            **arrays, prior=self._prior, model_digest=self.model_digest
        )

    def add(
        self,
        posterior: GaussianPosterior,
        ids: Sequence[str] | None = None,
        labels: Sequence[str | None] | None = None,
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
        if len(self) and set(new) != set(self._arrays):
            raise InputError("all documents must have numbers of tokens, or none")
        if len(self):
            new = {k: np.concatenate([self._arrays[k], new[k]]) for k in new}
        self._arrays = new
        self._prior, self.model_digest = posterior.prior, posterior.model_digest
        self.ids, self.labels = self.ids + names, self.labels + found
        self._places = None
        if self._neighbours is not None:
            self._neighbours.add(keys, self._measure.vectors(posterior))
        elif self.approximate or (
            self.approximate is None
            and self._measure.metric is not None
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
        self._places = None

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
        allowed = self._allowed(labels, max_total_variance)
        lists = self._candidates(posterior, n, allowed, exact)
        return [self._rank(posterior[i], rows, n) for i, rows in enumerate(lists)]

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

    def _candidates(
        self,
        queries: GaussianPosterior,
        n: int,
        allowed: NDArray[np.bool_] | None,
        exact: bool,
    ) -> list[NDArray[np.intp]]:
        """Return the rows to compare with each query."""
        passing = len(self) if allowed is None else int(allowed.sum())
        wanted = max(self.n_candidates, 10 * n)
        if exact or self._neighbours is None or passing <= max(EXACT, wanted):
            every = np.arange(len(self)) if allowed is None else np.flatnonzero(allowed)
            return [every] * len(queries)
        # More candidates, so that enough of them are expected to pass the filter.
        count = min(len(self), int(np.ceil(wanted * len(self) / passing)))
        found = self._neighbours.search(self._measure.vectors(queries), count)
        rows = [np.searchsorted(self._arrays["keys"], keys) for keys in found]
        return rows if allowed is None else [r[allowed[r]] for r in rows]

    def _rank(
        self, query: GaussianPosterior, rows: NDArray[np.intp], n: int
    ) -> SearchResult:
        parts = [rows[i : i + BLOCK] for i in range(0, len(rows), BLOCK)]
        costs = [self._measure.costs(query, self.posterior(part)) for part in parts]
        cost = np.concatenate(costs) if costs else np.empty(0)
        best = np.argsort(cost, kind="stable")[:n]
        chosen, probabilities = rows[best], None
        scores = -cost[best] if self.classifier is not None else cost[best]
        if self.calibration is not None:
            probabilities = self.calibration.predict(scores)
        return SearchResult(
            [self.ids[row] for row in chosen],
            [self.labels[row] for row in chosen],
            scores,
            probabilities,
            chosen,
        )

    def _check(self, posterior: GaussianPosterior, what: str = "documents") -> None:
        """Refuse posteriors of another model, or with full covariances."""
        if posterior.covariance is not None:
            raise InputError(
                f"the index needs diagonal covariances, the {what} have full ones"
            )
        if self.classifier is not None:
            posterior.require_prior()
        if not len(self):
            return
        size = self._arrays["mean"].shape[1]
        if posterior.n_components != size:
            raise InputError(
                f"the {what} have {posterior.n_components} components, the index {size}"
            )
        if posterior.model_digest != self.model_digest:
            other, own = (
                "unknown" if digest is None else digest[:8]
                for digest in (posterior.model_digest, self.model_digest)
            )
            raise InputError(
                f"the {what} were made by another model ({other}) than the index "
                f"({own})"
            )

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
