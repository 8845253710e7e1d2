"""Tables as pictures."""

from __future__ import annotations

import pytest

from docsigma_paper.reproduce._dots import Dots, draw_dots

pytest.importorskip("matplotlib")


def test_a_label_has_one_colour_in_all_panels_and_one_place_in_the_legend():
    panels = {"a": [Dots("x", {"one": [1.0, 3.0]}), Dots("y", {"two": [2.0]})]}
    panels["b"] = [Dots("y", {"one": [5.0]}, hollow=True), Dots("z", {"two": [4.0]})]
    drawn = draw_dots(panels)
    dots = [
        [line for line in axes.lines if line.get_marker() == "o"] for axes in drawn.axes
    ]
    colours = [[line.get_color() for line in panel] for panel in dots]
    assert colours[0][1] == colours[1][0]
    assert len({*colours[0], *colours[1]}) == 3
    assert [list(line.get_xdata()) for line in dots[0]] == [[2.0], [2.0]]
    assert dots[1][0].get_markerfacecolor() == "none"
    (legend,) = drawn.legends
    assert [text.get_text() for text in legend.get_texts()] == ["x", "y", "z"]
