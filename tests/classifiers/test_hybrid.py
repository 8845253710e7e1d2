from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfTransformer

from docsigma import BayesianSMM, GaussianPosterior, InputError, load_corpus
from docsigma.classifiers import HybridClassifier
from docsigma.classifiers._folds import make_splits
from docsigma.classifiers._words import inverse_document_frequencies, tfidf
from docsigma.classifiers.documents import EmbeddedDocuments

EPS = np.finfo(np.float64).eps


@pytest.fixture(scope="module")
def setting():
    """Documents of three classes, the words of which stand for pairs too."""
    corpus = load_corpus("synthetic", n_train=200)
    labels = np.where(corpus.truth.train_embeddings[:, 0] > 0, "up", "down")
    labels = np.where(corpus.truth.train_embeddings[:, 1] > 0.3, "side", labels)
    model = BayesianSMM(4, max_iter=60, learning_rate=0.05, random_state=0)
    model.fit(corpus.train.counts)

    def documents(counts):
        return EmbeddedDocuments(counts, model.posterior(counts), counts[:, :20])

    return documents, corpus, labels


@pytest.fixture(scope="module")
def train(setting):
    documents, corpus, _ = setting
    return documents(corpus.train.counts)


@pytest.fixture(scope="module")
def test(setting):
    documents, corpus, _ = setting
    return documents(corpus.test.counts)


@pytest.fixture(scope="module")
def hybrid(setting, train):
    *_, labels = setting
    return HybridClassifier().fit(train, labels)


def points(documents, embedding):
    return EmbeddedDocuments(documents.counts, embedding, documents.pairs)


def test_idf_is_scikit_learns():
    counts = sp.csr_matrix([[1.0, 0, 2], [0, 0, 1], [3, 0, 1]])
    theirs = TfidfTransformer().fit(counts)
    np.testing.assert_allclose(inverse_document_frequencies(counts), theirs.idf_)
    norms = sp.linalg.norm(tfidf(counts, theirs.idf_), axis=1)
    np.testing.assert_allclose(norms, 1.0)
    copies = TfidfTransformer().fit(counts[[0, 0, 2, 2, 2]])
    weighted = inverse_document_frequencies(counts, np.array([2.0, 0.0, 3.0]))
    np.testing.assert_allclose(weighted, copies.idf_)


def test_words_and_embedding_add_up_to_the_log_odds(hybrid, test):
    log_proba = hybrid.predict_log_proba(test)
    both = test.both
    # Sums of that many terms, each a product of a weight, a value and a coefficient.
    n_terms = both.shape[1] + test.means.shape[1] + 10
    for row, one in enumerate(hybrid.explain(test)):
        first, second = np.sort(log_proba[row])[::-1][:2]
        amounts = [amount for _, amount in one.words]
        total = sum(amounts) + one.embedding + one.intercept
        size = sum(map(abs, amounts)) + np.abs(log_proba[row]).max() + 1
        assert abs(total - (first - second)) < n_terms * EPS * size
        assert one.log_odds == pytest.approx(total, rel=1e-12)
        best = np.argsort(-log_proba[row])[:2]
        assert [one.label, one.against] == hybrid.classes_[best].tolist()
        assert sorted(word for word, _ in one.words) == sorted(both[row].indices)
        assert amounts == sorted(amounts, key=abs, reverse=True)


def test_explanations_name_words_and_pairs(hybrid, test):
    names = [f"word {i}" for i in range(test.counts.shape[1])]
    names += [f"pair {i}" for i in range(20)]
    numbers, named = hybrid.explain(test[:5]), hybrid.explain(test[:5], names)
    for one, other in zip(numbers, named, strict=True):
        assert [names[number] for number, _ in one.words] == [w for w, _ in other.words]


def test_a_document_without_words_gets_the_class_priors(setting, hybrid):
    documents, corpus, labels = setting
    empty = sp.csr_matrix((2, corpus.test.counts.shape[1]), dtype=np.float32)
    proba = hybrid.predict_proba(documents(empty))
    shares = [np.mean(labels == name) for name in hybrid.classes_]
    np.testing.assert_allclose(proba, [shares, shares], rtol=1e-12)
    explanation = hybrid.explain(documents(empty))[0]
    assert explanation.words == []
    assert explanation.intercept == explanation.log_odds


def test_it_is_better_than_guessing(hybrid):
    prior = hybrid.class_prior_
    assert hybrid.cross_entropy_ < -(prior @ np.log(prior)) / 2
    assert (hybrid.pool_ >= 0).all()


