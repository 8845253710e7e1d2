"""NVDM's network and its alternating training, against plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from scipy.special import log_softmax, logsumexp

from docsigma import load_corpus
from docsigma_paper.models.nvdm_network import CountBatch, NVDMNetwork
from docsigma_paper.models.nvdm_trainer import NVDMTrainer

ACTIVATIONS = {
    "relu": lambda a: np.maximum(a, 0),
    "sigmoid": lambda a: 1 / (1 + np.exp(-a)),
    "tanh": np.tanh,
}


@pytest.fixture(scope="module")
def corpus():
    return load_corpus("synthetic", n_train=300, n_test=100, random_state=1)


def tiny(k=1, *, activation="tanh", n_layers=2, n=6, v=7, seed=0):
    """Give counts and a network with no zero weight, in float64."""
    random = np.random.default_rng(seed)
    matrix = sp.csr_matrix(random.poisson(1.5, (n, v)).astype(np.float64))
    network = NVDMNetwork.initial(
        torch.from_numpy(random.standard_normal(v)),
        n_components=k,
        hidden_units=4,
        n_layers=n_layers,
        activation=activation,
        seed=seed,
    )
    for half in (network.encoder, network.decoder):
        for tensor in half.values():
            tensor += torch.from_numpy(0.3 * random.standard_normal(tensor.shape))
    return matrix, network


def batch_of(matrix):
    return CountBatch.from_csr(matrix, torch.empty(0, dtype=torch.float64))


def arrays(network):
    return {
        f"{name}.{key}": tensor.numpy().copy()
        for name, half in (("encoder", network.encoder), ("decoder", network.decoder))
        for key, tensor in half.items()
    }


def plain_encode(x, weights, activation, n_layers):
    hidden = x
    for layer in range(1, n_layers + 1):
        hidden = hidden @ weights[f"encoder.hidden{layer}.weight"]
        hidden = ACTIVATIONS[activation](
            hidden + weights[f"encoder.hidden{layer}.bias"]
        )
    mean, log_std = (
        hidden @ weights[f"encoder.{head}.weight"] + weights[f"encoder.{head}.bias"]
        for head in ("mean", "log_std")
    )
    return mean, log_std


def plain_bounds(x, noise, weights, activation, n_layers):
    """The bound by dense numpy, with none of the network's code."""
    mean, log_std = plain_encode(x, weights, activation, n_layers)
    points = mean[:, None] + np.exp(log_std)[:, None] * noise
    logits = points @ weights["decoder.loadings"].T + weights["decoder.bias"]
    likelihood = (x[:, None] * log_softmax(logits, axis=-1)).sum(axis=-1).mean(axis=1)
    kl = 0.5 * (np.exp(2 * log_std) + mean**2 - 1 - 2 * log_std).sum(axis=1)
    return likelihood - kl


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
@pytest.mark.parametrize("n_layers", [1, 2, 3])
def test_bound_equals_a_dense_one(activation, n_layers):
    matrix, network = tiny(3, activation=activation, n_layers=n_layers)
    noise = np.random.default_rng(1).standard_normal((6, 2, 3))
    bound, kl = network.bound(batch_of(matrix), torch.from_numpy(noise))
    expected = plain_bounds(
        matrix.toarray(), noise, arrays(network), activation, n_layers
    )
    np.testing.assert_allclose(bound.numpy(), expected, rtol=1e-10)
    assert (kl > 0).all()


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_gradients_equal_finite_differences_of_the_dense_bound(activation):
    matrix, network = tiny(2, activation=activation)
    noise = np.random.default_rng(2).standard_normal((6, 3, 2))
    tensors = {f"encoder.{k}": t for k, t in network.encoder.items()}
    tensors |= {f"decoder.{k}": t for k, t in network.decoder.items()}
    for tensor in tensors.values():
        tensor.requires_grad_(True)
    bound, _ = network.bound(batch_of(matrix), torch.from_numpy(noise))
    bound.sum().backward()

    weights = {name: tensor.detach().numpy().copy() for name, tensor in tensors.items()}
    dense, step = matrix.toarray(), 1e-6
    for name, tensor in tensors.items():
        numeric = np.empty(tensor.shape)
        for at in np.ndindex(*tensor.shape):
            sides = []
            for sign in (1, -1):
                moved = {k: a.copy() for k, a in weights.items()}
                moved[name][at] += sign * step
                sides.append(plain_bounds(dense, noise, moved, activation, 2).sum())
            numeric[at] = (sides[0] - sides[1]) / (2 * step)
        np.testing.assert_allclose(
            tensor.grad.numpy(), numeric, rtol=1e-5, atol=1e-6, err_msg=name
        )


