r"""How well search finds texts of the same label, beside TF-IDF and BM25.

    python benchmarks/search.py
    python benchmarks/search.py switchboard --labels --out /tmp/labels.json

Some 1000 test texts, whole and cut to their first ten words, look for training texts;
a training text with the same label is right. `DocumentIndex` is compared with the
cosine of TF-IDF and with BM25 of the same texts: precision of the first hit, mean
average precision, and how many standard errors, over queries, it is better by. Then
every training text is looked for in the index. The one constant of the index, the share
of variance within topics, was chosen on training texts of 20 Newsgroups and docstrings.

With `--labels` a classifier learns half of the classes from the training texts, and
queries are counted by whether their class was learned or held out; the index is
compared with the sum over classes of the products of predicted probabilities.

With `--unlike` it is how often a query is said to be like nothing in the index, at a
p-value of 0.05: training texts that neither index nor vocabulary has seen, test texts
of the corpus, and the first ten words of those of another. Only words count here, so
the embedder has two components.

With `--speed` it is the median time of a query and the memory per document, of the
index as it is and of Wasserstein-2 alone, and the time to embed a query, which all
need.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.metrics import roc_auc_score

from _corpora import CORPORA, cut, load
from _versions import changed_commit
from docsigma import DocumentEmbedder, DocumentIndex, TopicClassifier
from docsigma.counts.texts import as_texts
from peers_machine import describe_run
from quality import write

ROOT = Path(__file__).parents[1]
SEARCHED = [name for name in CORPORA if not name.endswith("stackoverflow")]
# Today's index before words counted: what the index is timed beside.
BEFORE = "wasserstein2"


def ranked(scores: Any, right: Any) -> dict[str, Any]:
    """Return whether the first hit is right, and average precision, query by query."""
    order = np.argsort(-scores, axis=1, kind="stable")
    return measured(np.take_along_axis(right, order, axis=1))


def measured(hits: Any) -> dict[str, Any]:
    ranks = np.arange(1, hits.shape[1] + 1)
    precision = np.cumsum(hits, axis=1) / ranks
    mean = (precision * hits).sum(axis=1) / np.maximum(hits.sum(axis=1), 1)
    return {"first": hits[:, 0].astype(float), "map": mean}


def found_by(index: DocumentIndex, texts: list[str], right: Any) -> Any:
    """Return which documents are right, in the order in which the index ranks all."""
    counts = index.count(texts)
    q = index.embed(counts)
    classes = index._classes(counts, q, texts)
    results = index.index.search(
        q, len(index), counts=counts, classes=classes, exact=True
    )
    return np.stack([own[one.rows] for own, one in zip(right, results, strict=True)])


def bm25(texts: list[str], documents: list[str]) -> Any:
    """Return scores by BM25 in Lucene's form, k1 1.5 and b 0.75, as bm25s has it."""
    vectorizer = CountVectorizer()
    counts = vectorizer.fit_transform(documents).astype(float)
    n = counts.shape[0]
    having = np.bincount(counts.indices, minlength=counts.shape[1])
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    norm = 0.25 + 0.75 * lengths / lengths.mean()
    rows = np.repeat(np.arange(n), np.diff(counts.indptr))
    rarity = np.log(1 + (n - having + 0.5) / (having + 0.5))[counts.indices]
    counts.data = rarity * 2.5 * counts.data / (counts.data + 1.5 * norm[rows])
    return (vectorizer.transform(texts) @ counts.T).toarray()


def compared(own: Any, others: dict[str, Any]) -> dict[str, Any]:
    """Return means, and the differences from ours in standard errors."""
    report: dict[str, Any] = {}
    for what, ours in own.items():
        report[what] = {"docsigma": round(float(ours.mean()), 4)}
        for name, other in others.items():
            theirs = other[what]
            error = (ours - theirs).std(ddof=1) / np.sqrt(len(ours))
            better = float((ours - theirs).mean() / max(error, 1e-12))
            report[what][name] = round(float(theirs.mean()), 4)
            report[what][f"errors_better_than_{name}"] = round(better, 1)
    return report


