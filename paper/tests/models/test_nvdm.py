from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from docsigma import InputError, load_corpus
from docsigma_paper.early_stopping import EarlyStopping
from docsigma_paper.models import nvdm_trainer
from docsigma_paper.models.nvdm import NVDM
from storing import write

QUICK = {"hidden_units": 16, "alternate_passes": 2, "learning_rate": 3e-3}


@parametrize_with_checks(
    [NVDM(2, hidden_units=4, max_iter=2, alternate_passes=1, random_state=0)]
)
def test_estimator_keeps_scikit_learns_contract(estimator, check):
    check(estimator)


@pytest.mark.release
@parametrize_with_checks(
    [
        NVDM(
            2,
            hidden_units=4,
            n_layers=1,
            activation="tanh",
            max_iter=2,
            alternate_passes=1,
            n_draws=2,
            output="mean_variance",
        ),
    ]
)
def test_another_variant_keeps_scikit_learns_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def corpus():
    return load_corpus("synthetic", n_train=300, n_test=100, random_state=1)


@pytest.fixture(scope="module")
def fitted(corpus):
    model = NVDM(5, **{**QUICK, "hidden_units": 50}, max_iter=20, random_state=0)
    return model.fit(corpus.train.counts)


def test_training_raises_the_bound_and_beats_the_unigram(corpus, fitted):
    bounds = [row["bound"] for row in fitted.history_]
    assert np.mean(bounds[-3:]) > np.mean(bounds[8:11]) > bounds[0]
    assert {"epoch", "bound", "kl", "sparsity", "seconds"} == set(fitted.history_[0])
    result = fitted.perplexity(corpus.test.counts)
    assert result.corpus < 0.75 * result.unigram_corpus
    assert result.corpus > result.maximum_likelihood_corpus
    assert result.n_draws == 20
    assert fitted.history_[-1]["kl"] > 1


def test_history_ends_near_the_bound_of_the_fitted_model(corpus, fitted):
    counts = corpus.train.counts
    total = fitted.perplexity(counts).log_evidence.sum()
    assert fitted.history_[-1]["bound"] == pytest.approx(total, rel=0.01)
    q = fitted.posterior(counts)
    kl = q.kl(prior_precision=1.0).mean()
    assert fitted.history_[-1]["kl"] == pytest.approx(kl, rel=0.1)


def test_importance_estimate_lies_under_the_bound(corpus, fitted):
    counts = corpus.test.counts
    bound = fitted.perplexity(counts, n_draws=200)
    closer = fitted.perplexity(counts, estimator="importance", n_draws=200)
    assert closer.corpus < bound.corpus


def test_same_seed_gives_the_same_model(corpus):
    counts = corpus.train.counts[:80]
    torch.manual_seed(1)
    one = NVDM(3, **QUICK, max_iter=2, random_state=4).fit(counts)
    torch.manual_seed(2)
    two = NVDM(3, **QUICK, max_iter=2, random_state=4).fit(counts)
    np.testing.assert_array_equal(one.components_, two.components_)
    for name in one.encoder_:
        np.testing.assert_array_equal(one.encoder_[name], two.encoder_[name])
    np.testing.assert_array_equal(one.transform(counts), two.transform(counts))
    other = NVDM(3, **QUICK, max_iter=2, random_state=5).fit(counts)
    assert not np.array_equal(one.components_, other.components_)


def test_dense_sparse_and_stored_counts_give_the_same(corpus, tmp_path, monkeypatch):
    # Noise is drawn a batch at a time, so that a pass draws more than once.
    monkeypatch.setattr(nvdm_trainer, "NOISES", 1)
    counts = corpus.train.counts[:80]
    stored = write(tmp_path / "counts", counts)
    model = NVDM(3, **QUICK, max_iter=2, random_state=0)
    ours = clone(model).fit(counts)
    for given in (counts.toarray(), stored):
        other = clone(model).fit(given)
        np.testing.assert_array_equal(other.components_, ours.components_)
        np.testing.assert_array_equal(
            other.posterior(given).mean, ours.transform(counts)
        )


@pytest.mark.parametrize(
    ("given", "computed"),
    [(np.int64, np.float32), (np.float32, np.float32), (np.float64, np.float64)],
)
def test_arithmetic_is_single_unless_counts_are_double(corpus, given, computed):
    counts = corpus.train.counts[:40].astype(given)
    model = NVDM(2, **QUICK, max_iter=1, random_state=0).fit(counts)
    assert model.components_.dtype == computed
    assert model.encoder_["hidden1.weight"].dtype == computed
    assert model.transform(counts).dtype == computed


