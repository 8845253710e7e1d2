"""`docsigma demo`: the main job on the embedded corpus."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from docsigma.cli import _common
from docsigma.cli._common import option

if TYPE_CHECKING:
    from docsigma.cli._demo import DemoResult


def demo(
    out: Annotated[Path, option("Folder for the model, plots and a page.")] = Path(
        "demo"
    ),
    components: Annotated[int, option("Components per embedding (K).")] = 50,
    max_iter: Annotated[
        int | None, option("Most passes over the corpus.", "by its size")
    ] = None,
) -> None:
    """Fit on docstrings, embed and label held-out ones, print tables, write plots.

    To explore the held-out documents, open explore.html of the folder in a browser.
    """
    from docsigma.cli._demo import run_demo

    _common.make_folder(out)
    _common.check_writable(out / "model", folder=True, force=True)
    result = run_demo(
        out,
        n_components=components,
        max_iter=max_iter,
        verbose=sys.stderr.isatty(),
        log=typer.echo,
    )
    _common.show(*_tables(result))
    typer.echo(
        "Use hybrid: it uses words and embeddings, and explains its predictions.\n"
        "Use evidence to compare documents or add classes; glcu and glc are the "
        "paper's.\n"
    )
    command, model = sys.argv[0], out / "model"
    typer.echo(
        f"Next: {command} topics {model} docstrings\n"
        f"      {command} embed {model} YOUR_FILE.csv --out embeddings.parquet"
    )


def _tables(result: DemoResult) -> list[object]:
    import numpy as np

    from docsigma.distances import wasserstein2

    p, q = result.perplexity, result.posterior
    title = f"Perplexity of {_common.number(p.n_documents, 0)} held-out documents"
    lines = _common.table(title, "model", ">corpus", ">per document")
    corpus = f"{p.corpus:.0f} ± {p.standard_error:.0f}"
    lines.add_row("Bayesian SMM (bound)", corpus, f"{p.per_document:.0f}")
    lines.add_row(
        "uni-gram", f"{p.unigram_corpus:.0f}", f"{p.unigram_per_document:.0f}"
    )

    order = np.argsort(q.total_variance, kind="stable")
    labels = result.test.labels
    assert labels is not None
    certain = _common.table(
        "The most and the least certain", "document", "label", ">words", ">variance"
    )
    for position, row in enumerate([*order[:4], *order[-4:]]):
        certain.add_row(
            result.test.ids[row],
            labels[row],
            str(result.n_tokens[row]),
            f"{q.total_variance[row]:.2f}",
            end_section=position == 3,
        )

    # A document of average certainty.
    row = int(order[len(order) // 4])
    title = f"Nearest to {result.test.ids[row]} (Wasserstein-2)"
    near = _common.table(title, "document", "label", ">distance")
    (distance,) = wasserstein2(q[row], q)
    for other in [i for i in np.argsort(distance, kind="stable") if i != row][:5]:
        near.add_row(result.test.ids[other], labels[other], f"{distance[other]:.2f}")
    title = f"Topic identification, {len(set(labels))} labels"
    topics = _common.table(title, "classifier", ">accuracy", ">cross-entropy", ">ECE")
    for name, scores in result.topic_id.items():
        accuracy, error = f"{scores['accuracy']:.1f} %", f"{scores['ece']:.3f}"
        topics.add_row(name, accuracy, f"{scores['cross_entropy']:.2f}", error)
    return [lines, certain, near, topics]
