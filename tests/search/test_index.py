from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from docsigma import (
    EvidenceClassifier,
    GaussianPosterior,
    GaussianPrior,
    InputError,
    distances,
)
from docsigma.metrics import expected_calibration_error
from docsigma.search import GaussianIndex

K = 6
PRIOR = GaussianPrior.isotropic(1.0, K)


def draw(n, seed, n_classes=5):
    """Documents of a known model: topics, documents around them, noise by length."""
    random = np.random.default_rng(seed)
    topics = 0.9 * np.random.default_rng(99).standard_normal((n_classes, K))
    labels = random.integers(n_classes, size=n)
    w = topics[labels] + 0.4 * random.standard_normal((n, K))
    precision = random.uniform(0.5, 20.0, (n, 1)) * np.ones((n, K))
    seen = w + random.standard_normal((n, K)) / np.sqrt(precision)
    variance = 1 / (1 + precision)
    q = GaussianPosterior(
        (seen * precision * variance).astype(np.float32),
        variance.astype(np.float32),
        prior=PRIOR,
        n_tokens=np.full(n, 50.0),
        model_digest="m",
    )
    return q, [f"topic {label}" for label in labels]


@pytest.fixture(scope="module")
def classifier():
    q, labels = draw(400, 0)
    return EvidenceClassifier().fit(q, labels)


def ids(results):
    return [result.ids for result in results]


@pytest.mark.parametrize("metric", ["wasserstein2", "kl"])
def test_exact_search_ranks_by_the_distance(metric):
    documents, queries = draw(60, 1)[0], draw(4, 2)[0]
    index = GaussianIndex(metric=metric)
    index.add(documents)
    matrix = distances.wasserstein2(queries, documents)
    if metric == "kl":
        matrix = distances.kl(documents, queries).T
    for found, row in zip(index.search(queries, n=7), matrix, strict=True):
        order = np.argsort(row, kind="stable")[:7]
        assert found.ids == [str(i) for i in order]
        np.testing.assert_allclose(found.scores, row[order], rtol=1e-6)
        assert found.probabilities is None


def test_with_a_classifier_search_ranks_by_the_log_ratio(classifier):
    documents, queries = draw(60, 1)[0], draw(4, 2)[0]
    index = GaussianIndex(classifier)
    index.add(documents)
    ratios = classifier.same_topic_log_ratio(queries, documents)
    for found, row in zip(index.search(queries, n=7), ratios, strict=True):
        assert found.ids == [str(i) for i in np.argsort(-row, kind="stable")[:7]]
        # What documents say is kept in single precision.
        np.testing.assert_allclose(found.scores, np.sort(row)[::-1][:7], atol=1e-4)


def test_without_labels_the_ratio_is_that_of_topics_with_the_prior_s_variance():
    documents, queries = draw(8, 1)[0], draw(3, 2)[0]
    index = GaussianIndex(metric="same_topic")
    index.add(documents)

    def seen(q):
        noise = 1 / (1 / q.variance[0].astype(float) - 1)
        return q.mean[0] * (1 + noise), noise

    for row, found in enumerate(index.search(queries, n=8)):
        a, noise_a = seen(queries[row])
        for name, score in zip(found.ids, found.scores, strict=True):
            b, noise_b = seen(documents[int(name)])
            expected = 0.0
            for k in range(K):
                own = [1 + noise_a[k], 1 + noise_b[k]]
                both = multivariate_normal([0, 0], [[own[0], 0.9], [0.9, own[1]]])
                expected += both.logpdf([a[k], b[k]])
                expected -= norm.logpdf(a[k], scale=own[0] ** 0.5)
                expected -= norm.logpdf(b[k], scale=own[1] ** 0.5)
            assert score == pytest.approx(expected, abs=1e-3)


def bm25(query, counts):
    """Score documents word by word, straight from the formula."""
    n, scores = len(counts), np.zeros(len(counts))
    for row, document in enumerate(counts):
        length = document.sum() / (counts.sum() / n)
        for word in np.flatnonzero(query):
            having, x = (counts[:, word] > 0).sum(), document[word]
            rarity = np.log(1 + (n - having + 0.5) / (having + 0.5))
            share = 2.5 * x / (x + 1.5 * (0.25 + 0.75 * length))
            scores[row] += query[word] * rarity * share
    return scores


