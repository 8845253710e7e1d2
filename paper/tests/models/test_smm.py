from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from docsigma import BayesianSMM, load_corpus
from docsigma.exceptions import InputError
from docsigma_paper import SMM


@pytest.fixture(scope="module")
def corpus():
    return load_corpus("synthetic", n_train=300, n_test=100, random_state=1)


@parametrize_with_checks([SMM(n_components=2, max_iter=5, random_state=0)])
def test_estimator_keeps_scikit_learns_contract(estimator, check):
    check(estimator)


def test_both_solvers_reach_the_same_objective(corpus):
    settings = {"prior_precision": 1.0, "l1": 0.1, "tol": 0, "random_state": 0}
    counts = corpus.train.counts
    quick = SMM(5, **settings).fit(counts)
    slow = SMM(5, solver="paper", max_iter=600, **settings).fit(counts)
    ends = [model.history_[-1]["bound"] for model in (quick, slow)]
    assert ends[0] == pytest.approx(ends[1], rel=0.01)


def test_its_objective_is_the_likelihood_less_the_penalties(corpus):
    counts = corpus.train.counts
    model = SMM(4, prior_precision=1.0, l1=0.5, max_iter=300, solver="paper", tol=0)
    model.set_params(random_state=0).fit(counts)
    tokens = counts.sum()
    penalty = 0.5 * np.abs(model.components_).sum()
    judged = model.score(counts) * tokens - penalty
    # Training is nearly done: embeddings inferred anew are those it has.
    assert judged == pytest.approx(model.history_[-1]["bound"], rel=2e-3)


def test_points_follow_their_documents_more_closely_than_gaussians_do(corpus):
    """Nothing is averaged over, so the log probabilities lie farther from m."""
    settings = {"prior_precision": 1.0, "l1": 0.1, "random_state": 0}
    counts = corpus.train.counts
    models = [make(5, **settings).fit(counts) for make in (SMM, BayesianSMM)]
    point, gaussian = (m.transform(counts) @ m.components_ for m in models)
    assert np.linalg.norm(point) > np.linalg.norm(gaussian)


def test_one_seed_gives_one_model_and_it_can_be_stored(corpus, tmp_path):
    counts = corpus.train.counts
    models = [SMM(3, max_iter=5, random_state=7).fit(counts) for _ in range(2)]
    np.testing.assert_array_equal(models[0].components_, models[1].components_)
    models[0].save(tmp_path / "model")
    again = SMM.load(tmp_path / "model")
    np.testing.assert_array_equal(
        again.transform(corpus.test.counts), models[1].transform(corpus.test.counts)
    )


def test_a_great_l1_weight_gives_the_unigram(corpus):
    model = SMM(3, l1=1e6, max_iter=10, random_state=0).fit(corpus.train.counts)
    assert (model.components_ == 0).all()
    assert (model.transform(corpus.test.counts) == 0).all()


def test_it_says_that_it_has_no_posterior(corpus):
    model = SMM(2, max_iter=2).fit(corpus.train.counts)
    with pytest.raises(InputError, match="points, not Gaussians"):
        model.posterior(corpus.test.counts)


def test_a_model_without_words_is_refused():
    with pytest.raises(InputError, match="hold no word"):
        SMM(2).fit(np.zeros((3, 4)))
