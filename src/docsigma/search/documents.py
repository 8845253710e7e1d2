"""An index of texts, whose matches show the words that made them."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import expit

from docsigma._files import read_json_object
from docsigma.classifiers import EvidenceClassifier
from docsigma.classifiers.counts_classifier import CountsClassifier
from docsigma.classifiers.documents import EmbeddedDocuments
from docsigma.exceptions import InputError
from docsigma.models import load_model
from docsigma.models.components import known_words
from docsigma.search._files import read_index, write_index
from docsigma.search._generations import current_generation, new_generation
from docsigma.search.index import GaussianIndex
from docsigma.search.typical import TypicalMatches
from docsigma.text import as_texts, beginning

if TYPE_CHECKING:
    from docsigma._array_checks import Floats
    from docsigma.models._count_model import CountModel
    from docsigma.posterior import GaussianPosterior

EXCERPTS = "excerpts.json"


@dataclass(frozen=True)
class Match:
    """A document that was found.

    Attributes
    ----------
    id : str
        Its name in the index.
    label : str or None
        Its label, if it has one.
    score : float
        What ranks, by the metric of the index: highest is best, except for distances.
    probability : float or None
        Probability of the query's class, if the index is calibrated.
    words : list of (str, float)
        Words that query and document share, strongest first, each with its share of
        what they add to the score (BM25); empty if there are none.
    excerpt : str or None
        Beginning of the document, if the index has it.
    """

    id: str
    label: str | None
    score: float
    probability: float | None
    words: list[tuple[str, float]]
    excerpt: str | None


class DocumentIndex:
    """An index of texts, with the model or the classifier that embeds them.

    Parameters
    ----------
    embedder : BayesianSMM or CountsClassifier
        Turns counts into Gaussians. A classifier of the kinds ``"hybrid"`` and
        ``"evidence"`` has learned how far apart documents of one class lie.
    index : GaussianIndex, default=None
        The documents; by default an empty index with the default settings.
    metric : str, default="joint"
        What ranks, if no `index` is given: see :class:`GaussianIndex`.

    Examples
    --------
    >>> from docsigma import DocumentEmbedder
    >>> texts = ["sun and rain", "rain and wind", "bread and salt", "salt and butter"]
    >>> model = DocumentEmbedder(2, random_state=0).fit(texts * 5).model_
    >>> index = DocumentIndex(model)
    >>> index.add(texts)
    >>> [match.excerpt for match in index.search(["wind and rain"], n=2)[0]]
    ['rain and wind', 'sun and rain']
    """

    def __init__(
        self,
        embedder: CountModel | CountsClassifier,
        index: GaussianIndex | None = None,
        *,
        metric: str = "joint",
    ) -> None:
        self.embedder = embedder
        if index is None:
            index = GaussianIndex(evidence_of(embedder), metric=metric)
        self.index = index
        self._excerpts: dict[str, str] = {}
        self._typical: TypicalMatches | None = None
        # The language of the documents, if that of queries is another.
        self._language: str | None = None

    def __len__(self) -> int:
        return len(self.index)

    @property
    def model(self) -> CountModel:
        """The model, which may be that of the classifier."""
        found = self.embedder
        return found.model_ if isinstance(found, CountsClassifier) else found

    def count(self, texts: Iterable[object]) -> Any:
        """Count texts by the words of the model."""
        return known_words(self.model).count(texts).counts

    def embed(self, counts: Any) -> GaussianPosterior:
        """Return the Gaussians of documents."""
        return self.model.posterior(counts)

    def in_language(self, name: str) -> Self:
        """Return the same documents, to be searched by texts in another language.

        The model must be that of one language of a
        :class:`~docsigma.ParallelEmbedder`; words of another language are shared by no
        document, so the index must rank by the embeddings alone.
        """
        whole, own = getattr(self.model, "whole_", None) or (None, None)
        if whole is None:
            raise InputError("the model of the index has one language, without a name")
        if name != own and self.index._has_words:
            raise InputError(
                f"the index ranks by words of {own!r} (`metric`={self.index.metric!r}),"
                f' which texts in {name!r} do not share: use "same_text"'
            )
        other = copy.copy(self)
        other._typical = self._typical if name == own else None
        other._language = None if name == own else own
        if isinstance(self.embedder, CountsClassifier):
            other.embedder = self.embedder.in_language(name)
        else:
            other.embedder = whole.view(name)
        return other

    def add(
        self,
        texts: Iterable[object],
        ids: Sequence[str] | None = None,
        labels: Sequence[str | None] | None = None,
        *,
        excerpt: int = 120,
    ) -> None:
        """Embed texts and add them, with the first `excerpt` characters of each."""
        given = as_texts(texts)
        if not given:
            return
        self.add_counts(self.count(given), ids, labels, given, excerpt=excerpt)

    def add_counts(
        self,
        counts: Any,
        ids: Sequence[str] | None = None,
        labels: Sequence[str | None] | None = None,
        texts: Sequence[str] | None = None,
        *,
        excerpt: int = 120,
    ) -> None:
        """Add documents that are already counted, as :meth:`add` does."""
        before, q = len(self.index), self.embed(counts)
        classes = self._classes(counts, q, texts)
        if classes is not None:
            # A label is certain; a document without one may be of no class.
            classes *= expit(self.index.familiarity(q))[:, None]
            places = {str(label): at for at, label in enumerate(self.embedder.classes_)}
            for row, label in enumerate(labels or []):
                if label is not None:
                    classes[row] = np.arange(len(places)) == places.get(str(label), -1)
        self.index.add(q, ids, labels, counts, classes)
        if texts is not None and excerpt > 0:
            names = self.index.ids[before:]
            begins = (beginning(text, excerpt) for text in texts)
            self._excerpts |= dict(zip(names, begins, strict=True))

    def remove(self, ids: Sequence[str]) -> None:
        """Remove documents by their ids."""
        self.index.remove(ids)
        for name in ids:
            self._excerpts.pop(name, None)

    def search(
        self, texts: Iterable[object], n: int = 10, **filters: Any
    ) -> list[list[Match]]:
        """Return the documents most similar to each text, best first.

        `filters` are those of :meth:`GaussianIndex.search`. A text without a known word
        has no matches.
        """
        given = as_texts(texts)
        counts = self.count(given)
        return self.search_posterior(counts, self.embed(counts), n, given, **filters)

    def search_posterior(
        self,
        counts: Any,
        posterior: GaussianPosterior,
        n: int = 10,
        texts: Sequence[str] | None = None,
        **filters: Any,
    ) -> list[list[Match]]:
        """Return matches of texts that are already counted and embedded.

        With the `texts` themselves, a classifier sees their pairs of words too.
        """
        classes = self._classes(counts, posterior, texts)
        shared = counts if self._language is None else None
        found = self.index.search(
            posterior, n, counts=shared, classes=classes, **filters
        )
        known = posterior.require_tokens() > 0
        matches: list[list[Match]] = [[] for _ in found]
        for row in np.flatnonzero(known).tolist():
            one = found[row]
            words = self._words(counts[row], one.rows)
            probabilities: Any = [None] * len(words)
            if one.probabilities is not None:
                probabilities = one.probabilities.tolist()
            scores, excerpts = one.scores.tolist(), map(self._excerpts.get, one.ids)
            columns = (one.ids, one.labels, scores, probabilities, words, excerpts)
            matches[row] = [Match(*values) for values in zip(*columns, strict=True)]
        return matches

    def learn_typical(self, texts: Sequence[str]) -> Self:
        """Learn how well the documents match each other, for :meth:`p_values`.

        `texts` are those of all documents, in their order.
        """
        if len(texts) != len(self):
            raise InputError(
                f"there are {len(texts)} `texts` but {len(self)} documents"
            )
        self._typical = TypicalMatches.of(texts, self._matches)
        return self

    @property
    def has_p_values(self) -> bool:
        """Whether :meth:`learn_typical` was called."""
        return self._typical is not None

    def p_values(self, texts: Iterable[object]) -> Floats:
        """Return the p-value of each text being like some document of the index.

        The words that the best document shares with it, weighted by their rarity, are
        compared with those that documents share with each other; words that the model
        does not know are shared by none.
        """
        if self._typical is None:
            raise InputError("p-values need `learn_typical` first")
        given = as_texts(texts)
        pairs = zip(self._matches(given).tolist(), given, strict=True)
        p_value = self._typical.p_value
        return np.array([p_value(match, len(text.split())) for match, text in pairs])

    def _matches(
        self, texts: Sequence[str], without: Sequence[int] | None = None
    ) -> Floats:
        """Return how much of each text the best document has, but for one row."""
        counted = known_words(self.model).count(texts)
        shared, found = self.index._shared(), np.zeros(len(texts))
        if shared is None:
            return found
        for at, unknown in enumerate(counted.n_unknown.tolist()):
            own = None if without is None else without[at]
            found[at] = shared.best_match(counted.counts[at], unknown, own)
        return found

    def _classes(
        self, counts: Any, q: GaussianPosterior, texts: Sequence[str] | None
    ) -> Any:
        """Return probabilities of the classifier's classes, if they are ranked by."""
        known = self.embedder
        if not isinstance(known, CountsClassifier) or self.index.metric != "joint":
            return None
        n_words = counts.shape[1]
        pairs = known.with_pairs(counts, texts)[:, n_words:]
        if not pairs.shape[1]:
            pairs = csr_matrix((len(q), known.n_features_in_ - n_words))
        return known.predict_proba(EmbeddedDocuments(counts, q, pairs))

    def _words(self, query: Any, rows: Any) -> list[list[tuple[str, float]]]:
        """Return the words that the query shares with each document."""
        if self._language is not None:
            return [[] for _ in rows]
        names = known_words(self.model).words
        amounts = self.index.shared_words(query, rows)
        totals = np.maximum(amounts.sum(axis=1, keepdims=True), 1e-12)
        result = []
        for row in amounts / totals:
            order = np.argsort(-row, kind="stable")[:6]
            chosen = [(names[query.indices[i]], float(row[i])) for i in order]
            result.append([(word, share) for word, share in chosen if share > 0])
        return result

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write model and index to a folder.

        A folder that exists is refused without `overwrite`, unless it is empty; a
        killed save keeps it.
        """
        config: dict[str, Any] = {}
        with new_generation(folder, config, overwrite) as files:
            write_index(self.index, files, config)
            (files / EXCERPTS).write_text(json.dumps(self._excerpts), "utf-8")
            classified = isinstance(self.embedder, CountsClassifier)
            whole, language = getattr(self.embedder, "whole_", None) or (None, None)
            (whole or self.embedder).save(files / "model")
            if language is not None:
                config["language"] = language
            config["embedder"] = "classifier" if classified else "model"
            if self._typical is not None:
                config["typical"] = self._typical.as_json()

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Read a folder that :meth:`save` wrote; arrays are mapped, no code is run."""
        files, config = current_generation(folder)
        loaders: Any = {"model": load_model, "classifier": CountsClassifier.load}
        kind = str(config.get("embedder"))
        if kind not in loaders:
            raise InputError(f"the index in {folder} has no model to embed texts")
        embedder = loaders[kind](files / "model")
        if "language" in config:
            embedder = embedder.view(config["language"])
        found = cls(embedder, read_index(GaussianIndex, files, config))
        if "typical" in config:
            found._typical = TypicalMatches.of_json(config["typical"])
        path = Path(files) / EXCERPTS
        found._excerpts = read_json_object(path, f"the index has no {EXCERPTS}")
        return found


def evidence_of(embedder: Any) -> EvidenceClassifier | None:
    """Return the classifier that computes log ratios; None for a model alone."""
    if not isinstance(embedder, CountsClassifier):
        return None
    # The hybrid's is one of its parts; of points it has none.
    found = getattr(embedder.classifier_, "score_", embedder.classifier_)
    if not isinstance(found, EvidenceClassifier):
        raise InputError(
            f"the classifier {embedder._kind_name} has no ratios of one class: train "
            "the kind hybrid or evidence, on a model that gives Gaussians"
        )
    return found
