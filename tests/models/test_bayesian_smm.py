from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from docsigma import BayesianSMM, InputError, load_corpus


@pytest.fixture(scope="module")
def corpus():
    return load_corpus("synthetic", n_train=300, n_test=100, random_state=1)


@pytest.fixture(scope="module", params=["fast", "paper"])
def fitted(corpus, request):
    model = BayesianSMM(
        5,
        prior_precision=1.0,
        l1=0.1,
        solver=request.param,
        max_iter=300,
        random_state=0,
    )
    return model.fit(corpus.train.counts)


def test_training_beats_the_unigram_and_raises_the_bound(corpus, fitted):
    result = fitted.perplexity(corpus.test.counts)
    assert result.corpus < 0.9 * result.unigram_corpus
    assert result.corpus > result.maximum_likelihood_corpus
    bounds = [row["bound"] for row in fitted.history_]
    assert np.mean(bounds[-3:]) > np.mean(bounds[2:5]) > bounds[0]
    assert {"epoch", "bound", "kl", "sparsity", "seconds"} == set(fitted.history_[0])


def test_documents_that_do_not_converge_are_counted(corpus, fitted):
    hasty = clone(fitted).set_params(inference_max_iter=1)
    vars(hasty).update({k: v for k, v in vars(fitted).items() if k.endswith("_")})
    with pytest.warns(ConvergenceWarning, match=r"\d+ of 100 documents .* in 1 pass"):
        hasty.posterior(corpus.test.counts)


def test_training_finds_the_subspace_of_the_truth(corpus, fitted):
    # T is known up to a linear map of w: compare the spans by canonical angles.
    true = corpus.truth.word_loadings
    weights = np.exp(0.5 * corpus.truth.log_unigram)[:, None]
    q1 = np.linalg.qr((true - true.mean(0)) * weights)[0]
    found = fitted.components_.T.astype(float)
    q2 = np.linalg.qr((found - found.mean(0)) * weights)[0]
    cosines = np.linalg.svd(q1.T @ q2, compute_uv=False)
    assert cosines.min() > 0.8


def test_same_seed_gives_the_same_model(corpus):
    runs = [
        BayesianSMM(3, max_iter=5, random_state=4).fit(corpus.train.counts)
        for _ in range(2)
    ]
    np.testing.assert_array_equal(runs[0].components_, runs[1].components_)
    other = BayesianSMM(3, max_iter=5, random_state=5).fit(corpus.train.counts)
    assert not np.array_equal(runs[0].components_, other.components_)


def test_dense_and_sparse_give_the_same(corpus):
    sparse = BayesianSMM(3, max_iter=5, random_state=0).fit(corpus.train.counts)
    dense = BayesianSMM(3, max_iter=5, random_state=0).fit(
        corpus.train.counts.toarray()
    )
    np.testing.assert_array_equal(sparse.components_, dense.components_)


@pytest.mark.parametrize(
    ("given", "computed"),
    [(np.int64, np.float32), (np.float32, np.float32), (np.float64, np.float64)],
)
def test_arithmetic_is_single_unless_counts_are_double(corpus, given, computed):
    counts = corpus.train.counts.astype(given)
    model = BayesianSMM(2, max_iter=2, random_state=0).fit(counts)
    assert model.components_.dtype == computed
    assert model.transform(counts).dtype == computed


@pytest.mark.parametrize("solver", ["fast", "paper"])
def test_high_l1_gives_the_unigram_model(corpus, solver):
    model = BayesianSMM(4, l1=1e6, solver=solver, max_iter=30, random_state=0)
    model.fit(corpus.train.counts)
    assert (model.components_ == 0).all()
    assert model.history_[-1]["sparsity"] == 1.0
    result = model.perplexity(corpus.test.counts)
    assert result.corpus == pytest.approx(result.unigram_corpus, rel=1e-4)
    q = model.posterior(corpus.test.counts)
    np.testing.assert_allclose(q.mean, 0, atol=1e-6)
    np.testing.assert_allclose(q.variance, 0.1, rtol=1e-5)


