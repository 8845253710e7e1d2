"""Scores against quadrature, corpora drawn from known classes, and what users ask."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.special import log_softmax, logsumexp
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from docsigma import GaussianPosterior, GaussianPrior, InputError
from docsigma.classifiers import EvidenceClassifier, UncertainGaussianClassifier
from evidence_draws import draw_classes, draw_documents

EPS = np.finfo(np.float64).eps


def same_shape(rng, n, K, *, full, prior=None, most=1.0):
    """Posteriors whose precisions are the prior's and c G, for sizes c up to `most`."""
    root = np.random.default_rng(K).normal(size=(K, K))
    G = root @ root.T + 5 * np.eye(K)
    prior = prior or GaussianPrior(rng.normal(size=K), rng.uniform(1, 3, size=K))
    size = rng.uniform(0.05, most, n)
    precision = prior.precision_matrix() + size[:, None, None] * G
    mean, carried = rng.normal(size=(n, K)), {"prior": prior, "n_tokens": size}
    if full:
        covariance = np.linalg.inv(precision)
        return GaussianPosterior(mean, covariance=covariance, **carried)
    variance = 1 / precision.diagonal(axis1=1, axis2=2)
    return GaussianPosterior(mean, variance, **carried)


def losses(clf, q, y):
    codes = np.searchsorted(clf.classes_, y)
    return -clf.predict_log_proba(q)[np.arange(len(y)), codes]


def copied(q, times):
    """What documents say that hold each of their words so many times."""
    P, h = 1 / q.variance - 1, q.mean / q.variance
    variance = 1 / (times * P + 1)
    return GaussianPosterior(
        times * h * variance, variance, prior=q.prior, n_tokens=times * q.n_tokens
    )


@pytest.fixture(scope="module")
def setting():
    rng = np.random.default_rng(0)
    means, root = draw_classes(rng, 5, 4)
    return draw_documents(rng, 600, means, root), draw_documents(rng, 600, means, root)


@pytest.fixture(scope="module")
def trained(setting):
    return EvidenceClassifier().fit(*setting[0])


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("K", [1, 2])
def test_scores_are_integrals_of_the_gaussian_factor(K, full):
    rng = np.random.default_rng(K)
    q = same_shape(rng, 30, K, full=full)
    clf = EvidenceClassifier().fit(q, np.repeat(["a", "b", "c"], 10))
    new = same_shape(rng, 2, K, full=full, prior=q.prior)
    gamma, prior_precision = np.linalg.inv(new._full_covariance()), q.prior.precision
    P = gamma - np.diag(prior_precision)
    h = np.einsum("dij,dj->di", gamma, new.mean) - prior_precision * q.prior.mean
    D = clf.precision_

    def integral(d, c):
        def density(*point):
            w = np.array(point)
            away = w - clf.means_[c]
            return np.exp(h[d] @ w - 0.5 * w @ P[d] @ w - 0.5 * away @ D @ away)

        # Nine standard deviations of the integrand leave out less than 1e-18 of it.
        A = np.linalg.inv(P[d] + D)
        centre, wide = A @ (h[d] + D @ clf.means_[c]), 9 * np.sqrt(A.diagonal())
        (low, *low2), (high, *high2) = centre - wide, centre + wide
        options = {"epsabs": 0, "epsrel": 1e-12}
        if K == 1:
            return quad(density, low, high, points=[centre[0]], **options)[0]
        turned = lambda b, a: density(a, b)  # noqa: E731
        return dblquad(turned, low, high, *low2, *high2, **options)[0]

    expected = np.log([[integral(d, c) for c in range(3)] for d in range(2)])
    # Quadrature asks for 12 digits; sizes and their mean are added up of 30 precisions.
    np.testing.assert_allclose(
        log_softmax(clf.log_likelihoods(new), axis=1),
        log_softmax(expected, axis=1),
        rtol=0,
        atol=1e-10,
    )