@pytest.mark.parametrize("metric", ["joint", "words"])
def test_the_score_is_the_sum_of_words_and_ratio_and_equal_counts_come_first(
    metric, tmp_path
):
    documents, queries = draw(40, 1)[0], draw(4, 2)[0]
    random = np.random.default_rng(0)
    counts = random.poisson(0.5, (40, 12))
    asked = random.poisson(0.5, (4, 12))
    # The first query is twice in the index, once longer.
    counts[7] = counts[9] = asked[0]
    counts[8] = 3 * asked[0]
    index = GaussianIndex(metric=metric)
    index.add(documents[:15], counts=counts[:15])
    index.add(documents[15:], counts=counts[15:])
    alone = GaussianIndex(metric="same_topic")
    alone.add(documents)
    index.save(tmp_path / "index")
    loaded = GaussianIndex.load(tmp_path / "index")
    ratios = alone.search(queries, n=40)
    for row, found in enumerate(index.search(queries, n=40, counts=asked)):
        expected = bm25(asked[row], counts)
        if metric == "joint":
            expected[ratios[row].rows] += ratios[row].scores
        order = np.argsort(-expected, kind="stable").tolist()
        if row == 0:
            first = sorted((7, 9), key=order.index)
            order = first + [other for other in order if other not in first]
        assert found.rows.tolist() == order
        np.testing.assert_allclose(found.scores, expected[order], atol=1e-3)
        again = loaded.search(queries[row], n=40, counts=asked[row : row + 1])[0]
        assert again.ids == found.ids
    index.remove(["7"])
    assert index.search(queries[:1], n=1, counts=asked[:1])[0].ids == ["9"]
    with pytest.raises(InputError, match="needs the `counts` of queries"):
        index.search(queries)
    with pytest.raises(InputError, match="all documents must have `counts`, or none"):
        index.add(queries, ["a", "b", "c", "d"])


@pytest.mark.parametrize("ranked", ["wasserstein2", "same_topic"])
def test_approximate_search_finds_what_exact_search_finds(ranked, classifier, tmp_path):
    pytest.importorskip("usearch")
    (documents, labels), queries = draw(12_000, 1), draw(50, 2)[0]
    index = GaussianIndex(classifier, metric=ranked)
    index.add(documents, labels=labels)
    assert "approximate" in repr(index)

    def recall(index):
        exact = ids(index.search(queries, exact=True))
        found = ids(index.search(queries))
        shared = [len(set(a) & set(b)) for a, b in zip(exact, found, strict=True)]
        return sum(shared) / (10 * len(queries))

    assert recall(index) >= 0.98
    index.save(tmp_path / "index")
    mapped = GaussianIndex.load(tmp_path / "index")
    assert isinstance(mapped._arrays["mean"], np.memmap)
    assert ids(mapped.search(queries)) == ids(index.search(queries))
    # A graph that is mapped can be changed, and what is removed is not found.
    gone = mapped.search(queries[:1])[0].ids[:3]
    mapped.remove(gone)
    mapped.add(queries[:1], ["again"])
    found = mapped.search(queries[:1])[0].ids
    # By ratios a document that is surer than the query itself comes before it.
    assert "again" in found or ranked == "same_topic"
    assert mapped.row("again") == len(mapped) - 1
    assert not set(found) & set(gone)
    assert recall(mapped) >= 0.98
    # The file has not changed.
    assert len(GaussianIndex.load(tmp_path / "index")) == 12_000
    only = mapped.search(
        queries[:3], labels=["topic 1", "topic 2", "topic 3", "topic 4"]
    )
    assert all(label != "topic 0" for found in only for label in found.labels)
    assert all(len(found.ids) == 10 for found in only)


def test_filters_leave_out_labels_and_uncertain_documents():
    (documents, labels), queries = draw(80, 1), draw(3, 2)[0]
    index = GaussianIndex()
    index.add(documents, labels=labels)
    for found in index.search(queries, n=50, labels=["topic 1"]):
        assert set(found.labels) == {"topic 1"}
    limit = float(np.median(documents.total_variance))
    for found in index.search(queries, n=80, max_total_variance=limit):
        assert len(found.ids) == (documents.total_variance <= limit).sum()
        assert (documents.total_variance[found.rows] <= limit).all()
    assert index.search(queries, labels=["no such label"])[0].ids == []


def test_saved_index_finds_the_same(classifier, tmp_path):
    (documents, labels), queries = draw(60, 1), draw(4, 2)[0]
    index = GaussianIndex(classifier)
    index.add(documents, labels=labels)
    index.calibrate().save(tmp_path / "index")
    loaded = GaussianIndex.load(tmp_path / "index")
    for a, b in zip(index.search(queries), loaded.search(queries), strict=True):
        assert (a.ids, a.labels) == (b.ids, b.labels)
        np.testing.assert_array_equal(a.scores, b.scores)
        np.testing.assert_array_equal(a.probabilities, b.probabilities)
    loaded.remove(loaded.ids)
    with pytest.raises(InputError, match="index exists already: pass `overwrite=True`"):
        loaded.save(tmp_path / "index")
    assert len(GaussianIndex.load(tmp_path / "index")) == 60
    loaded.save(tmp_path / "index", overwrite=True)
    assert len(GaussianIndex.load(tmp_path / "index")) == 0
    # Of the states before nothing is left.
    assert len(list((tmp_path / "index").iterdir())) == 2


def test_probabilities_of_new_pairs_are_calibrated(classifier):
    documents, labels = draw(600, 3)
    index = GaussianIndex(classifier)
    index.add(documents, labels=labels)
    index.calibrate()
    new, own = draw(300, 4)
    ratios = classifier.same_topic_log_ratio(new, documents)
    same = np.array(own)[:, None] == np.array(labels)[None]
    p = index.calibration.predict(ratios).ravel()
    ece = expected_calibration_error(
        np.stack([1 - p, p], axis=1),
        same.ravel(),
        classes=[False, True],
        scope="classwise",
    )
    # Pairs share documents, so that errors of 600 and 300 of them remain.
    assert ece < 0.03