def test_log_likelihood_equals_scipys():
    matrix, network = tiny(3)
    points = np.random.default_rng(3).standard_normal((6, 4, 3))
    found = network.log_likelihood(batch_of(matrix), torch.from_numpy(points))
    weights = arrays(network)
    logits = points @ weights["decoder.loadings"].T + weights["decoder.bias"]
    expected = np.einsum("dv,drv->dr", matrix.toarray(), log_softmax(logits, axis=-1))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-10)


def test_bound_converges_to_quadrature_and_lies_under_the_evidence():
    matrix, network = tiny(1)
    x, weights = matrix.toarray(), arrays(network)
    draws = torch.from_numpy(np.random.default_rng(4).standard_normal((6, 2000, 1)))
    batch = batch_of(matrix)
    bound, _ = network.bound(batch, draws)
    points = network.encode(batch).points(draws)
    errors = network.log_likelihood(batch, points).std(dim=1) / np.sqrt(2000)

    def log_theta(h):
        logits = h[:, None] * weights["decoder.loadings"][:, 0]
        return log_softmax(logits + weights["decoder.bias"], axis=1)

    mean, log_std = (a[:, 0] for a in plain_encode(x, weights, "tanh", 2))
    nodes, mass = np.polynomial.hermite_e.hermegauss(60)
    mass = mass / mass.sum()
    line = np.linspace(-9, 9, 4001)
    log_prior = -0.5 * line**2 - 0.5 * np.log(2 * np.pi) + np.log(line[1] - line[0])
    evidence = logsumexp(x @ log_theta(line).T + log_prior, axis=1)
    for d in range(len(x)):
        std = np.exp(log_std[d])
        likelihood = mass @ (log_theta(mean[d] + std * nodes) @ x[d])
        kl = 0.5 * (std**2 + mean[d] ** 2 - 1) - log_std[d]
        assert abs(float(bound[d]) - (likelihood - kl)) < 5 * float(errors[d])
        assert likelihood - kl < evidence[d]


def test_training_starts_at_the_priors_variance_and_the_unigram():
    bias = torch.log(torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64))
    network = NVDMNetwork.initial(
        bias, n_components=2, hidden_units=4, n_layers=2, activation="relu", seed=0
    )
    q = network.encode(batch_of(sp.csr_matrix([[3.0, 0.0, 9.0], [0.0, 0.0, 0.0]])))
    np.testing.assert_array_equal(q.log_std.numpy(), 0)
    np.testing.assert_array_equal(network.decoder["bias"].numpy(), bias.numpy())
    assert (q.mean[0] != 0).all()


def make_trainer(counts, **changes):
    matrix = sp.csr_matrix(counts, dtype=np.float64)
    network = NVDMNetwork.initial(
        torch.zeros(matrix.shape[1], dtype=torch.float64),
        n_components=2,
        hidden_units=4,
        n_layers=2,
        activation="relu",
        seed=0,
    )
    settings = {"alternate_passes": 2, "learning_rate": 1e-2, "batch_size": 16}
    settings |= {"n_draws": 1, "seed": 0}
    return NVDMTrainer(matrix, network, **(settings | changes))


@pytest.mark.parametrize("half", ["decoder", "encoder"])
def test_a_pass_moves_its_half_alone(corpus, half):
    trainer = make_trainer(corpus.train.counts[:40])
    before = arrays(trainer.network)
    trainer._pass(half, 0)
    for name, after in arrays(trainer.network).items():
        moved = not np.array_equal(before[name], after)
        assert moved == name.startswith(half), name


def test_a_round_is_passes_of_the_decoder_then_of_the_encoder(corpus, monkeypatch):
    seen = []
    original = NVDMTrainer._pass

    def watch(self, half, number):
        seen.append((half, number))
        return original(self, half, number)

    monkeypatch.setattr(NVDMTrainer, "_pass", watch)
    make_trainer(corpus.train.counts[:20], alternate_passes=3).run(1, 0.0)
    halves = ["decoder"] * 3 + ["encoder"] * 3
    assert seen == list(zip(halves, range(6), strict=True))
