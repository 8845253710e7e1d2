"""Counts on disk give what the same counts in memory give."""

from __future__ import annotations

import numpy as np
import pytest

from docsigma import BayesianSMM, GaussianPosterior, InputError
from docsigma.counts import DiskCounts
from docsigma.marginal_likelihood import ESTIMATORS, chunk_rows
from docsigma_paper import NVDM, SMM
from storing import random_counts, write

N, V, K = 45, 30, 3
# Documents in a block, and points in a chunk of draws, so that there are several.
ROWS = 16
N_DRAWS = 8
QUICK = {"max_iter": 3, "random_state": 0, "device": "cpu"}
MODELS = {
    "BayesianSMM": lambda: BayesianSMM(K, **QUICK),
    "paper": lambda: BayesianSMM(K, solver="paper", **QUICK),
    "full": lambda: BayesianSMM(K, covariance="full", **QUICK),
    "SMM": lambda: SMM(K, **QUICK),
    "NVDM": lambda: NVDM(K, hidden_units=5, learning_rate=1e-2, **QUICK),
}
GAUSSIANS = ["BayesianSMM", "full", "NVDM"]
# Blocks of another size are other products, which may round otherwise.
CLOSE = {"rtol": 1e-5, "atol": 1e-6}


@pytest.fixture
def counts():
    return random_counts(N, V)


@pytest.fixture
def stored(tmp_path, counts):
    return write(tmp_path / "counts", counts)


@pytest.fixture
def small_blocks(monkeypatch):
    """Read few documents at a time; return the sizes of the blocks that were read."""
    sizes = []
    plain = DiskCounts.__getitem__

    def read(self, rows):
        found = plain(self, rows)
        sizes.append(found.shape[0])
        return found

    monkeypatch.setattr(DiskCounts, "__getitem__", read)
    monkeypatch.setattr("docsigma.counts._base.BLOCK", ROWS)
    monkeypatch.setattr("docsigma.models._gaussian_model.BLOCK", ROWS)
    monkeypatch.setattr("docsigma_paper.models.nvdm_network.BLOCK", ROWS)
    monkeypatch.setattr(
        "docsigma.marginal_likelihood.CHUNK_POINTS", ROWS * N_DRAWS // 2
    )
    return sizes


def fitted(name, counts):
    return MODELS[name]().fit(counts)


@pytest.mark.parametrize("name", MODELS)
def test_fit(name, counts, stored):
    in_memory, on_disk = fitted(name, counts), fitted(name, stored)
    for array in ("components_", "log_unigram_", "training_log_unigram_"):
        np.testing.assert_allclose(
            getattr(on_disk, array), getattr(in_memory, array), **CLOSE
        )


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transform(name, counts, stored, small_blocks, dtype):
    model = fitted(name, counts.astype(dtype))
    found = model.transform(stored)
    assert found.dtype == dtype
    assert max(small_blocks) == ROWS
    np.testing.assert_allclose(found, model.transform(counts), **CLOSE)


@pytest.mark.parametrize("name", GAUSSIANS)
def test_posterior(name, counts, stored, small_blocks):
    model = fitted(name, counts)
    found, expected = model.posterior(stored), model.posterior(counts)
    assert max(small_blocks) == ROWS
    assert found.to_arrays().keys() == expected.to_arrays().keys()
    for array, values in expected.to_arrays().items():
        np.testing.assert_allclose(found.to_arrays()[array], values, **CLOSE)


def test_points_have_no_posterior_on_disk_either(counts, stored):
    with pytest.raises(InputError, match="SMM gives points, not Gaussians"):
        fitted("SMM", counts).posterior(stored)


@pytest.mark.parametrize("name", MODELS)
def test_score(name, counts, stored, small_blocks):
    model = fitted(name, counts)
    expected = model.score(counts)
    assert model.score(stored) == pytest.approx(expected, rel=1e-6)
    assert 1 < max(small_blocks) <= ROWS


