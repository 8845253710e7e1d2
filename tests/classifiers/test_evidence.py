from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from docsigma import GaussianPosterior, GaussianPrior, InputError
from docsigma.classifiers import EvidenceClassifier, UncertainGaussianClassifier
from evidence_draws import draw_classes, draw_documents

FORMS = ["full", "diagonal"]


def random_posterior(rng, n, K, *, full=False, prior=None):
    prior = prior or GaussianPrior(rng.normal(size=K), rng.uniform(1, 3, size=K))
    root = rng.normal(size=(n, K, K))
    extra = root @ root.transpose(0, 2, 1) + 0.1 * np.eye(K)
    carried = {"prior": prior, "n_tokens": np.full(n, 9.0)}
    mean = rng.normal(size=(n, K))
    if full:
        covariance = np.linalg.inv(extra + prior.precision_matrix())
        return GaussianPosterior(mean, covariance=covariance, **carried)
    precision = extra.diagonal(axis1=1, axis2=2) + prior.precision_diagonal()
    return GaussianPosterior(mean, 1 / precision, **carried)


def cross_entropy(clf, q, y):
    codes = np.searchsorted(clf.classes_, y)
    return -clf.predict_log_proba(q)[np.arange(len(y)), codes].mean()


@pytest.fixture(scope="module")
def setting():
    rng = np.random.default_rng(0)
    means, root = draw_classes(rng, 5, 4)
    return draw_documents(rng, 600, means, root), draw_documents(rng, 600, means, root)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("K", [1, 2])
