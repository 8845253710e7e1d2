"""Figures of training, documents and classifiers; matplotlib is loaded when needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import ConfusionMatrixDisplay, confusion_matrix

from docsigma._files import atomic_file
from docsigma.exceptions import InputError
from docsigma.metrics._probabilities import check_probabilities
from docsigma.metrics.calibration import reliability_curve
from docsigma.metrics.selective import risk_coverage_curve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from docsigma.metrics.variances import VarianceCalibration
    from docsigma.posterior import GaussianPosterior


# Okabe and Ito's palette, for all kinds of colour vision; line styles differ as well.
PALETTE = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#56B4E9",
    "#B8A800",
    "#000000",
)
_STYLES = ("-", "--", "-.", ":")
_GREY = "#8c8c8c"


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure that pyplot does not manage; sizes are in inches."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError(
            "figures need matplotlib: pip install docsigma[plots]"
        ) from error
    figure = Figure(figsize=(width, height), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def blank(
    width: float = 6.4, height: float = 4.2, n_panels: int | None = None
) -> tuple[Figure, Any]:
    """Return an empty figure and its axes, or a list of axes side by side."""
    figure = new_figure(width, height)
    panels = figure.subplots(1, n_panels or 1, squeeze=False)[0]
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
    return figure, panels[0] if n_panels is None else list(panels)


def check_image(path: Path) -> None:
    """Refuse a file name that has not the suffix of an image."""
    known = [f".{kind}" for kind in new_figure(1, 1).canvas.get_supported_filetypes()]
    if path.suffix.lower() not in known:
        raise InputError(
            f"cannot write {path}: its suffix must be one of {', '.join(known)}"
        )


def save_figures(figures: Mapping[str, Figure], folder: Path) -> list[str]:
    """Write figures to `folder` under their names; return the paths."""
    for name, figure in figures.items():
        with atomic_file(folder / name) as temporary:
            figure.savefig(temporary)
    return [str(folder / name) for name in figures]


def _add_grid(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, color="#e4e4e4", linewidth=0.8)
    axes.set_axisbelow(True)


def _with_grid(title: str) -> tuple[Figure, Any]:
    """Return a figure and its axes, with a grid and a title."""
    figure, axes = blank(5.6, 4.2)
    axes.set_title(title)
    _add_grid(axes)
    return figure, axes


def _line(index: int) -> dict[str, Any]:
    """Return colour and style of line `index`."""
    colour, style = PALETTE[index % len(PALETTE)], _STYLES[index % len(_STYLES)]
    return {"color": colour, "linestyle": style}


def plot_reliability(
    probabilities: Any, labels: Any, n_bins: int = 15, *, classes: Any = None
) -> Figure:
    """Draw accuracy against confidence, above a histogram of the confidences.

    ``figure.savefig("reliability.png")`` saves it, as all figures here.

    Parameters
    ----------
    probabilities, labels, classes
        As for :func:`~docsigma.metrics.classification.accuracy`.
    n_bins : int
        Bins of equal width.
    """
    curve = reliability_curve(probabilities, labels, n_bins, classes=classes)
    figure = new_figure(5.0, 5.8)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    used = curve.counts > 0
    left, width = curve.edges[:-1], np.diff(curve.edges)
    bars: dict[str, Any] = {"x": left[used], "width": width[used], "align": "edge"}
    accuracy, gap = curve.accuracy[used], (curve.confidence - curve.accuracy)[used]
    style = {"color": PALETTE[0], "edgecolor": "white", "label": "accuracy"}
    upper.bar(height=accuracy, **bars, **style)
    for name, colour, some in (
        ("confidence above it", PALETTE[3], np.maximum(gap, 0)),
        ("confidence below it", PALETTE[7], np.minimum(gap, 0)),
    ):
        style = {"color": colour, "edgecolor": colour, "label": name}
        upper.bar(height=some, bottom=accuracy, **bars, **style, alpha=0.3, linewidth=0)
    upper.plot([0, 1], [0, 1], "--", color=_GREY, label="perfectly calibrated")
    upper.set(ylabel="accuracy", xlim=(0, 1), ylim=(0, 1))
    upper.set_title("Reliability")
    error = curve.expected_calibration_error
    upper.legend(
        loc="upper left", frameon=False, title=f"ECE = {error:.3f}", alignment="left"
    )
    share = curve.counts / curve.counts.sum()
    lower.bar(left, share, width, align="edge", color=_GREY, edgecolor="white")
    lower.set(xlabel="confidence (largest probability)", ylabel="share of\ndocuments")
    for axes in (upper, lower):
        _add_grid(axes)
    figure.align_ylabels()
    return figure


def plot_risk_coverage(
    probabilities: Mapping[str, Any] | Any,
    labels: Any,
    *,
    classes: Any = None,
) -> Figure:
    """Draw the error rate against the share of documents that are answered.

    Parameters
    ----------
    probabilities : array-like of shape (n_documents, n_classes) or mapping
        Predicted probabilities, or those of several classifiers by name.
    labels, classes
        As for :func:`~docsigma.metrics.classification.accuracy`.
    """
    named = probabilities if hasattr(probabilities, "items") else {"": probabilities}
    figure, axes = _with_grid("Risk and coverage")
    for index, (name, values) in enumerate(named.items()):
        curve = risk_coverage_curve(values, labels, classes=classes)
        label = f"{name} (area {curve.area:.3f})".strip()
        line = {**_line(index), "linewidth": 1.8, "label": label}
        axes.plot(curve.coverage, curve.risk, **line)
    axes.set(xlim=(0, 1), xlabel="coverage (share of documents answered)")
    axes.set(ylim=(0, None), ylabel="error rate among them")
    axes.legend(loc="upper left", frameon=False)
    return figure


def plot_confusion_matrix(
    probabilities: Any, labels: Any, *, classes: Any = None, max_classes: int = 25
) -> Figure:
    """Draw the confusion matrix; a row holds per cents of a true class.

    Of more than `max_classes` classes, those that are confused most are drawn, each
    beside those that it is confused with, and a row need not sum to 100%.

    Parameters
    ----------
    probabilities, labels, classes
        As for :func:`~docsigma.metrics.classification.accuracy`.
    max_classes : int
        Most classes to draw.
    """
    if max_classes < 2:
        raise InputError(f"`max_classes` must be at least 2, got {max_classes}")
    values, codes = check_probabilities(probabilities, labels, classes)
    n = values.shape[1]
    names = [str(name) for name in (range(n) if classes is None else classes)]
    names = [name if len(name) <= 28 else name[:27] + "…" for name in names]
    guesses = values.argmax(axis=1)
    percent = 100 * confusion_matrix(codes, guesses, labels=range(n), normalize="true")
    title = "Confusion matrix"
    if n > max_classes:
        chosen = _most_confused(confusion_matrix(codes, guesses), max_classes)
        percent, names = percent[np.ix_(chosen, chosen)], [names[i] for i in chosen]
        title += f": the {len(chosen)} of {n} classes that are confused most"
        n = len(chosen)
    # The figure grows with the number of classes and the longest name.
    names_inches = 0.075 * max(len(name) for name in names)
    side = max(2.6, 0.29 * n)
    figure = new_figure(side + names_inches + 1.7, side + names_inches + 1.0)
    axes = figure.subplots()
    drawn = ConfusionMatrixDisplay(percent, display_labels=names).plot(
        ax=axes,
        cmap="Blues",
        values_format=".0f",
        xticks_rotation="vertical",
        colorbar=False,
        im_kw={"vmin": 0, "vmax": 100},
        text_kw={"fontsize": 7},
    )
    for text, value in zip(drawn.text_.flat, percent.flat, strict=True):
        text.set_visible(value >= 0.5)
    axes.tick_params(labelsize=8, length=0)
    axes.spines[:].set_visible(False)
    axes.set(xlabel="predicted class", ylabel="true class")
    axes.set_title(title, fontsize=10)
    bar = figure.colorbar(drawn.im_, ax=axes, shrink=0.6, aspect=25, pad=0.02)
    bar.set_label("% of the true class")
    return figure


def _most_confused(counts: Any, n_classes: int) -> list[int]:
    """Return classes of the most frequent errors, confused ones side by side."""
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    errors = counts + counts.T
    np.fill_diagonal(errors, 0)
    rows, columns = np.triu_indices(len(errors), 1)
    order = np.argsort(-errors[rows, columns], kind="stable")
    pairs = np.column_stack([rows, columns])[order].ravel().tolist()
    chosen = sorted(list(dict.fromkeys(pairs))[:n_classes])
    apart = 1 / (1 + errors[np.ix_(chosen, chosen)].astype(np.float64))
    np.fill_diagonal(apart, 0)
    tree = linkage(squareform(apart), "average", optimal_ordering=True)
    return [chosen[leaf] for leaf in leaves_list(tree)]


def plot_cross_entropy_by_length(
    log_probabilities: Mapping[str, Any] | Any,
    labels: Any,
    n_tokens: Any,
    n_bins: int = 10,
    *,
    classes: Any = None,
) -> Figure:
    """Draw cross-entropy against document length, in bins of equally many documents.

    Whiskers are twice the standard error of the mean.

    Parameters
    ----------
    log_probabilities : array-like of shape (n_documents, n_classes) or mapping
        Predicted log probabilities, or those of several classifiers by name.
    labels, classes
        As for :func:`~docsigma.metrics.classification.accuracy`.
    n_tokens : array-like of shape (n_documents,)
        Lengths of the documents, not negative.
    n_bins : int
        Number of bins.
    """
    several = hasattr(log_probabilities, "items")
    named = log_probabilities if several else {"": log_probabilities}
    lengths = np.asarray(n_tokens, dtype=np.float64)
    if lengths.shape != np.asarray(labels).shape:
        raise InputError(
            f"`n_tokens` has the shape {lengths.shape}, but `labels` has "
            f"{np.asarray(labels).shape}"
        )
    if n_bins < 1:
        raise InputError(f"`n_bins` must be at least 1, got {n_bins}")
    if not (np.isfinite(lengths) & (lengths >= 0)).all():
        raise InputError("`n_tokens` must be finite and not negative")
    edges = np.unique(np.quantile(lengths, np.linspace(0, 1, n_bins + 1)))
    bins = np.searchsorted(edges[1:-1], lengths, side="right")
    used = np.unique(bins)
    figure, axes = _with_grid("Cross-entropy by document length")
    from matplotlib.ticker import LogLocator

    for index, (name, values) in enumerate(named.items()):
        values = np.asarray(values, dtype=np.float64)
        _, codes = check_probabilities(np.exp(values), labels, classes)
        lowest = np.log(np.finfo(np.float64).tiny)
        nats = -np.maximum(values[np.arange(len(codes)), codes], lowest)
        groups = [nats[bins == one] for one in used]
        # Shifted sideways, so that whiskers do not hide each other.
        shift = 1.025 ** (index - (len(named) - 1) / 2)
        label = f"{name} (mean {nats.mean():.2f})".strip()
        line = {**_line(index), "marker": "o", "markersize": 4, "label": label}
        axes.errorbar(
            [shift * max(np.median(lengths[bins == one]), 1) for one in used],
            [group.mean() for group in groups],
            [2 * group.std() / len(group) ** 0.5 for group in groups],
            capsize=2,
            **line,
        )
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.xaxis.set_minor_formatter("")
    axes.set(xlabel="tokens in the document", ylabel="cross-entropy (nats)")
    axes.set(ylim=(0, None))
    axes.legend(frameon=False, title="whiskers: two standard errors")
    return figure


def bound_over_time(history: Sequence[dict[str, Any]], n_tokens: int) -> Figure:
    """Draw the bound per token, and the KL, over the seconds of a training."""
    figure, axes = blank()
    seconds = [row["seconds"] for row in history]
    bound = np.array([row["bound"] for row in history]) / n_tokens
    axes.plot(seconds, bound, color=PALETTE[0])
    axes.set(xlabel="seconds", title=f"Training: {len(history)} passes")
    axes.set_ylabel("bound per token (nats)", color=PALETTE[0])
    # The bounds of the first passes are far lower and would flatten the curve.
    axes.set_ylim(np.quantile(bound, 0.03), bound.max() + 0.02 * np.ptp(bound))
    twin = axes.twinx()
    twin.spines["top"].set_visible(False)
    twin.plot(seconds, [row["kl"] for row in history], color=PALETTE[3], linestyle="--")
    twin.set_ylabel("KL to the prior per document (nats)", color=PALETTE[3])
    twin.set_ylim(bottom=0)
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
    axes.set(xscale="log", xlabel="words in the document", ylim=(0, 1.06 * prior))
    axes.set_ylabel("total variance (trace of the covariance)")
    axes.set_title("Short documents are uncertain")
    return figure


def plot_variance_ratios(calibration: VarianceCalibration) -> Figure:
    """Draw the ratio for each part, its interval, and a dot for each dimension."""
    parts = calibration.parts
    figure, axes = _with_grid("Are the variances right?")
    sizes = list(dict.fromkeys(part.size for part in parts))
    kinds = list(dict.fromkeys(part.kind for part in parts))
    shift = 0.3 * (np.arange(len(kinds)) - (len(kinds) - 1) / 2)
    axes.axhline(1, color=_GREY, linestyle="--", linewidth=1)
    for index, kind in enumerate(kinds):
        own = [part for part in parts if part.kind == kind]
        places = [sizes.index(part.size) + shift[index] for part in own]
        colour = PALETTE[index]
        for place, part in zip(places, own, strict=True):
            single = part.by_dimension[:, 0]
            beside = place + np.linspace(-0.1, 0.1, len(single))
            dots = {"s": 7, "alpha": 0.35, "linewidths": 0, "color": colour}
            axes.scatter(beside, single, **dots)
        ratio = np.array([part.ratio for part in own])
        ends = np.array([[part.low, part.high] for part in own]).T
        style: dict[str, Any] = {"color": colour, "marker": "os"[index], "capsize": 3}
        style |= {"linestyle": "", "markeredgecolor": "white", "label": f"{kind} words"}
        axes.errorbar(places, ratio, np.abs(ends - ratio), **style)
    axes.set_xticks(range(len(sizes)), sizes)
    axes.set_yscale("log")
    from matplotlib.ticker import LogLocator

    axes.yaxis.set_major_locator(LogLocator(subs=(1, 1.25, 1.5, 2, 3, 5, 8)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("")
    axes.set_ylabel("ratio (above 1: too sure)")
    axes.set_xlabel("part of a document; a dot is one dimension")
    axes.legend(frameon=False)
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

    The plane is the one that separates the labels best (linear discriminants of the
    means). The ellipses are exact, since a linear map of a Gaussian is a Gaussian.

    Only the `n_labels` most frequent labels are drawn, and `n_ellipses` random
    documents have an ellipse: more would hide each other.
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
    axes.set(xlabel="first discriminant of the means", ylabel="second discriminant")
    axes.set_title("Documents with their one-sigma ellipses")
    axes.legend(markerscale=2.5, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    return figure