def test_zeros_of_the_loadings_stay_between_passes(corpus):
    """A zero moves only where the pseudo-gradient left the dead zone."""
    from docsigma.optimizers import OrthantAdam, pseudo_gradient

    moves = []
    original = OrthantAdam.ascend

    def watch(self, parameter, gradient):
        before = parameter.clone()
        dead = (before == 0) & (pseudo_gradient(before, gradient, self.l1) == 0)
        original(self, parameter, gradient)
        moves.append(int((parameter[dead] != 0).sum()))
        seen.append(int(dead.sum()))

    seen: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OrthantAdam, "ascend", watch)
        model = BayesianSMM(5, l1=20.0, solver="paper", max_iter=150, random_state=0)
        model.fit(corpus.train.counts)
    assert max(seen) > 100
    assert sum(moves) == 0


@pytest.mark.parametrize("solver", ["fast", "paper"])
def test_fixed_log_unigram_stays(corpus, solver):
    model = BayesianSMM(2, learn_log_unigram=False, solver=solver, max_iter=5)
    model.fit(corpus.train.counts)
    np.testing.assert_allclose(
        model.log_unigram_, model.training_log_unigram_, rtol=1e-6
    )


def test_l2_shrinks_the_loadings(corpus):
    sizes = []
    for l2 in (0.0, 100.0):
        model = BayesianSMM(3, l1=0, l2=l2, max_iter=100, random_state=0)
        sizes.append(np.abs(model.fit(corpus.train.counts).components_).sum())
    assert sizes[1] < 0.7 * sizes[0]


def test_training_ends_when_the_bound_stands_still(corpus):
    model = BayesianSMM(2, l1=1e6, max_iter=500, tol=1e-4, random_state=0)
    model.fit(corpus.train.counts)
    assert model.converged_
    assert model.n_iter_ < 500
    model = BayesianSMM(2, l1=1e6, max_iter=30, tol=0, random_state=0)
    assert model.fit(corpus.train.counts).n_iter_ == 30
    assert not model.converged_


@pytest.mark.parametrize("solver", ["fast", "paper"])
def test_training_is_not_over_while_the_loadings_leave_the_saddle(solver):
    """T starts near zero, where the bound stands still before it climbs."""
    counts = np.repeat([[2, 2, 1, 0, 0, 0], [0, 0, 0, 2, 2, 1]], 20, axis=0)
    model = BayesianSMM(1, l1=0.01, solver=solver, max_iter=300, random_state=0)
    model.fit(counts)
    assert model.history_[-1]["kl"] > 0.5


def test_embedding_does_not_depend_on_batch_or_order(corpus, fitted):
    counts = corpus.test.counts
    whole = fitted.posterior(counts)
    order = np.random.default_rng(0).permutation(100)
    shuffled = fitted.posterior(counts[order])
    np.testing.assert_allclose(shuffled.mean, whole.mean[order], atol=1e-4)
    np.testing.assert_allclose(shuffled.variance, whole.variance[order], atol=1e-4)
    alone = fitted.posterior(counts[[7]])
    np.testing.assert_allclose(alone.mean[0], whole.mean[7], atol=1e-4)


def test_a_document_with_no_known_word_gets_the_prior(fitted):
    q = fitted.posterior(sp.csr_matrix((1, fitted.n_features_in_)))
    np.testing.assert_array_equal(q.mean, 0)
    np.testing.assert_allclose(q.variance, 1.0)
    np.testing.assert_allclose(q.kl(prior_precision=1.0), 0, atol=1e-6)


def test_words_never_seen_in_training_do_no_harm():
    random = np.random.default_rng(0)
    counts = random.poisson(1.0, (30, 8)).astype(np.float32)
    counts[:, 3] = 0
    model = BayesianSMM(2, max_iter=50, random_state=0).fit(counts)
    assert np.isfinite(model.log_unigram_).all()
    counts[:, 3] = 5
    q = model.posterior(counts)
    assert np.isfinite(q.mean).all()
    assert np.isfinite(model.perplexity(counts).corpus)


def test_estimators_are_ordered(corpus, fitted):
    values = {
        name: fitted.perplexity(corpus.test.counts, estimator=name, n_draws=256).corpus
        for name in ("authors", "importance", "monte_carlo", "jensen")
    }
    assert values["importance"] < values["monte_carlo"] < values["jensen"]
    assert values["authors"] < values["monte_carlo"]


