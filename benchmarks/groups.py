r"""Groups without labels, beside k-means, NMF and LDA, and changes between batches.

    python benchmarks/groups.py
    python benchmarks/groups.py drift

Up to 3000 training texts are divided into as many groups as there are labels: by
docsigma, by k-means on its means and on 100 dimensions of LSA, by NMF of TF-IDF and by
LDA (tomotopy, 150 passes). The adjusted Rand index and the normalised mutual
information compare with the labels; coherence is the mean NPMI of pairs of a group's
ten words in the texts, and diversity the share of distinct ones. Words of k-means are
those of the highest mean TF-IDF. Three seeds; one embedder. Then the number of groups
is found, and how much better or worse the labels themselves explain held-out texts.

`drift` compares 600 search snippets with 200 others that are half as long, 200 times,
by ten topics; and questions of CLINC150 without one of its intents with others of which
3 % have it, ten times, by ten topics and finer ones. Then the share of documents that
nothing explains: of development questions with intents, and of those out of scope.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.cluster import KMeans
from sklearn.decomposition import NMF, TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.preprocessing import normalize

from _corpora import _read, load
from _versions import changed_commit
from docsigma.classifiers._class_gaussians import fit_classes, overall
from docsigma.explore.drift import compare_batches
from docsigma.groups.gaussians import Groups
from docsigma.groups.mixture import Mixture, documents_as_factors
from peers_machine import describe_run
from quality import write
from search import embedder_of

ROOT = Path(__file__).parents[1]
CORPORA = (
    "switchboard",
    "short-texts/searchsnippets",
    "docstrings",
    "open-intents/clinc150",
    "20newsgroups",
    "short-texts/stackoverflow",
)


def coherence(having: Any, tops: list[Any]) -> float:
    """Return the mean NPMI of pairs of words: -1 for words that never meet."""
    n, found = having.shape[0], []
    for top in tops:
        some = having[:, top].toarray().astype(float)
        both = some.T @ some / n
        alone = both.diagonal()
        for i in range(len(top)):
            for j in range(i):
                p = both[i, j]
                ratio = np.log(max(p, 1e-12) / alone[i] / alone[j])
                found.append(-1.0 if p == 0 else ratio / -np.log(min(p, 1 - 1e-9)))
    return float(np.mean(found))


def by_centres(tfidf: Any, codes: Any, k: int) -> list[Any]:
    means = [np.asarray(tfidf[codes == g].mean(axis=0)).ravel() for g in range(k)]
    return [np.argsort(-mean)[:10] for mean in means]


def lda(counts: Any, k: int, seed: int) -> tuple[Any, list[Any]]:
    """Return the likeliest topic of each document, and the words of topics."""
    import tomotopy

    model = tomotopy.LDAModel(k=k, seed=seed)
    rows = np.flatnonzero(counts.getnnz(axis=1))
    for row in rows:
        own = counts[row]
        words = np.repeat(own.indices, own.data.astype(int))
        model.add_doc([str(word) for word in words])
    model.train(150, workers=1)
    codes = np.zeros(counts.shape[0], dtype=int)
    codes[rows] = [int(np.argmax(d.get_topic_dist())) for d in model.docs]
    tops = [[int(w) for w, _ in model.get_topic_words(g, 10)] for g in range(k)]
    return codes, tops


def grouped(
    name: str, folder: Path, n: int, seeds: list[int], only: list[str] | None
) -> dict[str, Any]:
    """Group the texts of one corpus by five methods, or only some of them."""
    corpus = load(name)
    embedder = embedder_of(corpus, folder)
    model = embedder.model_
    rows = np.random.default_rng(1).permutation(len(corpus.texts))[:n]
    truth = corpus.labels[rows]
    counts = model.vocabulary_.count([corpus.texts[row] for row in rows]).counts
    q, k = model.posterior(counts), len(np.unique(truth))
    tfidf = TfidfTransformer(sublinear_tf=True).fit_transform(counts).tocsr()
    having = sp.csr_matrix(counts > 0).tocsc()
    place = {word: column for column, word in enumerate(model.vocabulary_.words)}

    def docsigma(seed: int) -> tuple[Any, list[Any]]:
        model.seed_ = seed
        found = Groups.fit(model, q, k, 10, counts)
        return found.of, [[place[w] for w in g.words] for g in found.found]

    def kmeans(points: Any, seed: int) -> tuple[Any, list[Any]]:
        codes = KMeans(k, n_init=4, random_state=seed).fit_predict(points)
        return codes, by_centres(tfidf, codes, k)

    def lsa(seed: int) -> tuple[Any, list[Any]]:
        svd = TruncatedSVD(100, random_state=seed)
        return kmeans(normalize(svd.fit_transform(tfidf)), seed)

    def nmf(seed: int) -> tuple[Any, list[Any]]:
        found = NMF(k, random_state=seed, max_iter=100, init="nndsvdar")
        codes = found.fit_transform(tfidf).argmax(axis=1)
        return codes, [np.argsort(-row)[:10] for row in found.components_]

    methods: dict[str, Any] = {
        "docsigma": docsigma,
        "k-means of means": lambda seed: kmeans(q.mean, seed),
        "k-means of LSA": lsa,
        "NMF": nmf,
        "LDA": lambda seed: lda(counts, k, seed),
    }
    report: dict[str, Any] = {"n_documents": len(rows), "n_labels": k}
    for method, find in methods.items():
        if only and method not in only:
            continue
        values = []
        begun = time.perf_counter()
        for seed in seeds:
            codes, tops = find(seed)
            words = [w for top in tops for w in top]
            values.append(
                [
                    adjusted_rand_score(truth, codes),
                    normalized_mutual_info_score(truth, codes),
                    coherence(having, tops),
                    len(set(words)) / len(words),
                ]
            )
        seconds = (time.perf_counter() - begun) / len(seeds)
        mean = np.mean(values, axis=0)
        error = np.std(values, axis=0, ddof=1) / len(seeds) ** 0.5
        names = ("rand", "mutual_information", "coherence", "diversity")
        report[method] = {
            what: [round(float(m), 3), round(float(e), 3)]
            for what, m, e in zip(names, mean, error, strict=True)
        } | {"seconds": round(seconds, 1)}
        print(name, method, report[method], flush=True)
    model.seed_ = 0
    found = Groups.fit(model, q)
    report["number_found"] = len(found)
    report["labels_better"] = labels_better(q, truth, len(found))
    print(name, k, report["number_found"], report["labels_better"], flush=True)
    return report


def labels_better(q: Any, truth: Any, number: int) -> list[float]:
    """Return how much better labels explain held-out texts than the groups found.

    In nats per text, with the standard error. A quarter of the texts is held out; the
    rest is in groups by its labels, and in the number of groups found.
    """
    information, factors = documents_as_factors(q)
    order = np.random.default_rng(0).permutation(len(truth))
    known, held_out = np.split(order, [int(0.75 * len(order))])
    codes = np.unique(truth, return_inverse=True)[1]
    every = torch.eye(codes.max() + 1, dtype=torch.float64)[codes[known]]
    own = factors[known]
    everything = overall(information, own, every.sum(dim=1))
    nobody = torch.zeros_like(own.size)
    shares = (every.mean(dim=0) + 1e-9).log()
    classes = fit_classes(information, own, every, nobody, shares, everything)
    labels = Mixture(classes, shares).evidence(factors[held_out])
    groups = Mixture.fit(information, own, number, 0).evidence(factors[held_out])
    gain = (labels - groups).numpy()
    error = gain.std(ddof=1) / len(gain) ** 0.5
    return [round(float(gain.mean()), 2), round(float(error), 2)]


def thinned(counts: Any, random: Any) -> Any:
    """Return counts without a random half of the tokens."""
    found = counts.copy()
    found.data = random.binomial(counts.data.astype(int), 0.5).astype(counts.dtype)
    found.eliminate_zeros()
    return found


def drifted(name: str, folder: Path, n_times: int) -> dict[str, Any]:
    """Compare batches that differ in length alone."""
    corpus = load(name)
    model = embedder_of(corpus, folder).model_
    counts = model.vocabulary_.count(corpus.texts).counts
    short = thinned(counts, np.random.default_rng(0))
    alarms = topics = 0
    for seed in range(n_times):
        random = np.random.default_rng(seed)
        rows = random.permutation(counts.shape[0])
        drift = compare(model, counts[rows[:600]], short[rows[600:800]], 10, seed)
        topics += any(t.grew is not None for t in drift.topics)
        alarms += any(t.grew is not None for t in drift.topics) or bool(drift.words)
    report = {"n_splits": n_times, "alarms": alarms, "by_topics": topics}
    print(name, report, flush=True)
    return report


def planted(name: str, folder: Path, n_times: int) -> dict[str, Any]:
    """Compare batches of which the new one has 3 % of an intent that is new."""
    corpus = load(name)
    model = embedder_of(corpus, folder).model_
    counts = model.vocabulary_.count(corpus.texts).counts
    report: dict[str, Any] = {"n_times": n_times}
    for n_old, n_new in ((5000, 3000), (1500, 1000)):
        found, topics = [], 0
        for seed in range(n_times):
            random = np.random.default_rng(seed)
            rows = random.permutation(counts.shape[0])
            topic = corpus.labels == random.choice(corpus.labels)
            rest, own = rows[~topic[rows]], rows[topic[rows]][: int(0.03 * n_new)]
            new = np.concatenate([rest[n_old : n_old + n_new - len(own)], own])
            old = counts[rest[:n_old]]
            drift = compare(model, old, counts[new], 10, seed)
            words = any(word.new > word.old for word in drift.words)
            topics += any(t.grew for t in drift.topics)
            found.append(words or any(t.grew for t in drift.topics))
        which = f"found_{len(own)}_of_{n_new}"
        report |= {which: sum(found), f"{which}_by_topics": topics}
    folder = Path(os.environ["DOCSIGMA_DATA"]) / name
    words, old = model.vocabulary_, model.vocabulary_.count(corpus.texts[::3])
    for which, files in (
        ("known", ["dev"]),
        ("out_of_scope", ["out-of-scope-dev", "out-of-scope-train"]),
    ):
        texts = [t for one in files for t in _read(folder / f"{one}.jsonl.xz")[0]]
        new = words.count(texts)
        unknown = np.concatenate([old.n_unknown, new.n_unknown])
        drift = compare(model, old.counts, new.counts, 10, 0, unknown)
        report[f"unexplained_{which}"] = round(drift.unexplained_new.value, 4)
    print(name, report, flush=True)
    return report


def compare(
    model: Any, old: Any, new: Any, n_topics: int, seed: int, n_unknown: Any = None
) -> Any:
    q = [model.posterior(batch) for batch in (old, new)]
    return compare_batches(
        model,
        *q,
        n_topics=n_topics,
        counts=sp.vstack([old, new], format="csr"),
        n_unknown=n_unknown,
        random_state=seed,
    )


def main() -> None:
    """Measure groups, or drift."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "what", nargs="?", choices=("groups", "drift"), default="groups"
    )
    parser.add_argument("--corpora", nargs="+", default=CORPORA)
    parser.add_argument("--documents", type=int, default=3000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--splits", type=int, default=200)
    parser.add_argument("--embedders", type=Path, default=ROOT / "benchmarks/.cache")
    parser.add_argument("--methods", nargs="+", help="keep the others of the file")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    out = given.out or ROOT / f"benchmarks/results/{given.what}.json"
    report = describe_run(torch.get_num_threads()) | changed_commit(ROOT)
    report["corpora"] = {}
    if given.methods:
        before = json.loads(out.read_text("utf-8"))
        report["corpora"] = before["corpora"]
        report["others"] = {what: before[what] for what in ("commit", "date")}
    names = given.corpora
    if given.what == "drift":
        names = ("short-texts/searchsnippets", "open-intents/clinc150")
    for name in names:
        if given.what == "drift":
            work, n_times = (drifted, given.splits)
            if name.endswith("clinc150"):
                work, n_times = planted, 10
            found = work(name, given.embedders, n_times)
        else:
            sizes = given.documents, given.seeds
            found = grouped(name, given.embedders, *sizes, given.methods)
        report["corpora"].setdefault(Path(name).name, {}).update(found)
        write(out, report)


if __name__ == "__main__":
    main()
