"""Learning rates over time and over layers, and which layers learn when."""

from __future__ import annotations

from typing import NamedTuple


def slanted_triangle(
    step: int, n_steps: int, *, cut_fraction: float = 0.1, ratio: float = 32.0
) -> float:
    r"""Part of the highest learning rate at a step: up fast, down slowly.

    With :math:`c = \lfloor f n \rfloor` steps of rise out of :math:`n`, the part is
    :math:`(1 + p (r - 1)) / r`, where :math:`p = t / c` before the cut and
    :math:`p = 1 - (t - c) / (n - c)` after it.

    Parameters
    ----------
    step : int
        From 0 to ``n_steps - 1``.
    n_steps : int
        All steps.
    cut_fraction : float
        Part :math:`f` of the steps in which the rate rises; at least one does.
    ratio : float
        The highest rate divided by the lowest, :math:`r`.

    Examples
    --------
    >>> [slanted_triangle(step, 20, ratio=2.0) for step in (0, 1, 2, 11)]
    [0.5, 0.75, 1.0, 0.75]
    """
    cut = max(1, int(n_steps * cut_fraction))
    rising, falling = step / cut, (step - cut) / max(1, n_steps - cut)
    part = rising if step < cut else 1 - falling
    return (1 + part * (ratio - 1)) / ratio


def discriminative_rates(
    rate: float, n_groups: int, *, factor: float = 2.6
) -> list[float]:
    """Learning rates of groups of layers, lowest first: the last has `rate`.

    Examples
    --------
    >>> discriminative_rates(1.0, 3, factor=2.0)
    [0.25, 0.5, 1.0]
    """
    return [rate / factor**height for height in reversed(range(n_groups))]


class Stage(NamedTuple):
    """Epochs in which the last `n_trained` groups of layers learn."""

    n_trained: int
    n_epochs: int


def unfreezing_stages(n_groups: int, n_epochs: int) -> list[Stage]:
    """Free one more group an epoch, from the last one; all learn in what is left.

    Examples
    --------
    >>> unfreezing_stages(3, 10)
    [Stage(n_trained=1, n_epochs=1), Stage(n_trained=2, n_epochs=1),
     Stage(n_trained=3, n_epochs=8)]
    >>> unfreezing_stages(3, 2)
    [Stage(n_trained=1, n_epochs=1), Stage(n_trained=2, n_epochs=1)]
    """
    alone = min(n_groups - 1, n_epochs)
    stages = [Stage(number, 1) for number in range(1, alone + 1)]
    if n_epochs > alone:
        stages.append(Stage(n_groups, n_epochs - alone))
    return stages