def test_a_useless_embedding_gets_no_weight(setting, train):
    *_, labels = setting
    noise = np.random.default_rng(0).normal(size=(len(labels), 40))
    with_noise = HybridClassifier().fit(points(train, noise), labels)
    without = HybridClassifier().fit(points(train, noise[:, :1] * 0), labels)
    # Of 200 documents and 40 columns of noise some is believed by chance.
    assert with_noise.cross_entropy_ < 1.05 * without.cross_entropy_


@pytest.mark.parametrize("missing", [None, -1, np.nan, " "])
def test_unknown_labels_are_no_class(setting, train, missing):
    *_, labels = setting
    some = np.array(labels, dtype=object)
    some[40:] = missing
    hybrid = HybridClassifier().fit(train, some)
    np.testing.assert_array_equal(hybrid.classes_, np.unique(labels))
    # Naming the largest of three classes comes as far less than once in a million.
    assert np.mean(hybrid.predict(train[40:]) == labels[40:]) > 0.7
    # Whatever stands for no label, it stands for the same.
    some[40:] = "none"
    other = HybridClassifier(missing_label="none").fit(train, some)
    np.testing.assert_array_equal(
        other.predict_log_proba(train), hybrid.predict_log_proba(train)
    )


def test_one_label_per_class_works(setting, train, test):
    *_, labels = setting
    some = np.full(len(labels), None, dtype=object)
    for name in np.unique(labels):
        some[np.flatnonzero(labels == name)[0]] = name
    hybrid = HybridClassifier().fit(train, some)
    assert np.isfinite(hybrid.predict_log_proba(test)).all()
    assert hybrid.cross_entropy_ is None
    # The machine imitates the score on documents without label, and counts with it.
    assert hybrid.pool_[0] > 0
    np.testing.assert_array_equal(hybrid.pool_[1:], [0.0, 0.5])
    # Without any such document the score alone decides.
    own = np.flatnonzero(some != None)  # noqa: E711
    alone = HybridClassifier().fit(train[own], some[own])
    np.testing.assert_array_equal(alone.pool_, [0.0, 0.0, 1.0])


def test_a_few_classes_do_not_choose_for_the_rest(setting, train, test):
    *_, labels = setting
    names = np.array([f"{name} {i % 4}" for i, name in enumerate(labels)])
    some = np.full(len(labels), None, dtype=object)
    for name in np.unique(names):
        some[np.flatnonzero(names == name)[0]] = name
    more = np.flatnonzero(names == names[0])[:3]
    some[more] = names[0]
    # Of 14 labels 3 could be held out, and 11 are alone in their classes.
    hybrid = HybridClassifier().fit(train, some)
    assert hybrid.cross_entropy_ is None
    assert len(np.unique(hybrid.predict(test))) > 3


def test_documents_of_weight_zero_are_absent(setting, train):
    *_, labels = setting
    weights = np.random.default_rng(0).integers(0, 3, len(labels))
    rows = np.flatnonzero(weights)
    one = HybridClassifier().fit(train, labels, weights)
    other = HybridClassifier().fit(train[rows], labels[rows], weights[rows])
    np.testing.assert_array_equal(
        one.predict_log_proba(train), other.predict_log_proba(train)
    )
    copies = np.repeat(labels, weights)
    shares = [np.mean(copies == name) for name in one.classes_]
    np.testing.assert_allclose(one.class_prior_, shares)


def test_points_are_known_exactly(setting, train, test):
    *_, labels = setting
    hybrid = HybridClassifier().fit(points(train, train.means), labels)
    found = hybrid.predict_entropy(points(test, test.means))
    assert found.min() > 0
    with pytest.raises(InputError, match="has Gaussians, but .* fitted to points"):
        hybrid.predict(test)


def test_groups_and_times_are_kept_apart():
    codes = np.tile([0, 1], 30)
    groups = np.repeat(np.arange(12), 5)
    for train, held_out in make_splits(codes, 3, 0, groups=groups):
        assert not set(groups[train]) & set(groups[held_out])
    times = np.random.default_rng(0).integers(0, 20, 60)
    splits = make_splits(codes, 3, 0, times=times)
    assert len(splits) == 3
    for train, held_out in splits:
        assert times[train].max() < times[held_out].min()
    days = np.datetime64("2020-01-01") + times
    for one, other in zip(splits, make_splits(codes, 3, 0, times=days), strict=True):
        np.testing.assert_array_equal(one.held_out, other.held_out)
    with pytest.raises(InputError, match="not both"):
        make_splits(codes, 3, 0, groups=groups, times=times)
    assert make_splits(np.arange(4), 3, 0) == []