def measure(name: str, folder: Path, n_queries: int) -> dict[str, Any]:
    """Search one corpus without labels."""
    corpus = load(name)
    embedder = embedder_of(corpus, folder)
    random = np.random.default_rng(0)
    rows = np.sort(random.permutation(len(corpus.test_labels))[:n_queries])
    right = corpus.test_labels[rows][:, None] == corpus.labels[None]
    report: dict[str, Any] = {"n_documents": len(corpus.texts), "n_queries": len(rows)}
    index = DocumentIndex(embedder.model_)
    index.add(corpus.texts)
    tfidf = TfidfVectorizer(sublinear_tf=True)
    matrix = tfidf.fit_transform(corpus.texts)
    for size in (0, 10):
        texts = [corpus.test(size)[row] for row in rows]
        others = {
            "tfidf": ranked((tfidf.transform(texts) @ matrix.T).toarray(), right),
            "bm25": ranked(bm25(texts, corpus.texts), right),
        }
        own = measured(found_by(index, texts, right))
        report["whole" if not size else "ten_words"] = compared(own, others)
    report["found_themselves"] = found_themselves(index, corpus.texts, n_queries)
    return report


def found_themselves(index: DocumentIndex, texts: list[str], n: int) -> float:
    """Return the share of documents that find themselves, or their equal, first."""
    counts = index.count(texts)
    rows = np.random.default_rng(1).permutation(len(texts))[:n]
    rows = rows[counts[rows].getnnz(axis=1) > 0]
    found = index.index.search(index.embed(counts[rows]), 1, counts=counts[rows])
    same = [
        abs(counts[a] - counts[b.rows[0]]).nnz == 0
        for a, b in zip(rows, found, strict=True)
    ]
    return float(np.mean(same))


def measure_speed(name: str, folder: Path, n_queries: int) -> dict[str, Any]:
    """Return queries per second, embedding included, and bytes per document.

    The floor is what any search pays: counting and embedding the query.
    """
    corpus = load(name)
    embedder = embedder_of(corpus, folder)
    report: dict[str, Any] = {"n_documents": len(corpus.texts), "n_queries": n_queries}
    texts = [corpus.test(0)[row] for row in range(n_queries)]
    indexes = [DocumentIndex(embedder.model_, metric=m) for m in ("joint", BEFORE)]
    works: dict[str, Any] = {}
    for index in indexes:
        index.add(as_texts(corpus.texts), excerpt=0)
        works[index.index.metric] = index.search
    works["floor"] = lambda one: indexes[0].embed(indexes[0].count(one))
    for which, work in works.items():
        work(texts[:2])
        seconds = []
        for text in texts:
            begun = time.perf_counter()
            work([text])
            seconds.append(time.perf_counter() - begun)
        report[which] = {"milliseconds": round(1000 * float(np.median(seconds)), 2)}
    for index in indexes:
        size = round(memory(index.index) / len(index))
        report[index.index.metric]["bytes_per_document"] = size
    return report


def memory(index: Any) -> int:
    """Return the bytes of the arrays that an index keeps."""
    arrays = list(index._arrays.values())
    if (about := index._prepared) is not None and index.metric == "joint":
        arrays += [about.linear, about.precision, about.evidence]
    if index.metric == "joint":
        for matrix in (index.counts, index._words._by_word):
            arrays += [matrix.data, matrix.indices, matrix.indptr]
    graph = index._neighbours
    more = 0 if graph is None else int(graph._index.memory_usage)
    return more + sum(array.nbytes for array in arrays)


