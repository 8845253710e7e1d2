from __future__ import annotations

import pytest
import torch
from torch.nn.functional import softshrink

from docsigma.optimizers import ProximalAdam


def normals(*shape, seed=0):
    source = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=source, dtype=torch.float64)


@pytest.mark.parametrize("curved", [False, True])
def test_a_quadratic_with_l1_and_l2_ends_at_its_closed_form_with_its_zeros(curved):
    # max -c/2 (t - a)^2 - l1 |t| - l2/2 t^2: softshrink(c a, l1) / (c + l2).
    target = 2 * normals(40, 5)
    weight = (
        0.5 + torch.rand(40, 1, generator=torch.Generator().manual_seed(1)).double()
    )
    at = normals(40, 5, seed=2)
    l1, l2 = 1.0, 0.3
    optimizer = ProximalAdam(at, l1=l1, l2=l2)
    curvature = (weight + l2, torch.ones(5).double()) if curved else None
    n_steps = 3000
    for step in range(n_steps):
        rate = 0.1 * (1 - step / n_steps)
        optimizer.ascend(at, weight * (target - at), rate, curvature)
    solution = softshrink(weight * target, 1.0) / (weight + l2)
    torch.testing.assert_close(at, solution, rtol=0, atol=1e-3)
    clear = ((weight * target).abs() - l1).abs() > 0.01
    assert ((at == 0) == (solution == 0))[clear].all()
    assert (at == 0).double().mean() > 0.2


def test_without_penalty_its_steps_are_torchs_adam():
    at = normals(7, 3)
    theirs = at.clone().requires_grad_()
    optimizer = ProximalAdam(at, betas=(0.9, 0.99))
    reference = torch.optim.Adam([theirs], lr=0.05, betas=(0.9, 0.99), maximize=True)
    for step in range(30):
        gradient = normals(7, 3, seed=step)
        theirs.grad = gradient.clone()
        optimizer.ascend(at, gradient, 0.05)
        reference.step()
    torch.testing.assert_close(at, theirs.detach(), rtol=0, atol=1e-9)


@pytest.mark.parametrize("piece", [1, 6, 50])
def test_pieces_do_not_change_the_result(piece):
    results = []
    for size in (2**18, piece):
        at = normals(23, 3)
        optimizer = ProximalAdam(at, l1=0.1, l2=0.1, piece=size)
        curvature = (normals(23, 1, seed=5).abs(), normals(3, seed=6).abs())
        row_rates = 1 + normals(23, 1, seed=7).abs()
        for step in range(10):
            gradient = normals(23, 3, seed=step)
            optimizer.ascend(at, gradient, 0.02, curvature, row_rates)
        results.append(at)
    assert torch.equal(*results)


def test_no_step_is_longer_than_a_newton_step():
    rows, columns = normals(30, 1).abs() + 0.1, normals(4, seed=1).abs() + 0.1
    gradient = normals(30, 4, seed=2) * torch.logspace(-4, 4, 30).double()[:, None]
    at = torch.zeros(30, 4).double()
    optimizer = ProximalAdam(at)
    for _ in range(20):
        before = at.clone()
        optimizer.ascend(at, gradient.clone(), 1e9, (rows, columns))
        step = (at - before).abs()
        newton = gradient.abs() / (rows * columns)
        assert (step <= newton * (1 + 1e-9)).all()
        # Adam's own step is far longer here: the Newton step is what is taken.
        torch.testing.assert_close(step, newton, rtol=1e-3, atol=0)


def test_row_rates_lengthens_adams_steps_only():
    row_rates = torch.tensor([[1.0], [3.0]]).double()
    at = torch.zeros(2, 1).double()
    ProximalAdam(at).ascend(at, torch.ones(2, 1).double(), 0.01, None, row_rates)
    torch.testing.assert_close(at, 0.01 * row_rates, rtol=1e-6, atol=0)


def test_a_zero_stays_while_the_gradient_is_in_the_dead_zone():
    at = torch.tensor([[0.0, 0.001]]).double()
    optimizer = ProximalAdam(at, l1=1.0)
    for step in range(100):
        size = 0.99 * (-1) ** step
        optimizer.ascend(at, torch.tensor([[size, 0.5]]).double(), 0.02)
        assert at[0, 0] == 0
    assert at[0, 1] == 0


def test_rows_beyond_the_gradient_stay():
    at = normals(5, 2)
    before = at.clone()
    optimizer = ProximalAdam(at)
    optimizer.ascend(at, normals(3, 2, seed=1), 0.1)
    assert torch.equal(at[3:], before[3:])
    assert not torch.equal(at[:3], before[:3])


def test_a_restored_state_goes_on_bit_for_bit():
    def steps(optimizer, at, seeds):
        for seed in seeds:
            optimizer.ascend(at, normals(5, 2, seed=seed), 0.1)

    whole = normals(5, 2)
    parts = whole.clone()
    optimizer = ProximalAdam(whole, l1=0.1)
    steps(optimizer, whole, range(8))
    first = ProximalAdam(parts, l1=0.1)
    steps(first, parts, range(5))
    second = ProximalAdam(parts, l1=0.1)
    second.restore({k: v.clone() for k, v in first.state().items()})
    steps(second, parts, range(5, 8))
    assert torch.equal(parts, whole)