def test_embedding_does_not_depend_on_block_or_order(corpus, fitted, monkeypatch):
    counts = corpus.test.counts
    whole = fitted.posterior(counts)
    monkeypatch.setattr("docsigma_paper.models.nvdm_network.BLOCK", 7)
    order = np.random.default_rng(0).permutation(100)
    shuffled = fitted.posterior(counts[order])
    np.testing.assert_allclose(shuffled.mean, whole.mean[order], atol=1e-5)
    np.testing.assert_allclose(shuffled.variance, whole.variance[order], atol=1e-5)


def test_output_has_means_and_variances(corpus, fitted):
    q = fitted.posterior(corpus.test.counts)
    model = clone(fitted).set_params(output="mean_variance", max_iter=1)
    both = model.fit(corpus.train.counts).transform(corpus.test.counts)
    assert both.shape == (100, 10)
    assert (both[:, 5:] > 0).all()
    assert model.get_feature_names_out()[-1] == "nvdm4_variance"
    np.testing.assert_array_equal(fitted.transform(corpus.test.counts), q.mean)


def test_empty_documents_give_finite_results(corpus, fitted):
    counts = corpus.train.counts[:60].tolil()
    counts[:20] = 0
    counts = sp.csr_matrix(counts)
    model = NVDM(3, **QUICK, batch_size=8, max_iter=2, random_state=0).fit(counts)
    q = model.posterior(counts)
    assert np.isfinite(q.mean).all()
    result = model.perplexity(counts)
    assert np.isfinite(result.corpus)
    assert result.n_empty == 20
    nothing = np.zeros((2, counts.shape[1]))
    alone = fitted.posterior(nothing)
    assert np.isfinite(alone.mean).all()
    assert (alone.variance > 0).all()
    assert np.isfinite(fitted.score(nothing))


def test_words_never_seen_and_very_long_documents_do_no_harm(fitted):
    random = np.random.default_rng(0)
    counts = random.poisson(1.0, (30, 8)).astype(np.float32)
    counts[:, 3] = 0
    model = NVDM(2, **QUICK, max_iter=2, random_state=0).fit(counts)
    assert np.isfinite(model.log_unigram_).all()
    counts[:, 3] = 5
    assert np.isfinite(model.perplexity(counts).corpus)
    q = fitted.posterior(np.full((1, 200), 1e6))
    assert np.isfinite(q.mean).all()
    assert (q.variance > 0).all()


def test_score_is_the_log_of_the_perplexity(corpus, fitted):
    result = fitted.perplexity(corpus.test.counts)
    score = fitted.score(corpus.test.counts)
    assert np.exp(-score) == pytest.approx(result.corpus, rel=1e-6)


def test_perplexity_takes_a_posterior_it_is_given(corpus, fitted):
    q = fitted.posterior(corpus.test.counts)
    again = fitted.perplexity(corpus.test.counts, posterior=q)
    expected = fitted.perplexity(corpus.test.counts).corpus
    assert again.corpus == pytest.approx(expected, rel=1e-5)
    with pytest.raises(InputError, match=r"`posterior` must have the shape 100 x 5"):
        fitted.perplexity(corpus.test.counts, posterior=q[:3])


def test_training_ends_when_the_bound_stands_still(corpus):
    counts = corpus.train.counts[:80]
    settings = QUICK | {"learning_rate": 1e-9}
    model = NVDM(2, **settings, max_iter=30, tol=0.01, random_state=0).fit(counts)
    assert model.converged_
    assert model.n_iter_ == 10
    model = NVDM(2, **settings, max_iter=12, tol=0, random_state=0).fit(counts)
    assert not model.converged_
    assert model.n_iter_ == 12


def test_callback_sees_each_round_and_can_stop(corpus):
    counts = corpus.train.counts[:80]
    kept = []

    def watch(now):
        kept.append(now.snapshot())
        assert len(now.history()) == now.epoch
        return now.epoch == 3

    model = NVDM(2, **QUICK, max_iter=9, random_state=0).fit(counts, callback=watch)
    assert model.n_iter_ == 3
    assert [snapshot.n_iter_ for snapshot in kept] == [1, 2, 3]
    short = NVDM(2, **QUICK, max_iter=2, random_state=0).fit(counts)
    np.testing.assert_array_equal(kept[1].transform(counts), short.transform(counts))
    assert kept[1].perplexity(counts).corpus == short.perplexity(counts).corpus
    assert not np.array_equal(kept[1].components_, model.components_)


