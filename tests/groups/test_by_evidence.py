from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from docsigma import EvidenceClassifier, GaussianPosterior, GaussianPrior
from docsigma.groups.by_evidence import group_by_evidence

K = 8


def draw(n, topics, seed, precision=20.0):
    random = np.random.default_rng(seed)
    labels = random.integers(len(topics), size=n)
    w = topics[labels] + 0.3 * random.standard_normal((n, K))
    # Precisions have one shape, and a size for each document.
    shape = np.linspace(0.3, 1.7, K)
    evidence = precision * random.uniform(0.3, 1.7, (n, 1)) * shape
    seen = w + random.standard_normal((n, K)) / np.sqrt(evidence)
    variance = 1 / (1 + evidence)
    prior = GaussianPrior.isotropic(1.0, K)
    tokens = np.full(n, 50.0)
    return GaussianPosterior(
        seen * evidence * variance, variance, prior=prior, n_tokens=tokens
    ), labels


@pytest.fixture(scope="module")
def classifier():
    topics = np.random.default_rng(0).standard_normal((12, K))
    q, labels = draw(600, topics, 1)
    return EvidenceClassifier().fit(q, labels)


@pytest.mark.parametrize("n_topics", [1, 3, 7])
def test_topics_that_training_has_not_seen_are_found_and_counted(classifier, n_topics):
    topics = np.random.default_rng(50 + n_topics).standard_normal((n_topics, K))
    q, labels = draw(300, topics, n_topics)
    groups = group_by_evidence(classifier, q)
    sizes = np.bincount(groups)
    assert (np.diff(sizes[sizes > 0]) <= 0).all()
    # A stray document may stay alone, no more than one in fifty.
    assert (sizes > 6).sum() == n_topics
    assert adjusted_rand_score(labels, groups) > 0.9


def test_two_documents_are_joined_as_their_log_ratio_says(classifier):
    q, _ = draw(40, np.random.default_rng(9).standard_normal((4, K)), 3, precision=2.0)
    for a, b in np.random.default_rng(0).integers(40, size=(20, 2)).tolist():
        if a == b:
            continue
        ratio = classifier.same_topic_log_ratio(q[a], q[b])[0, 0]
        first, second = group_by_evidence(classifier, q[[a, b]])
        assert (first == second) == (ratio > 0)


def test_documents_that_say_nothing_are_in_no_group(classifier):
    q, _ = draw(20, np.eye(K)[:2], 3)
    tokens = np.full(20, 50.0)
    tokens[4] = 0
    groups = group_by_evidence(classifier, q.replace(n_tokens=tokens))
    assert groups[4] == -1
    assert (np.delete(groups, 4) >= 0).all()
