from __future__ import annotations

import pytest
import torch

from docsigma.optimizers import Adam, OrthantAdam, pseudo_gradient


def test_adam_takes_the_steps_of_torchs_adam():
    source = torch.Generator().manual_seed(0)
    ours = torch.randn(5, 3, generator=source, dtype=torch.float64)
    theirs = ours.clone().requires_grad_()
    optimizer = Adam(ours, 0.05)
    reference = torch.optim.Adam([theirs], lr=0.05, maximize=True)
    for _ in range(20):
        gradient = torch.randn(5, 3, generator=source, dtype=torch.float64)
        optimizer.ascend(ours, gradient)
        theirs.grad = gradient
        reference.step()
    torch.testing.assert_close(ours, theirs.detach(), rtol=0, atol=1e-12)


def test_a_zero_stays_until_the_pseudo_gradient_leaves_the_dead_zone():
    parameter = torch.tensor([0.001, 0.001], dtype=torch.float64)
    optimizer = OrthantAdam(parameter, 0.01, l1=1.0)
    for _ in range(5):
        optimizer.ascend(parameter, torch.tensor([0.0, 1.5], dtype=torch.float64))
    assert parameter[0] == 0.0
    assert parameter[1] > 0.0
    for size in (0.99, -0.99, 1.0, -1.0):
        for _ in range(50):
            gradient = torch.tensor([size, 1.5], dtype=torch.float64)
            optimizer.ascend(parameter, gradient)
            assert parameter[0] == 0.0
    optimizer.ascend(parameter, torch.tensor([-1.2, 1.5], dtype=torch.float64))
    assert parameter[0] < 0.0


def test_momentum_does_not_carry_a_coordinate_over_zero():
    parameter = torch.tensor([0.05], dtype=torch.float64)
    optimizer = OrthantAdam(parameter, 0.01, l1=1.0)
    signs = set()
    for _ in range(200):
        optimizer.ascend(parameter, torch.tensor([0.2], dtype=torch.float64))
        signs.add(float(parameter.sign()))
    assert signs == {1.0, 0.0}
    assert float(parameter) == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_orthant_adam_finds_the_support_of_the_lasso(seed):
    # max -1/2 (t - a)^2 - l1 |t| has the solution softshrink(a, l1).
    source = torch.Generator().manual_seed(seed)
    target = 2 * torch.randn(200, generator=source, dtype=torch.float64)
    parameter = 1e-3 * torch.randn(200, generator=source, dtype=torch.float64)
    optimizer = OrthantAdam(parameter, 0.02, l1=1.0)
    for _ in range(4000):
        optimizer.ascend(parameter, target - parameter)
    solution = torch.nn.functional.softshrink(target, 1.0)
    clear = (target.abs() - 1.0).abs() > 0.01
    assert ((parameter == 0) == (solution == 0))[clear].all()
    torch.testing.assert_close(parameter, solution, rtol=0, atol=5e-3)


def test_pseudo_gradient_is_the_papers_sub_gradient():
    at = torch.tensor([0.0, 0.0, 0.0, 2.0, -2.0], dtype=torch.float64)
    gradient = torch.tensor([-3.0, 3.0, 0.5, 0.5, 0.5], dtype=torch.float64)
    got = pseudo_gradient(at, gradient, 1.0).tolist()
    assert got == [-2.0, 2.0, 0.0, -0.5, 1.5]