@pytest.mark.parametrize("temperature", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_document_without_known_words_gets_the_class_priors(
    setting, dtype, temperature
):
    (q, y), _ = setting
    # Repeated words, so that there is a temperature.
    q = copied(q, 5)
    clf = EvidenceClassifier(temperature=temperature).fit(q, y)
    K = q.n_components
    silent = GaussianPosterior(
        np.zeros((1, K), dtype), np.ones((1, K), dtype), prior=q.prior, n_tokens=[0]
    )
    np.testing.assert_array_equal(clf.log_likelihoods(silent), 0)
    prior = np.bincount(y) / len(y)
    # A softmax of four logarithms.
    np.testing.assert_allclose(clf.predict_proba(silent)[0], prior, rtol=10 * EPS)


def test_parameters_of_known_classes_are_found():
    rng = np.random.default_rng(1)
    means, root = draw_classes(rng, 3, 10)
    y, size = rng.integers(10, size=4000), rng.uniform(0.3, 1, (4000, 1))
    P = size * np.array([2.0, 4.0, 8.0])
    w = means[y] + rng.normal(size=(4000, 3)) @ root.T
    h = P * w + np.sqrt(P) * rng.normal(size=P.shape)
    q = GaussianPosterior(
        h / (P + 1),
        1 / (P + 1),
        prior=GaussianPrior.isotropic(1.0, 3),
        n_tokens=size[:, 0],
    )
    clf = EvidenceClassifier().fit(q, y)
    # Embeddings have variances up to 2 within classes and are seen with noises of about
    # 0.8, 400 of each class: standard errors up to 0.09, and of all of them 0.03. Five
    # of those leave out less than 10^-6 of the seeds.
    np.testing.assert_allclose(clf.means_, means, atol=0.45)
    np.testing.assert_allclose(clf.centre_, means[y].mean(axis=0), atol=0.15)
    # Variances of 2.8 from 4000 documents have the standard error 0.063.
    np.testing.assert_allclose(clf.covariance_, root @ root.T, atol=0.32)


def test_short_documents_are_nearly_as_good_as_the_true_model_makes_them(setting):
    rng = np.random.default_rng(0)
    means, root = draw_classes(rng, 5, 4)
    (q, y), (new, truth) = setting
    short = new.n_tokens < 10
    new, truth = new[short], truth[short]
    P = 1 / new.variance - 1
    seen = new.mean / new.variance / P
    oracle = np.array(
        [
            [
                multivariate_normal(m, root @ root.T + np.diag(1 / p)).logpdf(x)
                for m in means
            ]
            for x, p in zip(seen, P, strict=True)
        ]
    )
    best = -log_softmax(oracle, axis=1)[np.arange(len(truth)), truth]
    clf = EvidenceClassifier().fit(q, y)
    ours = losses(clf, new, truth)
    # The loss per document differs by 0.2 or so: of 300 documents by 0.012.
    assert (ours - best).mean() < 0.06
    # Posterior means, and their variances, cannot do that.
    theirs = losses(UncertainGaussianClassifier().fit(q, y), new, truth)
    assert ours.mean() < theirs.mean()
    assert ours.mean() < -np.log(clf.class_prior_[truth]).mean()


def test_without_doubt_scores_are_those_of_gaussian_classes(setting, trained):
    (q, _), _ = setting
    exact = GaussianPosterior(
        q.mean, np.full_like(q.mean, 1e-12), prior=q.prior, n_tokens=q.n_tokens
    )
    away = q.mean[:, None] - trained.means_
    D = trained.precision_
    expected = log_softmax(-0.5 * np.einsum("dci,ij,dcj->dc", away, D, away), axis=1)
    ours = log_softmax(trained.log_likelihoods(exact), axis=1)
    # Scores of up to 100 nats; 1 / 1e-12 and 1 are added, which keeps four digits, and
    # the noise is 1e-12 of the embedding. Repetition takes off some of the latter.
    np.testing.assert_allclose(ours, expected, rtol=1e-7, atol=1e-7)


def test_of_points_it_is_a_linear_discriminant_analysis():
    rng = np.random.default_rng(2)
    means, root = draw_classes(rng, 4, 3)
    y = rng.integers(3, size=6000)
    X = means[y] + rng.normal(size=(6000, 4)) @ root.T
    ours = EvidenceClassifier(temperature=False).fit(X, y)
    theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    # Its priors count as one document per class, and as one per dimension: of 2000.
    # Scores change by a few thousandths of themselves, up to 100 nats or so.
    one, other = ours.predict_log_proba(X), theirs.predict_log_proba(X)
    assert np.abs(np.exp(one) - np.exp(other)).max() < 0.02
    np.testing.assert_allclose(ours.means_, theirs.means_, atol=0.01)
    np.testing.assert_allclose(ours.covariance_, theirs.covariance_, atol=0.01)


def test_single_precision_gives_the_same(setting):
    (q, y), (new, _) = setting

    def proba(dtype):
        one, other = (
            GaussianPosterior(
                p.mean.astype(dtype),
                p.variance.astype(dtype),
                prior=p.prior,
                n_tokens=p.n_tokens,
            )
            for p in (q, new)
        )
        clf = EvidenceClassifier(temperature=False)
        return clf.fit(one, y).predict_log_proba(other)

    # A mean of about 1 rounded to 6e-8 is multiplied by precisions of up to 15.
    np.testing.assert_allclose(proba(np.float32), proba(np.float64), atol=1e-4)


def test_full_posteriors_that_are_diagonal_give_nearly_the_same(setting):
    (q, y), (new, _) = setting
    clf = EvidenceClassifier(temperature=False)
    found = []
    for full in (False, True):
        one, other = (
            GaussianPosterior(
                p.mean,
                covariance=p._full_covariance(),
                prior=p.prior,
                n_tokens=p.n_tokens,
            )
            if full
            else p
            for p in (q, new)
        )
        found.append(clone(clf).fit(one, y).predict_log_proba(other))
    # Sums of 600 terms, and the inverses of 5 x 5 matrices.
    np.testing.assert_allclose(*found, atol=1e-9)


def test_weights_count_as_copies_and_zero_as_absence(setting):
    (q, y), (new, _) = setting
    q, y = q[:100], y[:100]
    weights = np.tile([0, 1, 2, 1], 25)
    copies = np.random.default_rng(0).permutation(np.repeat(np.arange(100), weights))
    y = y.astype(object)
    y[50:70] = None
    one = EvidenceClassifier().fit(q, y, sample_weight=weights)
    other = EvidenceClassifier().fit(q[copies], y[copies])
    # Weights are added in another order: EM stops after the same steps.
    np.testing.assert_allclose(
        one.predict_log_proba(new), other.predict_log_proba(new), atol=1e-9
    )
    np.testing.assert_allclose(one.class_prior_, other.class_prior_, rtol=10 * EPS)


def test_the_order_of_documents_does_not_matter(setting, trained):
    (q, y), (new, _) = setting
    order = np.random.default_rng(0).permutation(len(y))
    other = EvidenceClassifier().fit(q[order], y[order])
    np.testing.assert_allclose(
        other.predict_log_proba(new), trained.predict_log_proba(new), atol=1e-9
    )


def test_a_class_of_one_document_works(setting):
    (q, y), (new, _) = setting
    names = np.array(["a", "b", "c", "d"])[y]
    names[0] = "e"
    clf = EvidenceClassifier().fit(q, names)
    assert clf.classes_.tolist() == ["a", "b", "c", "d", "e"]
    proba = clf.predict_proba(new)
    assert np.isfinite(proba).all()
    # Once in 600 documents, and the mean of its prior is one document's worth.
    assert proba[:, 4].mean() < 0.05


def test_added_classes_are_nearly_as_good_as_trained_ones(setting, trained):
    (q, y), (new, truth) = setting
    old, last = np.flatnonzero(y < 3), np.flatnonzero(y == 3)
    clf = EvidenceClassifier().fit(q[old], y[old])
    kept = clf.means_.copy()
    clf.add_classes(q[last], y[last])
    np.testing.assert_array_equal(clf.means_[:3], kept)
    np.testing.assert_allclose(clf.class_prior_, np.bincount(y) / len(y))
    # Seen in training or not, 150 documents put its mean where it is.
    np.testing.assert_allclose(clf.means_[3], trained.means_[3], atol=0.1)
    gap = losses(clf, new, truth).mean() - losses(trained, new, truth).mean()
    assert gap < 0.05
    with pytest.raises(InputError, match="the class 3, which the model already knows"):
        clf.add_classes(q[last], y[last])


def test_given_priors_shift_the_log_odds(setting):
    (q, y), (new, _) = setting
    clf = EvidenceClassifier(temperature=False)
    usual = clone(clf).fit(q, y)
    for given, shares in (([0.1, 0.2, 0.3, 0.4], None), ("uniform", [0.25] * 4)):
        found = clone(clf).set_params(priors=given).fit(q, y)
        shares = given if shares is None else shares
        np.testing.assert_allclose(found.class_prior_, shares)
        moved = usual.predict_log_proba(new) + np.log(shares) - usual.log_prior_
        np.testing.assert_allclose(
            found.predict_log_proba(new), log_softmax(moved, axis=1), atol=1e-12
        )


def test_the_temperature_divides_log_probabilities(setting, trained):
    (q, y), (new, _) = setting
    plain = EvidenceClassifier(temperature=False).fit(q, y)
    assert plain.temperatures_.tolist() == [1.0]
    # Chosen on 600 documents drawn from the model: near 1, and not 1.
    (temperature,) = trained.temperatures_
    assert 0.7 < temperature < 1.4
    assert temperature != 1
    np.testing.assert_allclose(
        trained.predict_log_proba(new),
        log_softmax(plain.predict_log_proba(new) / temperature, axis=1),
        atol=1e-9,
    )


def test_densities_and_accuracy_are_those_of_the_predictions(setting, trained):
    _, (new, truth) = setting
    by_class = np.stack(
        [trained.log_likelihood(new, np.full(len(new), c)) for c in range(4)], axis=1
    )
    np.testing.assert_allclose(
        trained.score_samples(new), logsumexp(by_class + trained.log_prior_, axis=1)
    )
    right = trained.predict_proba(new).argmax(axis=1) == truth
    assert trained.score(new, truth) == right.mean()


def test_clones_and_pickles(setting):
    (q, y), (new, _) = setting
    clf = EvidenceClassifier(priors="uniform", missing_label="?")
    assert clone(clf).get_params() == clf.get_params()
    clf.fit(q, y)
    back = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(back.predict_proba(new), clf.predict_proba(new))


def test_arrays_hold_means_and_variances(setting):
    (q, y), _ = setting
    clf = EvidenceClassifier(layout="mean_variance", prior_precision=1.0)
    X = np.hstack([q.mean, q.variance])
    bare = GaussianPosterior(q.mean, q.variance, prior=q.prior)
    one, other = clone(clf).fit(X, y), clone(clf).fit(bare, y)
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(bare))


def test_input_errors_are_one_sentence(setting, trained):
    (q, y), _ = setting
    clf = EvidenceClassifier()
    bare = GaussianPosterior(q.mean, q.variance)
    with pytest.raises(InputError, match="does not carry the prior"):
        clf.fit(bare, y)
    with pytest.raises(InputError, match="599 labels, but `X` has 600 documents"):
        clf.fit(q, y[1:])
    with pytest.raises(InputError, match="even number of features"):
        EvidenceClassifier(layout="mean_variance").fit(np.ones((4, 3)), [0, 1, 0, 1])
    with pytest.raises(InputError, match="no label in any of 600 rows"):
        clf.fit(q, np.full(600, -1))
    with pytest.raises(InputError, match="at least 2 classes, got 1 class"):
        clf.fit(q, np.where(y == 0, 0, None))
    prior = GaussianPrior.isotropic(1.0, 2)
    small = GaussianPosterior(np.ones((1, 2)), np.ones((1, 2)), prior=prior)
    with pytest.raises(InputError, match="embeddings of size 2, .* with size 5"):
        trained.predict(small)