def test_scores_are_integrals_of_the_gaussian_factor(K, full):
    rng = np.random.default_rng(K)
    q = random_posterior(rng, 30, K, full=full)
    k0, alpha = 0.7, 20.0
    clf = EvidenceClassifier(tempering=(k0, alpha))
    clf.fit(q, np.repeat(["a", "b", "c"], 10))
    new = random_posterior(rng, 2, K, full=full, prior=q.prior)
    kappa = k0 / (1 + 9.0 / alpha)
    gamma, prior_precision = np.linalg.inv(new._full_covariance()), q.prior.precision
    P = kappa * (gamma - np.diag(prior_precision))
    h = np.einsum("dij,dj->di", gamma, new.mean) - prior_precision * q.prior.mean
    h, D = kappa * h, clf.precision_

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
    ours = clf.log_likelihoods(new)
    np.testing.assert_allclose(
        log_softmax(ours, axis=1), log_softmax(expected, axis=1), rtol=0, atol=1e-10
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", FORMS)
def test_a_document_without_known_words_gets_the_class_priors(setting, form, dtype):
    (q, y), _ = setting
    clf = EvidenceClassifier(covariance=form).fit(q, y)
    K = q.n_components
    silent = GaussianPosterior(
        np.zeros((1, K), dtype), np.ones((1, K), dtype), prior=q.prior, n_tokens=[0]
    )
    np.testing.assert_array_equal(clf.log_likelihoods(silent), 0)
    prior = np.bincount(y) / len(y)
    np.testing.assert_allclose(clf.predict_proba(silent)[0], prior, rtol=1e-14)


@pytest.mark.parametrize("unlabelled", [False, True])
@pytest.mark.parametrize("full_posteriors", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_em_never_lowers_its_objective(form, full_posteriors, unlabelled):
    rng = np.random.default_rng(5)
    q = random_posterior(rng, 60, 4, full=full_posteriors)
    y = np.repeat([0, 1, 2], 20)
    if unlabelled:
        y[5::4] = -1
    clf = EvidenceClassifier(
        covariance=form, tempering=(0.5, 50), unlabelled_weight=0.5, tol=0, max_iter=60
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf.fit(q, y)
    # A bound of 60 terms and 4 x 4 matrices in float64.
    assert (np.diff(clf.objective_history_) > -1e-12).all()
    assert clf.objective_history_[-1] > clf.objective_history_[0] + 1e-3
    assert clf.n_iter_ > 20


@pytest.mark.parametrize("form", FORMS)
def test_convergence_is_not_worse_than_ten_steps(setting, form):
    (q, y), (new, truth) = setting
    clf = EvidenceClassifier(covariance=form, tempering=(1, 1e9), tol=1e-8)
    with pytest.warns(ConvergenceWarning):
        early = clone(clf).set_params(max_iter=10).fit(q, y)
    late = clone(clf).set_params(max_iter=1000).fit(q, y)
    difference = cross_entropy(late, new, truth) - cross_entropy(early, new, truth)
    assert difference < 0.005


@pytest.mark.parametrize("form", FORMS)
def test_parameters_of_known_classes_are_found(form):
    rng = np.random.default_rng(1)
    means, _ = draw_classes(rng, 3, 10)
    root = np.diag([0.5, 0.7, 0.9])
    q, y = draw_documents(rng, 4000, means, root, tokens=(20.0, 200.0))
    clf = EvidenceClassifier(covariance=form, tempering=(1, 1e9), tol=1e-7).fit(q, y)
    # About 400 documents per class of variance below 0.81 + 0.5: means have the
    # standard error 0.06, so that one of 30 leaves 0.3 once in 10^5 seeds.
    np.testing.assert_allclose(clf.means_, means, atol=0.3)
    # Variances have relative errors of 0.03 to 0.05 and are pulled to one another by
    # three tenths of the documents.
    pulled = (root.diagonal() ** 2 + 0.3 * (root.diagonal() ** 2).mean()) / 1.3
    np.testing.assert_allclose(clf.covariance_.diagonal(), pulled, rtol=0.25)


def test_it_beats_the_classifier_of_means_on_short_documents(setting):
    (q, y), (new, truth) = setting
    short = new.n_tokens < 10
    clf = EvidenceClassifier().fit(q, y)
    glcu = UncertainGaussianClassifier().fit(q, y)
    ours, theirs = (cross_entropy(c, new[short], truth[short]) for c in (clf, glcu))
    prior = np.bincount(y) / len(y)
    assert ours < theirs
    assert ours < -np.log(prior[truth[short]]).mean()


@pytest.mark.parametrize("form", FORMS)
def test_without_doubt_scores_are_those_of_gaussian_classes(form):
    rng = np.random.default_rng(3)
    means, root = draw_classes(rng, 3, 2)
    q, y = draw_documents(rng, 200, means, root, tokens=(50.0, 100.0))
    clf = EvidenceClassifier(covariance=form, tempering=(1, 1e15)).fit(q, y)
    variance = np.full_like(q.mean, 1e-12)
    exact = GaussianPosterior(q.mean, variance, prior=q.prior, n_tokens=q.n_tokens)
    away = q.mean[:, None] - clf.means_
    expected = -0.5 * np.einsum("dci,ij,dcj->dc", away, clf.precision_, away)
    np.testing.assert_allclose(
        log_softmax(clf.log_likelihoods(exact), axis=1),
        log_softmax(expected, axis=1),
        rtol=0,
        # Scores of up to 100 nats, from precisions that add up 1 and 1e12.
        atol=1e-8,
    )


@pytest.mark.parametrize("form", FORMS)
def test_single_precision_says_the_same(form):
    rng = np.random.default_rng(4)
    means, root = draw_classes(rng, 4, 3)
    clf = EvidenceClassifier(covariance=form, tempering=(0.5, 100))
    found = []
    for dtype in (np.float32, np.float64):
        q, y = draw_documents(np.random.default_rng(4), 200, means, root, dtype=dtype)
        found.append(clone(clf).fit(q, y).predict_log_proba(q))
    # A mean of about 1 rounded to 6e-8 is multiplied by precisions of up to 15.
    np.testing.assert_allclose(*found, atol=1e-4)


def test_full_posteriors_that_are_diagonal_give_the_same(setting):
    (q, y), _ = setting
    full = GaussianPosterior(
        q.mean, covariance=q._full_covariance(), prior=q.prior, n_tokens=q.n_tokens
    )
    clf = EvidenceClassifier(tempering=(0.5, 100))
    one, other = (clone(clf).fit(p, y).predict_log_proba(p) for p in (q, full))
    # Full precisions are raised by a millionth of the prior's.
    np.testing.assert_allclose(one, other, atol=1e-4)


@pytest.mark.parametrize("form", FORMS)
def test_weights_count_as_copies(setting, form):
    (q, y), (new, _) = setting
    q, y = q[:100], y[:100]
    weights = np.tile([0, 1, 2, 1], 25)
    copies = np.repeat(np.arange(100), weights)
    clf = EvidenceClassifier(covariance=form, tempering=(0.5, 100))
    one = clone(clf).fit(q, y, sample_weight=weights)
    other = clone(clf).fit(q[copies], y[copies])
    np.testing.assert_allclose(
        one.predict_log_proba(new), other.predict_log_proba(new), atol=1e-9
    )
    np.testing.assert_allclose(one.class_prior_, other.class_prior_, rtol=1e-14)


@pytest.mark.parametrize("form", FORMS)
def test_a_class_of_one_document_works(setting, form):
    (q, y), (new, _) = setting
    names = np.array(["a", "b", "c", "d"])[y]
    names[0] = "e"
    clf = EvidenceClassifier(covariance=form).fit(q, names)
    assert clf.classes_.tolist() == ["a", "b", "c", "d", "e"]
    proba = clf.predict_proba(new)
    assert np.isfinite(proba).all()
    # Once in 600 documents, and no more than its prior allows.
    assert proba[:, 4].mean() < 0.05


@pytest.mark.parametrize("form", FORMS)
def test_added_classes_are_nearly_as_good_as_trained_ones(setting, form):
    (q, y), (new, truth) = setting
    old, last = np.flatnonzero(y < 3), np.flatnonzero(y == 3)
    whole = EvidenceClassifier(covariance=form).fit(q, y)
    clf = EvidenceClassifier(covariance=form).fit(q[old], y[old])
    kept = clf.means_.copy()
    clf.add_classes(q[last], y[last])
    np.testing.assert_array_equal(clf.means_[:3], kept)
    np.testing.assert_allclose(clf.class_prior_, np.bincount(y) / len(y))
    gap = cross_entropy(clf, new, truth) - cross_entropy(whole, new, truth)
    assert gap < 0.1


def test_priors_may_be_given(setting):
    (q, y), _ = setting
    given = np.array([0.1, 0.2, 0.3, 0.4])
    clf = EvidenceClassifier(priors=given, tempering=(1, 100)).fit(q, y)
    np.testing.assert_allclose(clf.class_prior_, given)
    clf = EvidenceClassifier(priors="uniform", tempering=(1, 100)).fit(q, y)
    np.testing.assert_allclose(clf.class_prior_, 0.25)


def test_classes_keep_their_width_where_documents_are_tempered(setting):
    (q, y), _ = setting
    clf = EvidenceClassifier(covariance="diagonal", tempering=(0.05, 1e9), tol=1e-4)
    clf.fit(q, y)
    # Noise of a tempered document is less than its precision says: EM alone would go
    # on taking what is missing from the classes, to a hundredth of the prior.
    assert clf.n_iter_ < 100
    assert np.diag(clf.covariance_).mean() > 0.3


def test_tempering_is_chosen_for_documents_that_repeat_themselves():
    rng = np.random.default_rng(8)
    means, root = draw_classes(rng, 5, 4, spread=0.5)
    q, y = draw_documents(rng, 1500, means, root, tokens=(3.0, 60.0))
    # Every word four times: precisions and h are four times what they should be.
    P, h = 1 / q.variance - 1, q.mean / q.variance
    again = GaussianPosterior(
        4 * h / (4 * P + 1), 1 / (4 * P + 1), prior=q.prior, n_tokens=4 * q.n_tokens
    )
    honest = EvidenceClassifier(covariance="diagonal").fit(q, y)
    repeated = EvidenceClassifier(covariance="diagonal").fit(again, y)

    def kappa(clf, n_tokens):
        k0, alpha = clf.tempering_
        return k0 / (1 + n_tokens / alpha)

    assert kappa(repeated, 80.0) < 0.6 * kappa(honest, 20.0)


def test_clones_and_pickles(setting):
    (q, y), (new, _) = setting
    clf = EvidenceClassifier(priors="uniform", covariance="diagonal", max_iter=99)
    assert clone(clf).get_params() == clf.get_params()
    clf.fit(q, y)
    back = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(back.predict_proba(new), clf.predict_proba(new))


def test_arrays_hold_means_and_variances(setting):
    (q, y), _ = setting
    clf = EvidenceClassifier(prior_precision=1.0, tempering=(1, 100))
    X = np.hstack([q.mean, q.variance])
    bare = GaussianPosterior(q.mean, q.variance, prior=q.prior)
    one, other = clone(clf).fit(X, y), clone(clf).fit(bare, y)
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(bare))


def test_input_errors_are_one_sentence(setting):
    (q, y), _ = setting
    clf = EvidenceClassifier(tempering=(1, 100))
    bare = GaussianPosterior(q.mean, q.variance)
    with pytest.raises(InputError, match="does not carry the prior"):
        clf.fit(bare, y)
    with pytest.raises(InputError, match="599 labels, but `X` has 600 documents"):
        clf.fit(q, y[1:])
    with pytest.raises(InputError, match="even number of features"):
        clf.fit(np.ones((4, 3)), [0, 1, 0, 1])
    with pytest.raises(InputError, match="no label in any of 600 rows"):
        clf.fit(q, np.full(600, -1))
    with pytest.raises(InputError, match="at least 2 classes, got 1 class"):
        clf.fit(q, np.where(y == 0, 0, -1))
    prior = GaussianPrior.isotropic(1.0, 2)
    small = GaussianPosterior(np.ones((1, 2)), np.ones((1, 2)), prior=prior)
    clf.fit(q, y)
    with pytest.raises(InputError, match="embeddings of size 2, .* with size 5"):
        clf.predict(small)
    with pytest.raises(InputError, match="`tempering` must be 'auto' or two positive"):
        EvidenceClassifier(tempering=(1, 0)).fit(q, y)


def test_groups_are_kept_together():
    # Labels say nothing, but documents of one group are alike: where folds part them,
    # they seem to.
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(60), 5)
    labels = rng.integers(3, size=60)[groups]
    mean = rng.normal(size=(60, 30))[groups] + 0.1 * rng.normal(size=(300, 30))
    q = GaussianPosterior(
        mean,
        np.full(mean.shape, 0.05),
        prior=GaussianPrior.isotropic(1.0, n_components=30),
        n_tokens=np.full(300, 50.0),
    )

    def sureness(**options):
        clf = EvidenceClassifier(covariance="diagonal").fit(q, labels, **options)
        k0, alpha = clf.tempering_
        return k0 / (1 + 50 / alpha)

    assert sureness(groups=groups) < 0.5 * sureness()
    with pytest.raises(InputError, match="groups"):
        sureness(groups=groups[:7])
