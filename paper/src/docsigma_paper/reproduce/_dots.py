"""Tables as plots: a line per row, a dot per value, hollow for the paper's."""

from __future__ import annotations

import itertools
import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from docsigma.metrics import plots

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure


@dataclass
class Dots:
    """One kind of value in a panel.

    Attributes
    ----------
    label : str
        For the legend.
    values : dict of lists of float
        Over seeds, by the name of the line.
    hollow : bool
        Whether the dots are rings, for values that are not ours.
    """

    label: str
    values: dict[str, list[float]] = field(default_factory=dict)
    hollow: bool = False

    def add(self, line: str, values: Sequence[float]) -> None:
        """Add values to a line."""
        self.values.setdefault(line, []).extend(values)


def draw_dots(panels: dict[str, list[Dots]]) -> Figure:
    """Draw panels side by side that share their lines.

    Parameters
    ----------
    panels : dict of lists of Dots
        By the label of their axis.

    Returns
    -------
    matplotlib.figure.Figure
        Each dot a mean, with a bar from the least to the greatest value. A label has
        one colour in all panels.
    """
    lines = list(
        dict.fromkeys(
            line for kinds in panels.values() for k in kinds for line in k.values
        )
    )
    labels = dict.fromkeys(kind.label for kinds in panels.values() for kind in kinds)
    colours = dict(zip(labels, itertools.cycle(plots.PALETTE), strict=False))
    handles: dict[str, Any] = {}
    height = 1.3 + 0.23 * len(lines)
    drawn, axes_list = plots.blank(3.2 + 3.1 * len(panels), height, len(panels))
    for number, (axes, (name, kinds)) in enumerate(
        zip(axes_list, panels.items(), strict=True)
    ):
        for kind in kinds:
            dots = _draw(axes, lines, kind, colours[kind.label])
            handles.setdefault(kind.label, dots)
        axes.set_xlabel(name)
        axes.set_yticks(range(len(lines)), lines if number == 0 else [""] * len(lines))
        axes.tick_params(axis="y", labelsize=8, length=0)
        axes.set_ylim(len(lines) - 0.4, -0.6)
        axes.grid(axis="y", linewidth=0.5, alpha=0.4)
    if len(handles) > 1:
        drawn.legend(
            handles.values(),
            handles.keys(),
            loc="outside upper center",
            ncols=4,
            fontsize=8,
        )
    return drawn


def _draw(axes: Any, lines: list[str], kind: Dots, colour: str) -> Any:
    places = [lines.index(line) for line in kind.values]
    for place, values in zip(places, kind.values.values(), strict=True):
        axes.plot([min(values), max(values)], [place] * 2, color=colour, linewidth=1)
    (dots,) = axes.plot(
        [statistics.fmean(values) for values in kind.values.values()],
        places,
        "o",
        color=colour,
        markersize=5,
        markerfacecolor="none" if kind.hollow else colour,
    )
    return dots
