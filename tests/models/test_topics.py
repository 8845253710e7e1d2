from __future__ import annotations

import numpy as np
import pytest

from docsigma import BayesianSMM, InputError, Vocabulary
from docsigma.models.topics import cluster_documents, describe_dimensions


@pytest.fixture(scope="module")
def two_topics():
    """Forty documents, half of them about pets, half about money."""
    texts = ["cat dog cat dog vet"] * 20 + ["bank loan bank loan tax"] * 20
    words, counted = Vocabulary.fit_count(texts)
    model = BayesianSMM(1, l1=0.01, max_iter=300, random_state=0)
    model.fit(counted.counts).set_vocabulary(words)
    return model, model.posterior(counted.counts)


def test_clusters_are_named_by_their_own_words(two_topics):
    model, q = two_topics
    groups = cluster_documents(model, q, n_clusters=2, n_words=2)
    assert [group.size for group in groups] == [20, 20]
    words = {frozenset(group.words) for group in groups}
    assert words == {frozenset({"cat", "dog"}), frozenset({"bank", "loan"})}


def test_a_dimension_has_a_topic_at_either_end(two_topics):
    model, _ = two_topics
    dimensions = describe_dimensions(model, n_words=2)
    ends = {frozenset(dimensions[0].top), frozenset(dimensions[0].bottom)}
    assert ends == {frozenset({"cat", "dog"}), frozenset({"bank", "loan"})}


def test_words_must_be_known_and_clusters_possible(two_topics):
    model, q = two_topics
    with pytest.raises(InputError, match="from 1 to the 40 documents, got 41"):
        cluster_documents(model, q, n_clusters=41)
    bare = BayesianSMM(2, max_iter=2).fit(np.ones((3, 4)))
    with pytest.raises(InputError, match="does not know its words"):
        describe_dimensions(bare)


def test_dimensions_come_heaviest_first():
    from docsigma import load_corpus

    train = load_corpus("synthetic").train
    model = BayesianSMM(4, max_iter=30, random_state=0).fit(train.counts)
    dimensions = describe_dimensions(model.set_vocabulary(train.words))
    weights = [dimension.weight for dimension in dimensions]
    assert weights == sorted(weights, reverse=True)
    assert sorted(dimension.index for dimension in dimensions) == [0, 1, 2, 3]