def measure_labels(name: str, folder: Path, n_queries: int) -> dict[str, Any]:
    """Search with a classifier of half of the classes."""
    corpus = load(name)
    embedder = embedder_of(corpus, folder)
    random = np.random.default_rng(0)
    classes = np.unique(corpus.labels)
    held_out = random.permutation(classes)[: len(classes) // 2]
    rows = np.sort(random.permutation(len(corpus.test_labels))[:n_queries])
    truth = corpus.test_labels[rows]
    unseen = np.isin(truth, held_out)
    labels = corpus.labels.astype(object)
    labels[np.isin(corpus.labels, held_out)] = None
    topics = TopicClassifier(embedder, missing_label=None).fit(corpus.texts, labels)
    index = DocumentIndex(topics.classifier_)
    index.add(corpus.texts, labels=list(labels))
    right = truth[:, None] == corpus.labels[None]
    known = topics.predict_proba(corpus.texts)
    report: dict[str, Any] = {"n_classes_learned": len(classes) - len(held_out)}
    for size in (0, 10):
        texts = [corpus.test(size)[row] for row in rows]
        own = measured(found_by(index, texts, right))
        other = ranked(topics.predict_proba(texts) @ known.T, right)
        for which, some in (("learned", ~unseen), ("held_out", unseen)):
            parts = [{k: v[some] for k, v in found.items()} for found in (own, other)]
            part = f"{'whole' if not size else 'ten_words'}_{which}"
            report[part] = compared(parts[0], {"products": parts[1]})
    return report


def measure_unlike(name: str, folder: Path, n_queries: int) -> dict[str, Any]:  # noqa: ARG001
    """Search an index for texts of its corpus, and of another."""
    corpus = load(name)
    other = SEARCHED[SEARCHED.index(name) - 1]
    random = np.random.default_rng(0)
    order = random.permutation(len(corpus.texts)).tolist()
    held_out = [corpus.texts[row] for row in order[:n_queries]]
    indexed = [corpus.texts[row] for row in order[n_queries:]]
    embedder = DocumentEmbedder(2, random_state=0).fit(indexed)
    index = DocumentIndex(embedder.model_)
    index.add(indexed)
    index.learn_typical(indexed)

    def p_values(texts: list[str], size: int) -> Any:
        rows = random.permutation(len(texts))[:n_queries]
        return index.p_values(cut([texts[row] for row in rows], [size] * len(rows)))

    strange = p_values(load(other).test_texts, 10)
    report: dict[str, Any] = {"other": Path(other).name, "n_queries": n_queries}
    report["told_of_other"] = round(float((strange <= 0.05).mean()), 3)
    for size in (0, 10):
        own, later = p_values(held_out, size), p_values(corpus.test_texts, size)
        truth = np.repeat([1, 0], [len(own), len(strange)])
        area = roc_auc_score(truth, np.concatenate([own, strange]))
        report["whole" if not size else "ten_words"] = {
            "told_of_held_out": round(float((own <= 0.05).mean()), 3),
            "told_of_test": round(float((later <= 0.05).mean()), 3),
            "area_under_curve": round(float(area), 3),
        }
    return report


def embedder_of(corpus: Any, folder: Path) -> DocumentEmbedder:
    """Return an embedder with default settings, fitted if it is not in the folder."""
    path = folder / f"{Path(corpus.name).name}-0"
    if path.exists():
        return DocumentEmbedder.load(path)
    embedder = DocumentEmbedder(random_state=0).fit(corpus.texts)
    folder.mkdir(parents=True, exist_ok=True)
    embedder.save(path)
    return embedder


def main() -> None:
    """Measure corpora, smallest first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="*", default=SEARCHED)
    parser.add_argument("--labels", action="store_true")
    parser.add_argument("--unlike", action="store_true")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--embedders", type=Path, default=ROOT / "benchmarks/.cache")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    name, work = "search.json", measure
    if given.labels:
        name, work = "search-labels.json", measure_labels
    if given.unlike:
        name, work = "search-unlike.json", measure_unlike
    if given.speed:
        name, work = "search-queries.json", measure_speed
    out = given.out or ROOT / "benchmarks/results" / name
    report = describe_run(torch.get_num_threads()) | changed_commit(ROOT)
    report["corpora"] = {}
    for corpus in given.corpora:
        found = work(corpus, given.embedders, given.queries)
        print(corpus, found, flush=True)
        report["corpora"][Path(corpus).name] = found
        write(out, report)


if __name__ == "__main__":
    main()