def test_perplexity_takes_a_posterior_it_is_given(corpus, fitted):
    q = fitted.posterior(corpus.test.counts)
    again = fitted.perplexity(corpus.test.counts, posterior=q)
    assert again.corpus == pytest.approx(fitted.perplexity(corpus.test.counts).corpus)
    with pytest.raises(InputError, match=r"`posterior` must have the shape 100 x 5"):
        fitted.perplexity(corpus.test.counts, posterior=q[:3])


def test_score_is_the_log_of_the_perplexity(corpus, fitted):
    result = fitted.perplexity(corpus.test.counts)
    score = fitted.score(corpus.test.counts)
    assert np.exp(-score) == pytest.approx(result.corpus, rel=1e-6)


def test_fits_in_pipelines_and_grid_searches(corpus):
    texts = ["cats and dogs " * 20, "stocks and bonds " * 20] * 10
    labels = ["pets", "money"] * 10
    smm = BayesianSMM(2, max_iter=100, l1=0.0, random_state=0)
    pipeline = make_pipeline(CountVectorizer(), smm, LogisticRegression(C=100))
    assert pipeline.fit(texts, labels).score(texts, labels) == 1.0
    search = GridSearchCV(
        BayesianSMM(max_iter=5, random_state=0), {"n_components": [1, 2]}, cv=2
    )
    search.fit(corpus.train.counts)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_output_names_and_containers(corpus, fitted):
    model = clone(fitted).set_params(max_iter=2, output="mean_variance")
    frame = model.set_output(transform="pandas").fit_transform(corpus.train.counts)
    assert list(frame.columns[:2]) == ["bayesiansmm0", "bayesiansmm1"]
    assert frame.columns[-1] == "bayesiansmm4_variance"
    assert (frame.iloc[:, 5:] > 0).all().all()


def test_verbose_shows_bound_and_rate(corpus, capsys):
    BayesianSMM(2, max_iter=3, verbose=True, random_state=0).fit(corpus.train.counts)
    shown = capsys.readouterr().err
    assert "bound" in shown
    assert "doc/s" in shown


def test_callback_can_stop_the_training(corpus):
    model = BayesianSMM(2, max_iter=50, random_state=0)
    model.fit(corpus.train.counts, callback=lambda now: now.epoch == 4)
    assert model.n_iter_ == 4


def test_a_snapshot_is_the_model_of_a_shorter_training(corpus):
    kept = []

    def keep(now):
        if now.epoch == 6:
            kept.append(now.snapshot())

    counts = corpus.train.counts
    settings = {"solver": "paper", "random_state": 0}
    BayesianSMM(2, max_iter=12, **settings).fit(counts, callback=keep)
    short = BayesianSMM(2, max_iter=6, **settings).fit(counts)
    np.testing.assert_array_equal(kept[0].components_, short.components_)
    np.testing.assert_array_equal(kept[0].transform(counts), short.transform(counts))