@pytest.mark.parametrize("n_folds", [2, 3, 7])
def test_every_document_is_held_out_once(n_folds):
    codes = np.array([0] * 20 + [1] * 11 + [2] * 2)
    splits = make_splits(codes, n_folds, 0)
    held_out = np.concatenate([split.held_out for split in splits])
    assert sorted(held_out) == list(range(33))
    for train, own in splits:
        assert not set(train) & set(own)
        assert set(codes[own]) <= set(codes[train])


def test_groups_and_times_reach_the_folds(setting, train):
    *_, labels = setting
    late = np.arange(len(labels))
    hybrid = HybridClassifier(n_folds=3).fit(train, labels, times=late)
    plain = HybridClassifier(n_folds=3).fit(train, labels)
    assert hybrid.cross_entropy_ != plain.cross_entropy_
    # One group leaves nothing to hold out.
    alone = HybridClassifier().fit(train, labels, groups=["a"] * len(labels))
    assert alone.cross_entropy_ is None
    # Groups that are the classes leave nothing that training knows.
    same = HybridClassifier().fit(train, labels, groups=labels)
    assert same.cross_entropy_ is None


def test_groups_that_do_not_fit_get_one_sentence(setting, train, test):
    *_, labels = setting
    some = [None, *labels[1:]]
    names = ["a", "b"] * 100

    def fit(**options):
        return HybridClassifier().fit(train, some, **options)

    for name in ("groups", "times"):
        with pytest.raises(InputError, match=r"shape \(200,\), got \(3,\)"):
            fit(**{name: [1, 2, 3]})
        with pytest.raises(InputError, match=f"`{name}` has no value in row 7"):
            fit(**{name: [*names[:7], None, *names[8:]]})
    # Of a document without label nothing is asked.
    hybrid = fit(groups=[None, *names[1:]])
    assert np.isfinite(hybrid.predict_log_proba(test)).all()


def test_bad_input_is_one_sentence(setting, hybrid, train, test):
    _, corpus, labels = setting
    counts, q = corpus.test.counts, test.posterior
    with pytest.raises(InputError, match="must be EmbeddedDocuments, got csr_matrix"):
        hybrid.predict(counts)
    with pytest.raises(InputError, match="got ndarray: TopicClassifier takes texts"):
        clone(hybrid).fit(train.means, labels)
    with pytest.raises(InputError, match=r"counts of 100 documents, but .* of 10"):
        EmbeddedDocuments(counts, q[:10], counts[:, :20])
    with pytest.raises(
        InputError, match="has points, but the classifier was fitted to Gaussians"
    ):
        hybrid.predict(points(test, test.means))
    with pytest.raises(InputError, match=r"has 30 words, but there were \d+ in `fit`"):
        hybrid.predict(EmbeddedDocuments(counts[:, :30], q, test.pairs))
    with pytest.raises(InputError, match="has 3 pairs of words, but there were 20 in"):
        hybrid.predict(EmbeddedDocuments(counts, q, test.pairs[:, :3]))
    narrow = GaussianPosterior(q.mean[:, :2], q.variance[:, :2])
    with pytest.raises(InputError, match="has 2 components, but there were 4 in `fit`"):
        hybrid.predict(replace(test, embedding=narrow))
    with pytest.raises(InputError, match="`y` has 3 labels, but `X` has 200"):
        clone(hybrid).fit(train, labels[:3])


def test_familiar_documents_have_large_scores(hybrid, train, test):
    # A document of no class: the words of two of different classes.
    proba = hybrid.predict_proba(test)
    one, other = (proba[:, c].argmax() for c in range(2))
    familiarity = hybrid.familiarity(test)
    sure = proba.max(axis=1) > np.median(proba.max(axis=1))
    assert familiarity[sure].mean() > familiarity[~sure].mean()
    assert familiarity[one] != familiarity[other]
    # It does not depend on neighbours.
    np.testing.assert_allclose(
        hybrid.familiarity(test[np.arange(3)]), familiarity[:3], rtol=1e-9
    )


def test_unknown_words_make_documents_less_familiar(hybrid, test):
    few, many = (
        hybrid.familiarity(replace(test, n_unknown=np.full(len(test), n)))
        for n in (0.0, 5.0)
    )
    np.testing.assert_allclose(few, hybrid.familiarity(test), rtol=1e-9)
    assert (np.abs(many) <= np.abs(few)).all()
    assert many.mean() < few.mean()
