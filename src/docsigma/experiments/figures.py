"""Figures of a training and of documents as Gaussians."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from docsigma._files import atomic_file
from docsigma.exceptions import InputError
from docsigma.metrics.plots import PALETTE as PALETTE  # for other figures
from docsigma.metrics.plots import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from docsigma.posterior import GaussianPosterior


def blank(
    width: float = 6.4, height: float = 4.2, n_panels: int | None = None
) -> tuple[Figure, Any]:
    """Return an empty figure and its axes, or a list of axes side by side."""
    figure = new_figure(width, height)
    panels = figure.subplots(1, n_panels or 1, squeeze=False)[0]
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
    return figure, panels[0] if n_panels is None else list(panels)


def save_figures(figures: Mapping[str, Figure], folder: Path) -> list[str]:
    """Write figures to files by name, each whole or not at all; return the paths."""
    for name, figure in figures.items():
        with atomic_file(folder / name) as temporary:
            figure.savefig(temporary)
    return [str(folder / name) for name in figures]


def bound_over_time(history: Sequence[dict[str, Any]], n_tokens: int) -> Figure:
    """Draw the bound per token, and the KL, over the seconds of a training."""
    figure, axes = blank()
    seconds = [row["seconds"] for row in history]
    bound = np.array([row["bound"] for row in history]) / n_tokens
    axes.plot(seconds, bound, color=PALETTE[0])
    axes.set_xlabel("seconds")
    axes.set_ylabel("bound per token (nats)", color=PALETTE[0])
    # The first passes fall far below the rest and would flatten the curve.
    axes.set_ylim(np.quantile(bound, 0.03), bound.max() + 0.02 * np.ptp(bound))
    twin = axes.twinx()
    twin.spines["top"].set_visible(False)
    twin.plot(seconds, [row["kl"] for row in history], color=PALETTE[3], linestyle="--")
    twin.set_ylabel("KL to the prior per document (nats)", color=PALETTE[3])
    twin.set_ylim(bottom=0)
    axes.set_title(f"Training: {len(history)} passes")
    return figure


def variance_against_length(
    posterior: GaussianPosterior, n_tokens: ArrayLike, prior_variance: float
) -> Figure:
    """Draw total variance against document length: the paper's uncertainty figure."""
    figure, axes = blank()
    dots = {"s": 7, "alpha": 0.35, "linewidths": 0, "color": PALETTE[0]}
    axes.scatter(np.maximum(n_tokens, 1), posterior.total_variance, **dots)
    prior = posterior.n_components * prior_variance
    axes.axhline(prior, color=PALETTE[3], linestyle="--", linewidth=1)
    axes.annotate(
        "prior: nothing known",
        (1, prior),
        xycoords=("axes fraction", "data"),
        xytext=(-4, -4),
        textcoords="offset points",
        color=PALETTE[3],
        ha="right",
        va="top",
    )
    axes.set_xscale("log")
    axes.set_ylim(bottom=0, top=1.06 * prior)
    axes.set_xlabel("words in the document")
    axes.set_ylabel("total variance (trace of the covariance)")
    axes.set_title("Short documents are uncertain")
    return figure


def document_map(
    posterior: GaussianPosterior,
    labels: Sequence[str],
    *,
    n_labels: int = 7,
    n_ellipses: int = 120,
    random_state: int = 0,
) -> Figure:
    """Draw documents on a plane, each with its one-sigma ellipse.

    The plane is the one that separates the most frequent labels best (linear
    discriminants of the means), so the ellipses are exact: a linear map of a
    Gaussian is a Gaussian.

    Only the `n_labels` most frequent labels are drawn, and `n_ellipses` of their
    documents, drawn by `random_state`, get an ellipse: more would hide each other.
    """
    from matplotlib.patches import Ellipse
    from sklearn.decomposition import PCA
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    names, counts = np.unique(np.asarray(labels), return_counts=True)
    chosen = names[np.argsort(-counts, kind="stable")[: min(n_labels, len(PALETTE))]]
    rows = np.flatnonzero(np.isin(labels, chosen))
    means = np.asarray(posterior.mean[rows], dtype=np.float64)
    kinds = np.asarray(labels)[rows]
    if len(chosen) > 2:
        plane = LinearDiscriminantAnalysis("eigen", shrinkage=0.1, n_components=2)
        basis = np.linalg.qr(plane.fit(means, kinds).scalings_[:, :2])[0]
    else:
        basis = PCA(min(2, means.shape[1])).fit(means).components_.T
    if basis.shape[1] < 2:
        raise InputError(
            f"a map needs two dimensions, the posterior has {posterior.n_components}"
        )
    points = (means - means.mean(axis=0)) @ basis
    figure, axes = blank(7.2, 5.4)
    colours = dict(zip(chosen, PALETTE, strict=False))
    for name in chosen:
        inside = kinds == name
        axes.scatter(*points[inside].T, s=6, color=colours[name], label=name)
    drawn = np.random.default_rng(random_state).permutation(len(rows))[:n_ellipses]
    for row in drawn:
        spread = posterior.variance[rows[row]][:, None] * basis
        values, vectors = np.linalg.eigh(basis.T @ spread)
        angle = np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1]))
        width, height = 2 * np.sqrt(values[::-1])
        ellipse = Ellipse(points[row], width, height, angle=angle)
        ellipse.set(color=colours[kinds[row]], alpha=0.13, linewidth=0.8)
        axes.add_patch(ellipse)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xlabel("first discriminant of the means")
    axes.set_ylabel("second discriminant")
    axes.set_title("Documents with their one-sigma ellipses")
    axes.legend(markerscale=2.5, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def label_curves(report: Mapping[str, Any]) -> Figure:
    """Draw accuracy over labelled documents per order of labelling.

    A report has `n_labels`, and per order in `accuracy` one list of them per draw;
    draws are thin lines, their mean a thick one.
    """
    figure, axes = blank()
    axes.set_ylim(0, 100)
    for place, (order, draws) in enumerate(report["accuracy"].items()):
        color = PALETTE[3 * place]
        for one in draws:
            axes.plot(report["n_labels"], one, color=color, alpha=0.25, linewidth=1)
        mean = np.mean(draws, axis=0)
        label = f"{order} order"
        axes.plot(report["n_labels"], mean, color=color, marker="o", label=label)
    axes.set_xticks(report["n_labels"])
    axes.set_xlabel("labelled documents")
    axes.set_ylabel("accuracy on test documents (%)")
    axes.set_title(f"Labels on {report['corpus']}, {len(draws)} draws each")
    axes.legend(frameon=False, loc="lower right")
    return figure
