"""Pictures of the benchmarks, from the files that they wrote.

    python benchmarks/plots.py

A file that is not there gives no picture.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from docsigma.metrics.plots import PALETTE, save_figures

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[1]
OURS, OTHERS = PALETTE[0], "#9AA5B1"
PANELS = {
    "fit_seconds": ("training, seconds", "log"),
    "embed_documents_per_second": ("embedding, documents per second", "log"),
    "peak_gib": ("peak memory, GiB", "linear"),
    "accuracy": ("LR on the embeddings, % right", "linear"),
}
SIZES = {
    "n_documents": "documents",
    "n_features": "words",
    "n_components": "components",
    "n_tokens": "tokens per document",
}
TIMES = {
    "a pass of the training": ("pass_exponent", PALETTE[0], "o"),
    "embedding a document": ("embed_exponent", PALETTE[3], "s"),
}


def draw_peers(report: dict[str, Any]) -> Figure:
    """Draw a bar a system in a panel a measure; a hatched one is extrapolated."""
    rows = [row for row in report["systems"] if row["status"] == "measured"][::-1]
    height = 1.2 + 0.34 * len(rows)
    figure = Figure(figsize=(11.5, height), dpi=150, layout="constrained")
    panels = figure.subplots(1, len(PANELS), sharey=True)
    for axes, (name, (label, scale)) in zip(panels, PANELS.items(), strict=True):
        _bars(axes, rows, name)
        axes.set_xscale(scale)
        axes.set_xlabel(label)
        axes.margins(x=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_yticks(range(len(rows)), [row["system"] for row in rows])
    corpus = report["corpus"]
    figure.suptitle(
        f"{corpus['name']}: {corpus['n_train']} documents to train on, "
        f"{corpus['n_test']} to embed, K {report['n_components']}, "
        f"{report['threads']} threads"
    )
    return figure


def _bars(axes: Any, rows: list[dict[str, Any]], name: str) -> None:
    for at, row in enumerate(rows):
        value = row.get(name)
        if value is None:
            continue
        guessed = name == "fit_seconds" and "measured_passes" in row
        ours = row["library"] == "docsigma"
        axes.barh(
            at,
            value,
            color=OURS if ours else OTHERS,
            hatch="///" if guessed else None,
            edgecolor="white",
        )
        axes.annotate(
            _short(value),
            (value, at),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )


def _short(value: float) -> str:
    """Give three figures at the least, and all of a whole number."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def draw_growth(report: dict[str, Any]) -> Figure:
    """Draw time against each size, both as logarithms."""
    figure = Figure(figsize=(11.5, 3.4), dpi=150, layout="constrained")
    panels = figure.subplots(1, len(report["axes"]), sharey=True)
    for axes, (name, found) in zip(panels, report["axes"].items(), strict=True):
        sizes = np.array([row["size"] for row in found["rows"]])
        taken = (
            [1000 * row["seconds_a_pass"] for row in found["rows"]],
            [1000 / row["embed_documents_per_second"] for row in found["rows"]],
        )
        for values, (label, (key, colour, marker)) in zip(
            taken, TIMES.items(), strict=True
        ):
            slope = f"{label} ~ size^{found[key]:.2f}"
            axes.plot(sizes, values, color=colour, marker=marker, label=slope)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(sizes, [f"{size}" for size in sizes])
        axes.minorticks_off()
        axes.set_xlabel(SIZES[name])
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(fontsize=7, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    panels[0].set_ylabel("milliseconds")
    return figure


def draw_words(report: list[dict[str, Any]]) -> Figure:
    """Draw how wide words are against how often they come."""
    figure = Figure(figsize=(6.4, 3.4), dpi=150, layout="constrained")
    axes = figure.subplots()
    found = report[0]
    counts = [band["count"] for band in found["bands"]]
    low, middle, high = np.array([band["width"] for band in found["bands"]]).T
    axes.fill_between(counts, low, high, color=OURS, alpha=0.25, lw=0)
    axes.plot(counts, middle, color=OURS, marker="o", ms=4, label="median of the words")
    axes.axhline(found["prior"], color=OTHERS, ls="--", label="before anything is seen")
    axes.set_xscale("log", base=2)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("times that a word comes in the training documents")
    axes.set_ylabel("standard deviation of a loading")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return figure


PICTURES: dict[str, Callable[[dict[str, Any]], Figure]] = {
    "peers": draw_peers,
    "growth": draw_growth,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images")
    chosen = parser.parse_args()
    for name, draw in PICTURES.items():
        file = chosen.results / f"{name}.json"
        if not file.exists():
            print(f"{file} is not there: no speed-{name}.png")
            continue
        picture = draw(json.loads(file.read_text("utf-8")))
        print(*save_figures({f"speed-{name}.png": picture}, chosen.out))
    file = chosen.results / "past-the-paper-words.json"
    if file.exists():
        picture = draw_words(json.loads(file.read_text("utf-8")))
        print(*save_figures({"words.png": picture}, chosen.out))


if __name__ == "__main__":
    main()