def test_a_snapshot_of_the_fast_solver_is_the_model_of_a_training_that_ends_there(
    corpus,
):
    kept = []
    counts = corpus.train.counts
    settings = {"max_iter": 12, "tol": 0, "random_state": 0}
    BayesianSMM(2, **settings).fit(
        counts, callback=lambda now: kept.append(now.snapshot())
    )
    stopped = BayesianSMM(2, **settings)
    stopped.fit(counts, callback=lambda now: now.epoch == 6)
    np.testing.assert_array_equal(kept[5].components_, stopped.components_)
    np.testing.assert_array_equal(kept[5].log_unigram_, stopped.log_unigram_)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"n_components": 0}, "'n_components' parameter.*Got 0"),
        ({"prior_precision": 0.0}, "'prior_precision' parameter"),
        ({"l1": -1.0}, "'l1' parameter"),
        ({"solver": "magic"}, "'solver' parameter.*'paper'"),
        ({"rounding": "float16"}, "'rounding' parameter.*'float16'"),
        ({"batch_size": 0}, "'batch_size' parameter.*Got 0"),
        ({"max_iter": 0}, "'max_iter' parameter.*Got 0"),
        ({"learning_rate": 0.0}, "'learning_rate' parameter"),
        ({"device": "cuda:99"}, "the device 'cuda:99' cannot be used"),
    ],
)
def test_bad_parameters_get_one_sentence(corpus, parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        BayesianSMM(**parameters).fit(corpus.train.counts)


def test_bad_counts_get_one_sentence(corpus, fitted):
    counts = corpus.train.counts.toarray()
    counts[2, 3] = -1
    with pytest.raises(ValueError, match="Negative values"):
        BayesianSMM(2).fit(counts)
    counts[2, 3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        BayesianSMM(2).fit(counts)
    with pytest.raises(InputError, match="the 4 documents hold no word"):
        BayesianSMM(2).fit(np.zeros((4, 3)))
    with pytest.raises(ValueError, match="X has 3 features.* 200 features"):
        fitted.transform(np.ones((1, 3)))
    with pytest.raises(NotFittedError):
        BayesianSMM(2).transform(counts)


def test_vocabulary_of_another_length_is_refused(fitted):
    with pytest.raises(InputError, match="has 2 words, the model was fitted on 200"):
        fitted.set_vocabulary(["a", "b"])


@pytest.mark.data
@pytest.mark.release
def test_nvdm_corpus_reaches_the_papers_perplexity_in_small(data_folder):
    """A cut-down 20newsgroups-2k: every fourth document, 250 passes, K 20.

    benchmarks/perplexity.py is the full run (K 50, 1000 passes: at most 725 / 790).
    """
    corpus = load_corpus("20newsgroups-2k")
    train, test = corpus.train.counts[::4], corpus.test.counts[::10]
    model = BayesianSMM(
        20, solver="paper", max_iter=250, learning_rate=0.02, random_state=0
    )
    model.fit(train)
    q = model.posterior(test)
    bound = model.perplexity(test, posterior=q)
    authors = model.perplexity(test, estimator="authors", posterior=q)
    # Seen: 798 / 902 and 763 / 828; one per cent of slack for another BLAS.
    assert bound.corpus < 806
    assert bound.per_document < 911
    assert authors.corpus < 771
    assert authors.per_document < 836


def test_principal_axes_turn_the_model_and_change_nothing_else(corpus, fitted):
    before = fitted.components_.T.astype(float)
    turned = fitted.principal_axes()
    np.testing.assert_array_equal(fitted.components_.T, before)
    loadings = turned.components_.T.astype(float)
    unigram = np.exp(fitted.log_unigram_.astype(float))
    unigram /= unigram.sum()
    centred = loadings - unigram @ loadings
    covariance = centred.T @ (unigram[:, None] * centred)
    spread = covariance.diagonal()
    np.testing.assert_allclose(covariance, np.diag(spread), atol=1e-6 * spread.max())
    assert (np.diff(spread) <= 0).all()
    # A turn: all inner products of words stay, and so does every probability.
    np.testing.assert_allclose(loadings @ loadings.T, before @ before.T, atol=1e-5)
    test = corpus.test.counts
    exact = [
        m.perplexity(test, estimator="importance", n_draws=2000).corpus
        for m in (turned, fitted)
    ]
    assert exact[0] == pytest.approx(exact[1], rel=5e-3)
    bounds = [m.perplexity(test, n_draws=256).corpus for m in (turned, fitted)]
    assert bounds[0] < bounds[1]
    again = turned.principal_axes()
    np.testing.assert_allclose(again.components_, turned.components_, atol=1e-4)


def test_words_that_are_kept_change_no_answer():
    corpus = load_corpus("synthetic")
    train, test = corpus.train.counts, corpus.test.counts
    smm = BayesianSMM(3, max_iter=5, random_state=0).fit(train)
    expected = smm.posterior(test)
    smm.keep_words()
    for _ in range(2):
        found = smm.posterior(test)
        np.testing.assert_array_equal(found.mean, expected.mean)
        np.testing.assert_array_equal(found.variance, expected.variance)
    # Another family, and a model that has learned on.
    full = smm.posterior(test[:3], covariance="full").mean
    smm.partial_fit(train)
    again = smm.posterior(test)
    assert not np.array_equal(again.mean, expected.mean)
    other = BayesianSMM(3, max_iter=5, random_state=0).fit(train).partial_fit(train)
    np.testing.assert_array_equal(again.mean, other.posterior(test).mean)
    assert full.shape == (3, 3)