def test_early_stopping_takes_it(corpus):
    labels = np.where(corpus.truth.train_embeddings[:, 0] > 0, "up", "down")
    stop = EarlyStopping(corpus.train.counts, labels, every=2)
    NVDM(3, **QUICK, max_iter=4, random_state=0).fit(corpus.train.counts, callback=stop)
    assert [point.epoch for point in stop.curve] == [2, 4]
    assert stop.best_model.n_iter_ in {2, 4}


def test_verbose_shows_bound_and_rate(corpus, capsys):
    NVDM(2, **QUICK, max_iter=2, verbose=True).fit(corpus.train.counts[:20])
    shown = capsys.readouterr().err
    assert "bound" in shown
    assert "doc/s" in shown


def test_loading_gives_the_same_model(corpus, fitted, tmp_path):
    words = [f"w{i}" for i in range(corpus.train.counts.shape[1])]
    NVDM.set_vocabulary(fitted, words)
    fitted.save(tmp_path / "model")
    fitted.vocabulary_, kept = None, fitted.vocabulary_
    back = NVDM.load(tmp_path / "model")
    assert back.vocabulary_ == kept
    assert back.get_params() == fitted.get_params()
    assert back.history_ == fitted.history_
    counts = corpus.test.counts
    np.testing.assert_array_equal(back.transform(counts), fitted.transform(counts))
    ours, theirs = (m.perplexity(counts).to_dict() for m in (fitted, back))
    assert ours == theirs


def test_a_damaged_folder_is_refused(fitted, tmp_path):
    folder = tmp_path / "model"
    fitted.save(folder)
    config = json.loads((folder / "config.json").read_text())
    config["parameters"]["hidden_units"] = 60
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match="not the one of 2 layers of 60 units"):
        NVDM.load(folder)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"n_components": 0}, "'n_components' parameter.*Got 0"),
        ({"hidden_units": 0}, "'hidden_units' parameter.*Got 0"),
        ({"n_layers": 0}, "'n_layers' parameter.*Got 0"),
        ({"activation": "gelu"}, "'activation' parameter.*Got 'gelu'"),
        ({"alternate_passes": 0}, "'alternate_passes' parameter.*Got 0"),
        ({"max_iter": 0}, "'max_iter' parameter.*Got 0"),
        ({"batch_size": 0}, "'batch_size' parameter.*Got 0"),
        ({"n_draws": 0}, "'n_draws' parameter.*Got 0"),
        ({"learning_rate": 0.0}, "'learning_rate' parameter"),
        ({"tol": -1.0}, "'tol' parameter"),
        ({"output": "variance"}, "'output' parameter"),
        ({"device": "cuda:99"}, "the device 'cuda:99' cannot be used"),
    ],
)
def test_bad_parameters_get_one_sentence(corpus, parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        NVDM(**parameters).fit(corpus.train.counts)


def test_a_training_that_diverges_says_so(corpus):
    model = NVDM(2, **(QUICK | {"learning_rate": 1e30}), random_state=0)
    with pytest.raises(InputError, match="diverged in round 1.*`learning_rate`"):
        model.fit(corpus.train.counts[:80])


def test_bad_counts_get_one_sentence(corpus, fitted):
    counts = corpus.train.counts.toarray()
    counts[2, 3] = -1
    with pytest.raises(ValueError, match="Negative values"):
        NVDM(2).fit(counts)
    counts[2, 3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        NVDM(2).fit(counts)
    with pytest.raises(InputError, match="the 4 documents hold no word"):
        NVDM(2).fit(np.zeros((4, 3)))
    with pytest.raises(ValueError, match="X has 3 features.* 200 features"):
        fitted.transform(np.ones((1, 3)))
    with pytest.raises(InputError, match="`estimator` must be one of"):
        fitted.perplexity(corpus.test.counts, estimator="exact")
    with pytest.raises(NotFittedError):
        NVDM(2).transform(counts)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_the_gpu_gives_the_cpus_model(corpus):
    counts = corpus.train.counts.astype(np.float64)
    cpu, gpu = (
        NVDM(3, **QUICK, max_iter=5, device=device, random_state=0).fit(counts)
        for device in ("cpu", "cuda")
    )
    np.testing.assert_allclose(gpu.components_, cpu.components_, atol=1e-6)
    for name, array in cpu.encoder_.items():
        np.testing.assert_allclose(gpu.encoder_[name], array, atol=1e-6)
    ours, theirs = (model.posterior(corpus.test.counts) for model in (cpu, gpu))
    np.testing.assert_allclose(theirs.mean, ours.mean, atol=1e-5)
    p, q = (m.perplexity(corpus.test.counts).corpus for m in (cpu, gpu))
    assert q == pytest.approx(p, rel=1e-4)
