"""Figures of effects of covariates, and of shares over time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from docsigma._files import atomic_file
from docsigma.metrics.plots import PALETTE, _add_grid, _line, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Curves in one panel that can be told apart.
MOST_CURVES = 8


def plot_effect(effect: Any, path: str | Path | None = None) -> Figure:
    """Draw an :class:`~docsigma.models.effects.Effect`: curves, or points.

    Numbers of the covariate make a curve with a band per word or group, levels a point
    with a bar.
    """
    names = list(dict.fromkeys(row.of for row in effect.rows))
    numbers = all(isinstance(row.value, int | float) for row in effect.rows)
    curves = numbers and len(effect.rows) > 2 * len(names)
    figure = new_figure(6.4, 4.2 if curves else 0.9 + 0.26 * len(effect.rows))
    axes = figure.subplots()
    _add_grid(axes)
    if curves:
        for i, name in enumerate(names[:MOST_CURVES]):
            rows = [row for row in effect.rows if row.of == name]
            x = np.array([row.value for row in rows], dtype=float)
            low, middle, high = (
                np.array([getattr(row, part) for row in rows])
                for part in ("low", "estimate", "high")
            )
            style = _line(i)
            axes.fill_between(x, low, high, color=style["color"], alpha=0.2, lw=0)
            axes.plot(x, middle, label=name, **style)
        axes.axhline(0, color="black", linewidth=0.8)
        axes.set_xlabel(effect.column)
        axes.set_ylabel(f"{effect.unit} against {effect.reference}")
        axes.legend(frameon=False)
    else:
        shown = [f"{row.of}, {_short(row.value)}" for row in effect.rows]
        at = np.arange(len(shown))[::-1]
        middle = np.array([row.estimate for row in effect.rows])
        ends = np.array(
            [(row.estimate - row.low, row.high - row.estimate) for row in effect.rows]
        )
        axes.errorbar(middle, at, xerr=ends.T, fmt="o", ms=4, color=PALETTE[0])
        axes.axvline(0, color="black", linewidth=0.8)
        axes.set_yticks(at, shown)
        axes.set_xlabel(f"{effect.unit} against {effect.reference}")
    axes.set_title(f"Effect of {effect.column}, {100 * effect.level:g} % intervals")
    return _written(figure, path)


def plot_shares(shares: Any, path: str | Path | None = None) -> Figure:
    """Draw shares of groups over time: one panel per group, with a band."""
    n = len(shares.names)
    n_rows = -(-n // 2)
    figure = new_figure(8.0, 1.2 + 1.5 * n_rows)
    panels = figure.subplots(n_rows, min(n, 2), squeeze=False, sharex=True)
    for i, axes in enumerate(panels.ravel()):
        if i >= n:
            axes.set_visible(False)
            continue
        _add_grid(axes)
        low, high = 100 * shares.low[:, i], 100 * shares.high[:, i]
        axes.fill_between(shares.starts, low, high, color=PALETTE[0], alpha=0.2, lw=0)
        axes.plot(shares.starts, 100 * shares.shares[:, i], color=PALETTE[0])
        axes.set_ylim(bottom=0)
        axes.set_title(shares.names[i], fontsize=9, loc="left")
    figure.supylabel("documents of a period, %", fontsize=9)
    return _written(figure, path)


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _written(figure: Figure, path: str | Path | None) -> Figure:
    if path is not None:
        with atomic_file(Path(path)) as temporary:
            figure.savefig(temporary)
    return figure