def test_without_labels_no_probability_is_claimed(classifier):
    index = GaussianIndex(classifier)
    index.add(draw(60, 1)[0])
    assert index.calibrate().search(draw(1, 2)[0])[0].probabilities is None
    with pytest.raises(InputError, match="classifier"):
        GaussianIndex().calibrate()


def test_posteriors_of_another_model_are_refused():
    index = GaussianIndex()
    q = draw(3, 0)[0]
    index.add(q)
    other = GaussianPosterior(q.mean, q.variance, prior=PRIOR, model_digest="another")
    for act in (index.search, index.add):
        with pytest.raises(InputError, match=r"another model \(another\).*\(m\)"):
            act(other)
    small = GaussianPosterior(np.zeros((1, 2)), np.ones((1, 2)), model_digest="m")
    with pytest.raises(InputError, match="2 components, the index 6"):
        index.search(small)
    full = GaussianPosterior(q.mean, covariance=np.stack([np.eye(K)] * 3))
    with pytest.raises(InputError, match="diagonal"):
        GaussianIndex().add(full)


def test_ids_are_unique_and_known():
    index = GaussianIndex()
    q = draw(3, 0)[0]
    index.add(q, ["a", "b", "c"])
    with pytest.raises(InputError, match="already has a document 'b'"):
        index.add(q[:1], ["b"])
    with pytest.raises(InputError, match="no document 'x'"):
        index.remove(["x"])
    with pytest.raises(InputError, match="3 documents but 2 `ids`"):
        GaussianIndex().add(q, ["a", "b"])
    index.remove(["a"])
    assert index.ids == ["b", "c"]
    with pytest.raises(InputError, match="`n` must be 1 or more"):
        index.search(q, n=0)


def test_other_folders_are_not_overwritten(tmp_path):
    index = GaussianIndex()
    index.add(draw(3, 0)[0])
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("mine")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text('{"format": "docsigma-model"}')
    for name, why in (("notes", "not a docsigma"), ("model", "but not an index")):
        with pytest.raises(InputError, match=why):
            index.save(tmp_path / name, overwrite=True)
    with pytest.raises(InputError, match="does not describe a docsigma index"):
        GaussianIndex.load(tmp_path / "model")
    with pytest.raises(InputError, match="there is no index folder"):
        GaussianIndex.load(tmp_path / "nothing")


def test_damaged_files_are_refused(tmp_path):
    index = GaussianIndex()
    index.add(draw(30, 0)[0])
    index.save(tmp_path / "index")
    (mean,) = (tmp_path / "index").glob("*/mean.npy")
    mean.write_bytes(mean.read_bytes()[:100])
    with pytest.raises(InputError, match="mean.npy is missing or damaged"):
        GaussianIndex.load(tmp_path / "index")


WRITER = """
import sys
import numpy as np
from docsigma import GaussianPosterior
from docsigma.search import GaussianIndex
index = GaussianIndex()
for n in (2000, 3000):
    index = GaussianIndex(metric="wasserstein2", approximate=False)
    index.add(GaussianPosterior(np.full((n, 50), float(n)), np.ones((n, 50))))
    indexes = [index] if n == 2000 else [*indexes, index]
print("ready", flush=True)
while True:
    for index in indexes:
        index.save(sys.argv[1], overwrite=True)
"""


@pytest.mark.parametrize("n_times", [2, pytest.param(6, marks=pytest.mark.release)])
def test_a_killed_save_leaves_the_old_or_the_new_index(n_times, tmp_path):
    folder = tmp_path / "index"
    random = np.random.default_rng(0)
    for _ in range(n_times):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, folder], stdout=subprocess.PIPE
        )
        assert process.stdout.readline() == b"ready\n"
        time.sleep(0.05 + 0.1 * random.random())
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        if not folder.exists():
            continue
        found = GaussianIndex.load(folder)
        assert len(found) in (2000, 3000)
        assert (found._arrays["mean"] == len(found)).all()
    assert folder.exists()


def test_probabilities_of_one_text_sum_to_that_of_its_being_there():
    """By hand: one of n documents with a half, or none of them."""
    prior = GaussianPrior.isotropic(1.0, 2)
    q = GaussianPosterior([[1.0, 0.0], [0.0, 1.0]], np.full((2, 2), 0.1), prior=prior)
    index = GaussianIndex(metric="same_text")
    index.add(q, ["a", "b"])
    (found,) = index.search(q[:1], n=2)
    ratio = distances.same_document(q[:1], q)[0]
    np.testing.assert_allclose(found.scores, ratio, rtol=1e-5)
    assert found.ids == ["a", "b"]
    expected = np.exp(ratio) / (2 + np.exp(ratio).sum())
    np.testing.assert_allclose(found.probabilities, expected, rtol=1e-5)
