from __future__ import annotations

import io
import sys

import numpy as np
import pytest

from docsigma.exceptions import InputError
from docsigma.metrics import plots

pytest.importorskip("matplotlib")


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(5, size=200)
    scores = rng.normal(size=(200, 5)) + 2 * np.eye(5)[y]
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return p, y


def texts(figure):
    """What is written in the figure, after it was really drawn."""
    from matplotlib.text import Text

    figure.savefig(io.BytesIO(), format="png")
    return {text.get_text() for text in figure.findobj(Text)}


def test_reliability(data):
    figure = plots.plot_reliability(*data)
    written = texts(figure)
    gaps = {"confidence above it", "confidence below it"}
    assert {"Reliability", "accuracy", "share of\ndocuments"} | gaps <= written
    assert any(text.startswith("ECE = 0.") for text in written)


def test_risk_coverage(data):
    p, y = data
    assert any(
        text.startswith("(area") for text in texts(plots.plot_risk_coverage(p, y))
    )
    figure = plots.plot_risk_coverage({"GLC": p, "GLCU": p[:, ::-1]}, y)
    assert any(text.startswith("GLCU (area") for text in texts(figure))


@pytest.mark.parametrize("n_classes", [2, 40])
def test_confusion_matrix_shows_every_class(n_classes):
    rng = np.random.default_rng(1)
    names = [f"class {index}" for index in range(n_classes)]
    p = rng.dirichlet(np.ones(n_classes), size=300)
    y = np.array(names)[rng.integers(n_classes, size=300)]
    figure = plots.plot_confusion_matrix(p, y, classes=names, max_classes=40)
    assert set(names) <= texts(figure)
    # Names on both axes keep a line's height apart, and stay inside of the figure.
    renderer = figure.canvas.get_renderer()
    axes = figure.axes[0]
    boxes = [label.get_window_extent(renderer) for label in axes.get_yticklabels()]
    tops = np.sort([box.y0 for box in boxes])
    assert np.diff(tops).min() >= max(box.height for box in boxes) * 0.9
    across = [label.get_window_extent(renderer) for label in axes.get_xticklabels()]
    assert min(box.x0 for box in boxes) >= 0
    assert min(box.y0 for box in across) >= 0


def test_of_many_classes_the_confused_are_drawn_side_by_side():
    # Classes 10 and 60, and 20 and 50, are confused; the others never.
    names = [f"class {index}" for index in range(77)]
    y = np.repeat(np.arange(77), 4)
    guesses = y.copy()
    for one, other in ((10, 60), (20, 50)):
        guesses[np.flatnonzero(y == one)[:3]] = other
    p = np.eye(77)[guesses] * 0.9 + 0.1 / 77
    p /= p.sum(axis=1, keepdims=True)
    figure = plots.plot_confusion_matrix(
        p, np.array(names)[y], classes=names, max_classes=4
    )
    drawn = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert {frozenset(drawn[:2]), frozenset(drawn[2:])} == {
        frozenset({"class 10", "class 60"}),
        frozenset({"class 20", "class 50"}),
    }
    assert any("4 of 77 classes" in text for text in texts(figure))


def test_long_names_are_cut(data):
    p, y = data
    names = [f"{index} {'x' * 50}" for index in range(5)]
    written = texts(plots.plot_confusion_matrix(p, np.array(names)[y], classes=names))
    assert max(len(text) for text in written) <= 28


def test_cross_entropy_by_length(data):
    p, y = data
    lengths = np.random.default_rng(2).integers(0, 500, size=200)
    figure = plots.plot_cross_entropy_by_length({"LR": np.log(p)}, y, lengths)
    nats = -np.log(p[np.arange(200), y]).mean()
    assert f"LR (mean {nats:.2f})" in texts(figure)
    texts(plots.plot_cross_entropy_by_length(np.log(p), y, np.full(200, 7)))


@pytest.mark.parametrize(
    ("lengths", "n_bins", "sentence"),
    [
        ([1.0], 10, r"`n_tokens` has the shape \(1,\), but `labels` has \(200,\)"),
        (np.full(200, -1), 10, "`n_tokens` must be finite and not negative"),
        (np.ones(200), 0, "`n_bins` must be at least 1, got 0"),
    ],
)
def test_bad_lengths(data, lengths, n_bins, sentence):
    p, y = data
    with pytest.raises(InputError, match=sentence):
        plots.plot_cross_entropy_by_length(np.log(p), y, lengths, n_bins)


def test_no_global_state(data):
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    plots.plot_reliability(*data)
    assert plt.get_fignums() == before


def test_without_matplotlib(data, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(InputError, match=r"pip install docsigma\[plots\]"):
        plots.plot_reliability(*data)
