"""`docsigma tune`: hyper-parameters from training documents alone."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from docsigma.cli import _common
from docsigma.cli._common import option
from docsigma.exceptions import InputError


@_common.with_options("split", "vocabulary", "language")
def tune(
    corpus: Annotated[str, typer.Argument(help="Corpus: a name, or a file or folder.")],
    out: Annotated[Path, option("JSON file to write.")],
    *,
    objective: Annotated[
        str,
        option(
            "What to minimise on held-out documents: glcu or lr (cross-entropy of that "
            "classifier) or perplexity (needs no labels)."
        ),
    ] = "glcu",
    components: Annotated[
        str, option("Components per embedding (K) to try, with commas.")
    ] = "50,100,200",
    l1: Annotated[
        str, option("Least and greatest sparsity (l1 penalty), with a comma.")
    ] = "0.01,10",
    prior_precision: Annotated[
        str, option("Least and greatest precision of the prior, with a comma.")
    ] = "1,100",
    words: Annotated[
        str | None,
        option("First and last word of a window, for Switchboard.", "all words"),
    ] = None,
    hold_out: Annotated[
        str, option("Documents to hold out: random, or latest of each class.")
    ] = "random",
    trials: Annotated[int, option("Models to train.")] = 20,
    solver: Annotated[str, option("fast, or paper (many times slower).")] = "fast",
    device: _common.Device = None,
    seed: Annotated[int, option("The same seed gives the same search.")] = 0,
    reader: _common.DocumentOptions,
    force: _common.Force = False,
) -> None:
    """Search the settings that do best on held-out training documents.

    If stopped, the same command continues it. `fit --config` reads the file.

    Example: docsigma tune tickets.csv --out tuned.json --trials 10
    """
    from docsigma.cli._tune import Space, show_parameters, write_tuned
    from docsigma.cli._tune import tune as search
    from docsigma.corpora import load_corpus
    from docsigma.counts import DiskCounts, is_counts_folder
    from docsigma.metrics.environment import environment, gpu_work
    from docsigma.text import DocumentEmbedder

    _common.check_positive("--trials", trials)
    window = {} if words is None else {"words": _whole_numbers("--words", words)}
    space = Space(
        _whole_numbers("--components", components),
        _range("--l1", l1),
        _range("--prior-precision", prior_precision),
    )
    if out.suffix == ".journal":
        raise InputError(f"--out {out} is the name of a journal: call it .json")
    journal = out.with_suffix(".journal")
    # With a journal, the search continues.
    _common.check_writable(out, corpus, force=force or journal.exists())
    if is_counts_folder(corpus) and not window:
        stored = DiskCounts(corpus)
        counts = stored[:]
        found: Sequence[str | None] | None = stored.labels()
    else:
        columns = {} if _common.is_corpus(corpus) else reader.columns
        train = load_corpus(corpus, **columns, **window).train
        found = train.labels
        if train.texts is None:
            assert train.counts is not None
            counts = train.counts
        else:
            _, counts = DocumentEmbedder().learn_words(train.texts)
    labels = None
    if found is not None and (objective != "perplexity" or None not in found):
        rows, known = _common.labelled_rows(found, counts.shape[0], corpus, reader)
        counts, labels = counts[rows], known.tolist()
    started, before = time.perf_counter(), gpu_work()
    with _common.resumable(f"the trials so far are in {journal}"):
        best = search(
            counts,
            labels,
            objective=objective,
            space=space,
            n_trials=trials,
            hold_out=hold_out,
            solver=solver,
            device=device or "auto",
            random_state=seed,
            journal=journal,
            log=lambda line: typer.echo(line, err=True),
        )
    settings: dict[str, Any] = {"corpus": corpus, **window}
    settings |= {"objective": objective, "seed": seed}
    settings |= {"solver": solver, "hold_out": hold_out, "space": asdict(space)}
    # Of this run only.
    settings["seconds"] = round(time.perf_counter() - started, 2)
    settings |= environment(on_gpu=gpu_work() > before)
    write_tuned(out, best, settings)
    shown = show_parameters(best.parameters)
    typer.echo(f"best of {len(best.trials)}: {shown} ({objective} {best.value:.4f})")


def _whole_numbers(option: str, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise InputError(
            f"{option} must be whole numbers with commas, got {text!r}"
        ) from error


def _range(option: str, text: str) -> tuple[float, float]:
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError as error:
        raise InputError(
            f"{option} must be two numbers with a comma, got {text!r}"
        ) from error
    if not 0 < low <= high < math.inf:
        raise InputError(
            f"{option} must be the least and the greatest, both above 0 and finite, "
            f"got {text!r}"
        )
    return low, high
