"""What every model keeps, whatever its solver, dtype, device and parts."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone

from docsigma import BayesianSMM, InputError, load_corpus
from docsigma.covariances import Full
from docsigma.likelihoods import Polya
from docsigma.parts import KINDS
from docsigma.priors import IsotropicPrior
from docsigma_paper import NVDM, SMM
from second_kinds import FixedGaussianLoadings, FullPrior, LowRank
from storing import write

GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
DEVICES = ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, GPU])]


@pytest.fixture(scope="module")
def corpus():
    return load_corpus("synthetic", n_train=120, n_test=30, n_features=60)


class ModelContract:
    """The contract; a subclass says how a model is made."""

    solvers = ("fast", "paper")
    gaussian = True

    @pytest.fixture(params=["float32", "float64"])
    def dtype(self, request):
        return request.param

    @pytest.fixture(params=DEVICES)
    def device(self, request):
        return request.param

    @pytest.fixture
    def solver(self, request):
        return request.param

    def pytest_generate_tests(self, metafunc):
        if "solver" in metafunc.fixturenames:
            metafunc.parametrize("solver", self.solvers, indirect=True)

    def make(self, solver, **options):
        raise NotImplementedError

    def fit(self, corpus, solver, dtype="float32", device="cpu"):
        model = self.make(solver, device=device, random_state=0)
        return model.fit(corpus.train.counts.astype(dtype))

    @pytest.fixture(scope="class")
    @classmethod
    def fitted(cls, corpus):
        """Return a function to models that tests only read: each is fitted once."""
        return functools.cache(functools.partial(cls().fit, corpus))

    def test_embeddings_are_finite_and_keep_the_dtype(
        self, corpus, fitted, solver, dtype, device
    ):
        model = fitted(solver, dtype, device)
        embedded = model.transform(corpus.test.counts.astype(dtype))
        assert embedded.shape == (30, 3)
        assert embedded.dtype == np.dtype(dtype)
        assert np.isfinite(embedded).all()
        assert np.isfinite(model.history_[-1]["bound"])
        assert np.isfinite(model.score(corpus.test.counts))

    def test_one_seed_gives_one_model(self, corpus, solver):
        one, two = (self.fit(corpus, solver) for _ in range(2))
        np.testing.assert_array_equal(one.components_, two.components_)

    @pytest.mark.usefixtures("registered_parts")
    def test_a_saved_model_is_the_same_model(self, corpus, fitted, solver, tmp_path):
        model = fitted(solver)
        model.save(tmp_path / "model")
        back = type(model).load(tmp_path / "model")
        counts = corpus.test.counts
        np.testing.assert_array_equal(back.transform(counts), model.transform(counts))
        assert back.score(counts) == model.score(counts)

    def test_counts_on_disk_give_what_counts_in_memory_give(
        self, corpus, fitted, solver, tmp_path
    ):
        stored = write(tmp_path / "counts", corpus.train.counts)
        whole = fitted(solver)
        model = self.make(solver, random_state=0).fit(stored)
        # Sums over other blocks round otherwise.
        np.testing.assert_allclose(
            model.components_, whole.components_, rtol=0, atol=2e-3
        )
        np.testing.assert_allclose(
            whole.transform(stored),
            whole.transform(corpus.train.counts),
            rtol=0,
            atol=1e-4,
        )
        assert whole.score(stored) == pytest.approx(
            whole.score(corpus.train.counts), rel=1e-5
        )

    def test_a_clone_is_a_model_of_its_own_with_the_same_parameters(self, solver):
        model = self.make(solver)
        other = clone(model)
        # Parts are cloned too; what tells them apart is their own parameters.
        given, cloned = (m.get_params(deep=True) for m in (model, other))
        assert given.keys() == cloned.keys()
        for name, value in given.items():
            if hasattr(value, "get_params"):
                assert type(cloned[name]) is type(value)
                assert cloned[name] is not value
            else:
                assert cloned[name] == value, name
        assert other.set_params(n_components=7).n_components == 7
        assert model.n_components == 3
        with pytest.raises(ValueError, match="no_such_parameter"):
            other.set_params(no_such_parameter=1)

    def test_an_embedding_does_not_depend_on_its_neighbours(
        self, corpus, fitted, solver
    ):
        model = fitted(solver, "float64")
        counts = corpus.test.counts.astype(np.float64)
        whole = model.transform(counts)
        np.testing.assert_allclose(
            model.transform(counts[7:9]), whole[7:9], rtol=0, atol=1e-6
        )

    def test_a_posterior_carries_its_prior_and_tokens(self, corpus, fitted, solver):
        model = fitted(solver)
        if not self.gaussian:
            with pytest.raises(InputError, match="gives points, not Gaussians"):
                model.posterior(corpus.test.counts)
            return
        q = model.posterior(corpus.test.counts)
        tokens = np.asarray(corpus.test.counts.sum(axis=1)).ravel()
        np.testing.assert_allclose(q.require_tokens(), tokens)
        assert np.isfinite(q.kl()).all()
        assert (model.perplexity(corpus.test.counts, posterior=q).corpus) > 1

    def test_an_empty_document_has_the_prior(self, fitted, solver):
        model = fitted(solver)
        empty = sp.csr_matrix((1, 60), dtype=np.float32)
        if isinstance(model, NVDM):
            pytest.skip("the encoder of NVDM makes something of zeros")
        mean = model.parts_.prior.gaussian(3).mean
        np.testing.assert_allclose(model.transform(empty)[0], mean, atol=1e-5)


class SubspaceContract(ModelContract):
    """What can be resumed."""

    @pytest.mark.usefixtures("registered_parts")
    def test_resuming_is_bit_for_bit(self, corpus, fitted, solver, tmp_path):
        file = tmp_path / "checkpoint.safetensors"
        counts = corpus.train.counts
        whole = fitted(solver)
        stopped = self.make(solver, random_state=0)
        stopped.fit(counts, checkpoint=file, callback=lambda now: now.epoch == 2)
        resumed = self.make(solver, random_state=0)
        resumed.fit(counts, checkpoint=file, resume=True)
        np.testing.assert_array_equal(resumed.components_, whole.components_)


def smm(solver, **options):
    settings = {"n_components": 3, "max_iter": 5, "tol": 0, "prior_precision": 2.0}
    return BayesianSMM(**(settings | {"solver": solver, "l1": 0.1} | options))


@pytest.fixture
def registered_parts(monkeypatch):
    """Register the second kinds, as a package that brings them would."""
    for role, name, cls in (
        ("prior", "given full", FullPrior),
        ("loadings", "fixed gaussian", FixedGaussianLoadings),
        ("covariance", "low rank", LowRank),
    ):
        monkeypatch.setitem(KINDS[role], name, cls)


class TestBayesianSMM(SubspaceContract):
    def make(self, solver, **options):
        return smm(solver, **options)


class TestSMM(SubspaceContract):
    gaussian = False

    def make(self, solver, **options):
        return SMM(3, max_iter=5, tol=0, l1=0.1, solver=solver, **options)


class TestNVDM(ModelContract):
    solvers = ("fast",)

    def make(self, solver, **options):  # noqa: ARG002
        return NVDM(3, hidden_units=8, max_iter=1, alternate_passes=2, **options)


class TestFullPrior(SubspaceContract):
    def make(self, solver, **options):
        return smm(solver, prior=FullPrior(0.1, 0.5, 4.0), **options)


class TestPolya(SubspaceContract):
    def make(self, solver, **options):
        return smm(solver, likelihood=Polya(30.0), **options)


class TestLearnedPolya(SubspaceContract):
    """One of four batches is set aside in the first three passes."""

    solvers = ("fast",)

    def make(self, solver, **options):
        return smm(solver, likelihood="polya", **options)


class TestFixedGaussianLoadings(SubspaceContract):
    def make(self, solver, **options):
        return smm(solver, loadings=FixedGaussianLoadings(0.05), **options)


# Its covariance is not the best of its family, so that some documents never settle.
@pytest.mark.filterwarnings("ignore:.* did not converge")
class TestLowRank(SubspaceContract):
    solvers = ("fast",)

    def make(self, solver, **options):
        return smm(solver, covariance=LowRank(1), **options)


class TestFull(SubspaceContract):
    solvers = ("fast",)

    def make(self, solver, **options):
        return smm(solver, covariance=Full(), **options)


def test_algorithm_1_refuses_other_covariances(corpus):
    with pytest.raises(InputError, match='solver="paper" moves diagonal.*LowRank'):
        smm("paper", covariance=LowRank()).fit(corpus.train.counts)


def test_a_part_of_an_unknown_kind_gets_one_sentence(
    corpus, tmp_path, registered_parts, monkeypatch
):
    model = smm("fast", prior=FullPrior(0.1, 0.5, 4.0)).fit(corpus.train.counts)
    model.save(tmp_path / "model")
    monkeypatch.delitem(KINDS["prior"], "given full")
    with pytest.raises(
        InputError, match="a prior of the kind 'given full', which this"
    ):
        BayesianSMM.load(tmp_path / "model")
    with pytest.raises(InputError, match="FullPrior cannot be saved: it is registered"):
        model.save(tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("role", KINDS)
def test_wrong_parts_get_one_sentence(corpus, role):
    for given in ("gamma", IsotropicPrior if role != "prior" else Polya()):
        with pytest.raises(ValueError, match=role):
            smm("fast", **{role: given}).fit(corpus.train.counts)


def test_a_grid_search_reaches_into_a_part(corpus):
    from sklearn.model_selection import GridSearchCV

    grid = GridSearchCV(
        smm("fast", prior=IsotropicPrior(), random_state=0),
        {"prior__precision": [1.0, 50.0]},
        cv=2,
    )
    best = grid.fit(corpus.train.counts).best_estimator_
    assert best.parts_.prior.precision == best.prior.precision
    assert best.posterior(corpus.test.counts).prior.precision == best.prior.precision


def test_names_take_the_models_own_weights_and_objects_have_theirs(corpus):
    named = smm("fast", prior_precision=3.0).fit(corpus.train.counts)
    assert named.parts_.prior.precision == 3.0
    assert named.parts_.loadings.l1 == 0.1
    given = smm("fast", prior=IsotropicPrior(7.0)).fit(corpus.train.counts)
    assert given.parts_.prior.precision == 7.0
    # Training leaves what a user gave alone.
    assert given.parts_.prior is not given.prior


class TestLearnedDiagonalPrior(SubspaceContract):
    """What a part learns is saved, and goes on from a checkpoint."""

    def make(self, solver, **options):
        return smm(solver, prior="diagonal", **options)


class TestLearnedFullPrior(SubspaceContract):
    def make(self, solver, **options):
        return smm(solver, prior="full", **options)