@pytest.mark.parametrize("name", GAUSSIANS)
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("given", [False, True])
def test_perplexity(name, counts, stored, small_blocks, estimator, given):
    if estimator == "predictive" and name == "NVDM":
        pytest.skip("its words have no variances")
    model = fitted(name, counts)
    options = {"estimator": estimator, "n_draws": N_DRAWS}
    if given:
        options["posterior"] = model.posterior(counts)
    assert chunk_rows(N_DRAWS) == ROWS // 2
    expected = model.perplexity(counts, **options)
    found = model.perplexity(stored, **options)
    assert len(small_blocks) > 2
    assert max(small_blocks) == ROWS
    # The absolute tolerance is for documents without words.
    np.testing.assert_allclose(
        found.log_evidence, expected.log_evidence, rtol=1e-6, atol=1e-6
    )
    for field, value in expected.to_dict().items():
        if isinstance(value, float):
            assert getattr(found, field) == pytest.approx(value, rel=1e-6)
        else:
            assert getattr(found, field) == value


def test_blocks_hold_whole_chunks_of_draws(counts, stored, monkeypatch):
    # With many draws a chunk has few documents, and a block a multiple of them.
    model = fitted("BayesianSMM", counts)
    monkeypatch.setattr("docsigma.models._gaussian_model.BLOCK", 10)
    n_draws = 16384 // 4
    assert chunk_rows(n_draws) == 4
    expected = model.perplexity(counts, n_draws=n_draws).log_evidence
    found = model.perplexity(stored, n_draws=n_draws).log_evidence
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_partial_fit(counts, stored, covariance):
    in_memory, on_disk = (
        BayesianSMM(K, covariance=covariance, **QUICK).partial_fit(X).partial_fit(X)
        for X in (counts, stored)
    )
    assert on_disk.n_iter_ == 2
    for array in ("components_", "log_unigram_", "training_log_unigram_"):
        np.testing.assert_array_equal(
            getattr(on_disk, array), getattr(in_memory, array)
        )


def test_partial_fit_takes_one_block_after_the_other(counts, stored, small_blocks):
    on_disk = BayesianSMM(K, **QUICK).partial_fit(stored)
    assert max(small_blocks) == ROWS
    in_memory = BayesianSMM(K, **QUICK)
    for start in range(0, N, ROWS):
        in_memory.partial_fit(counts[start : start + ROWS])
    for array in ("components_", "log_unigram_", "training_log_unigram_"):
        np.testing.assert_array_equal(
            getattr(on_disk, array), getattr(in_memory, array)
        )


@pytest.mark.parametrize("name", MODELS)
def test_other_words_get_one_sentence(name, counts, tmp_path):
    model = fitted(name, counts)
    other = write(tmp_path / "other", counts[:, :7])
    methods = [model.transform, model.score]
    if name in GAUSSIANS:
        methods += [model.posterior, model.perplexity]
    if hasattr(model, "partial_fit"):
        methods.append(model.partial_fit)
    for method in methods:
        with pytest.raises(InputError, match=f"has 7 features, .* {V} features"):
            method(other)


def test_a_model_in_double_precision_stays_so(counts, stored):
    model = fitted("BayesianSMM", counts.astype(np.float64))
    assert model.partial_fit(stored).components_.dtype == np.float64


def test_the_row_of_a_wrong_covariance_is_that_of_all_documents(
    counts, stored, small_blocks
):
    model = fitted("BayesianSMM", counts)
    covariance = np.tile(np.eye(K), (N, 1, 1))
    covariance[40, 0, 1] = covariance[40, 1, 0] = 2.0
    wrong = GaussianPosterior(np.zeros((N, K)), covariance=covariance)
    for given in (counts, stored):
        with pytest.raises(InputError, match="not positive definite in row 40$"):
            model.perplexity(given, posterior=wrong)
    assert len(small_blocks) == 3
