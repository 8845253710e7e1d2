r"""What each piece and setting of the classifiers is worth, on training documents.

    python benchmarks/ablations.py switchboard short-texts/searchsnippets

A fifth of the training documents is held out (of 20 Newsgroups the last of each class,
of Switchboard whole calls) and stands for test documents, which are not looked at.
`TopicClassifier` with default settings is fitted to the rest, and then again with one
thing changed. Each number is the cross-entropy of the held-out documents, whole and cut
to ten words, in nats; those under "5 labels" and "1 label" are means over two draws of
so many labels per class. Result: results/ablations.json.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from scipy import sparse

from _corpora import CORPORA, cut, draw_labels, load
from _versions import commit
from docsigma import BayesianSMM, DocumentEmbedder, TopicClassifier
from docsigma.classifiers import _believed_classes
from docsigma.classifiers._believed_classes import BelievedClasses
from docsigma.classifiers._factors import Factors
from docsigma.classifiers._words import inverse_document_frequencies
from docsigma.classifiers.hybrid import HybridClassifier
from peers_machine import describe_run
from quality import remember

ROOT = Path(__file__).parents[1]
DRAWS = 2


class WeightedSMM(BayesianSMM):
    """A model of log(1 + x) idf in the place of word counts x."""

    def fit(self, X: Any, y: Any = None, **options: Any) -> Any:
        """Learn the weights, then the model."""
        self.idf_ = inverse_document_frequencies(X)
        return super().fit(self._weigh(X), y, **options)

    def posterior(self, X: Any) -> Any:
        """Return the posteriors of plain counts."""
        return super().posterior(self._weigh(X[:]))

    def _weigh(self, X: Any) -> Any:
        weighted = X.astype(float)
        weighted.data = np.log1p(weighted.data) * self.idf_[weighted.indices]
        return weighted * (X.sum() / weighted.sum())


def no_pairs(texts: Any, *_: Any, **__: Any) -> Any:
    """Learn no pairs of words."""
    return None, sparse.csr_matrix((len(list(texts)), 0))


def without(number: int) -> Any:
    """Return opinions of which one is the same for all classes."""

    def opinions(self: HybridClassifier, features: Any) -> list[Any]:
        found = PLAIN_OPINIONS(self, features)
        found[number] = np.zeros_like(found[number])
        return found

    return [(HybridClassifier, "_opinions", opinions)]


def words_too(self: HybridClassifier, documents: Any) -> Any:
    """Let the regression see TF-IDF of words beside the means of embeddings."""
    found = PLAIN_FEATURES(self, documents)
    words = found.words[:, : documents.counts.shape[1]]
    means = sparse.hstack([words, sparse.csr_matrix(found.means)], format="csr")
    return replace(found, means=means)


def no_guesses(self: HybridClassifier, features: Any, known: Any, unknown: Any) -> None:
    """Train the linear classifiers on labelled documents only."""
    PLAIN_LINEAR(self, features, known, 0 * unknown)


def no_temperatures(*arguments: Any, **options: Any) -> BelievedClasses:
    """Learn classes as sure as they come."""
    return PLAIN_CLASSES(*arguments, **{**options, "temperature": False})


def equal_shares(log_proba: Any, _: Any) -> Any:
    """Average the ways in which classes are learned."""
    return np.full(len(log_proba), 1 / len(log_proba))


def all_words(self: Factors, share: float) -> Factors:
    """Let words count however often a document has them."""
    return self.times(torch.full_like(self.size, share))


def one_part(number: int) -> Any:
    """Return a pool that listens to one part only, as sure as it is."""

    def imitate(self: HybridClassifier, *arguments: Any) -> None:
        PLAIN_IMITATION(self, *arguments)
        self.pool_[2 - number] = 0.0
        self.pool_ *= 2.0

    return [(HybridClassifier, "_imitate", imitate)]


PLAIN_OPINIONS, PLAIN_FEATURES = HybridClassifier._opinions, HybridClassifier._features
PLAIN_LINEAR, PLAIN_IMITATION = (
    HybridClassifier._learn_linear,
    HybridClassifier._imitate,
)
PLAIN_CLASSES = BelievedClasses.fit
# Each with what it replaces: an object, a name, and the replacement.
PIECES: dict[str, list[tuple[Any, str, Any]]] = {
    "as it is": [],
    "no pairs of words": [("docsigma.text.topic_classifier", "learn_pairs", no_pairs)],
    "no machine": without(0),
    "no regression": without(1),
    "no score": without(2),
    "regression of words too": [(HybridClassifier, "_features", words_too)],
    "weighted counts": [],
}
EVERY_WORD = [(_believed_classes, "BELIEFS", (1.0,))]
REPEATED = [(Factors, "repeating", all_words)]
SCORE = {
    "every word counts in full": EVERY_WORD,
    "repeated words count": REPEATED,
    "no temperatures": [(BelievedClasses, "fit", no_temperatures)],
    "equal shares": [(_believed_classes, "_shares", equal_shares)],
}
ONE = {
    "as it is": [],
    **SCORE,
    "score alone": one_part(2),
    "machine alone": one_part(0),
}
PARTS = (
    "as it is",
    "no machine",
    "no regression",
    "regression of words too",
    "no score",
)
FEW = {
    **{name: PIECES[name] for name in PARTS},
    **SCORE,
    "no guesses": [(HybridClassifier, "_learn_linear", no_guesses)],
}
GROUPS = {"all": (PIECES, 1), "5 labels": (FEW, DRAWS), "1 label": (ONE, DRAWS)}


@contextmanager
def changed(pieces: list[tuple[Any, str, Any]]) -> Iterator[None]:
    """Replace pieces of the classifiers for a while."""
    with ExitStack() as stack:
        for owner, name, new in pieces:
            if isinstance(owner, str):
                stack.enter_context(patch(f"{owner}.{name}", new))
            else:
                stack.enter_context(patch.object(owner, name, new))
        yield


def held_out(name: str) -> tuple[list[str], np.ndarray, list[str], np.ndarray]:
    """Return training texts and labels, and those that stand for the test ones."""
    corpus = load(name)
    labels, random = corpus.labels, np.random.default_rng(0)
    held = np.zeros(len(labels), dtype=bool)
    # The two sides of a telephone call stand one after the other, and stay together.
    size = 2 if name == "switchboard" else 1
    for label in np.unique(labels):
        units = np.flatnonzero(labels == label).reshape(-1, size)
        if name != "20newsgroups":
            units = random.permutation(units)
        held[units[len(units) - len(units) // 5 :]] = True
    texts = np.array(corpus.texts, dtype=object)
    return list(texts[~held]), labels[~held], list(texts[held]), labels[held]


def embed(name: str, folder: Path) -> str:
    """Fit the embedder of a corpus, and save it; one that is there is used."""
    torch.set_num_threads(1)
    folder.parent.mkdir(parents=True, exist_ok=True)
    if not folder.exists():
        DocumentEmbedder(random_state=0).fit(held_out(name)[0]).save(folder)
    return name


def measure(name: str, folder: Path, group: str, piece: str, draw: int) -> dict:
    """Fit with one thing changed; return cross-entropies of held-out documents."""
    torch.set_num_threads(1)
    texts, labels, others, truth = held_out(name)
    changes = GROUPS[group][0][piece]
    if group != "all":
        labels = draw_labels(labels, int(group.split()[0]), draw)
    embedder: Any = DocumentEmbedder.load(folder)
    remember(embedder.model_, folder)
    if piece == "weighted counts":
        embedder = DocumentEmbedder(model=WeightedSMM(random_state=0)).fit(texts)
    begun = time.process_time()
    with changed(changes):
        topics = TopicClassifier(embedder).fit(texts, labels)
        row = {"fit_seconds": round(time.process_time() - begun, 1)}
        for n in (0, 10):
            log_proba = topics.predict_log_proba(cut(others, [n] * len(others)))
            codes = np.searchsorted(topics.classes_, truth)
            own = log_proba[np.arange(len(codes)), codes]
            row[str(n or "whole")] = round(float(-own.mean()), 4)
    return row


def main() -> None:
    """Run the ablations of some corpora."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpora", nargs="*", default=CORPORA)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--only", nargs="+", metavar="PIECE", help="by default all")
    parser.add_argument("--cache", type=Path, default=ROOT / "benchmarks/.cache/embed")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "benchmarks/results/ablations.json"
    )
    options = parser.parse_args()
    rows: dict[tuple[str, str, str], list[dict]] = {}
    # The largest first, so that nobody waits for it in the end.
    sizes = {name: sum(map(len, load(name).texts)) for name in options.corpora}
    names = sorted(sizes, key=lambda name: -sizes[name])
    run = describe_run(1) | {"commit": commit(ROOT)}
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:

        def submit(work: Callable[..., Any], name: str, *arguments: Any) -> Any:
            folder = options.cache / name.replace("/", "-")
            return pool.submit(work, name, folder, *arguments)

        embedded = [submit(embed, name) for name in names]
        jobs = {}
        for done in as_completed(embedded):
            name = done.result()
            for group, (pieces, n) in GROUPS.items():
                for piece in [p for p in pieces if p in (options.only or pieces)]:
                    for draw in range(n):
                        job = submit(measure, name, group, piece, draw)
                        jobs[job] = name, group, piece
        for done in as_completed(jobs):
            rows.setdefault(jobs[done], []).append(done.result())
            print(*jobs[done], rows[jobs[done]][-1], flush=True)
            found: dict[str, Any] = {}
            for (name, group, piece), each in sorted(rows.items()):
                values = {k: float(np.mean([row[k] for row in each])) for k in each[0]}
                mean = {k: round(value, 4) for k, value in values.items()}
                found.setdefault(name, {}).setdefault(group, {})[piece] = mean
            report = json.dumps({"run": run, "found": found}, indent=1)
            options.out.write_text(report + "\n", "utf-8")


if __name__ == "__main__":
    main()
