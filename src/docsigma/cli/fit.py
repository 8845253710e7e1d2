"""`docsigma fit`: a corpus in, a model folder out."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from docsigma.cli import _common
from docsigma.cli._common import option
from docsigma.cli._settings import read_settings
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    import scipy.sparse as sp

    from docsigma.counts import DiskCounts, Vocabulary
    from docsigma.text import DocumentEmbedder, ParallelEmbedder


@contextlib.contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """Yield what Ctrl-C or SIGTERM sets; a second one ends the block at once."""
    asked = threading.Event()

    def note(number: int, frame: Any) -> None:
        if asked.is_set():
            signal.default_int_handler(number, frame)
        asked.set()

    before = {s: signal.signal(s, note) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(frozen=True)
class ModelOptions:
    """Parameters of the model; None means not given."""

    components: Annotated[
        int | None,
        option("Components per embedding (K): more make finer distinctions.", "100"),
    ] = None
    l1: Annotated[
        float | None,
        option(
            "Sparsity: higher switches more words off (l1 penalty on the loadings). "
            "Without it, words whose loadings are uncertain count less.",
            "none; 1.0 for paper",
        ),
    ] = None
    l2: Annotated[
        float | None,
        option("Smoothness: higher keeps words closer to their average.", "0.0"),
    ] = None
    prior_precision: Annotated[
        float | None,
        option("Higher keeps embeddings closer to zero; sets their scale.", "10.0"),
    ] = None
    likelihood: Annotated[
        str | None,
        option("multinomial, or polya (for words that come in bursts).", "multinomial"),
    ] = None
    solver: Annotated[
        str | None, option("fast, or paper (as published, many times slower).", "fast")
    ] = None
    max_iter: Annotated[
        int | None,
        option("Most passes over the corpus.", "11, more for small corpora"),
    ] = None
    tol: Annotated[
        float | None,
        option("Stop when a pass improves the bound by less than this share.", "1e-06"),
    ] = None
    learning_rate: Annotated[
        float | None,
        option("First step size on the loadings.", "0.04; 0.01 for paper"),
    ] = None
    draws: Annotated[
        int | None, option("Draws per document and pass, for paper.", "1")
    ] = None
    seed: Annotated[int | None, option("The same seed gives the same model.", "0")] = (
        None
    )
    device: _common.Device = None


@_common.with_options("split", "language", split=_common.Split.train)
def fit(
    corpus: Annotated[
        str,
        typer.Argument(help="Corpus: a name, a file or folder, or a folder of counts."),
    ],
    out: Annotated[Path, option("Model folder to write.")],
    *,
    flags: ModelOptions,
    words_to_keep: _common.CountingOptions,
    covariates: Annotated[
        str | None,
        option(
            'Columns that topics depend on, such as "party + spline(year)"; '
            "`docsigma effects` shows how.",
            "none",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        option(
            "File of settings: .toml with the names above, or the .json that `tune` "
            "wrote. Flags win.",
            "none",
        ),
    ] = None,
    text_columns: Annotated[
        str | None,
        option(
            "Columns of several languages, or other views of a document, such as "
            "`en:english,zh:chinese:jieba`: name, column and, if it needs one, "
            "tokenizer.",
            "one language",
        ),
    ] = None,
    reader: _common.DocumentOptions,
    checkpoint_every: Annotated[
        int | None, option("Passes between two checkpoints.", "1; 50 for paper")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from the last checkpoint.")
    ] = False,
    force: _common.Force = False,
    quiet: _common.Quiet = False,
    as_json: _common.JsonFlag = False,
) -> None:
    """Learn a model from a corpus and write it to a folder.

    With --text-columns, a row is one document in several languages, of which some may
    be blank: texts in any of them can then be compared. Other commands then want
    --language.

    Counts that `count` wrote stay on disk; the model has their words, whatever the
    settings of the vocabulary.

    Example: docsigma fit docstrings --out model --components 50 --max-iter 200
    """
    from docsigma.counts import as_counts
    from docsigma.models import BayesianSMM
    from docsigma.models._storage import remove_others
    from docsigma.ranks import Ranks
    from docsigma.text import DocumentEmbedder

    if checkpoint_every is not None:
        _common.check_positive("--checkpoint-every", checkpoint_every)
    settings = read_settings(asdict(flags) | asdict(words_to_keep), config)
    settings.model.setdefault("random_state", 0)
    inputs = (corpus, config, reader.vocabulary)
    _common.check_writable(out, *inputs, folder=True, force=force or resume)
    checkpoint = out.with_name(f"{out.name}.checkpoint.safetensors")
    if resume and not checkpoint.is_file():
        raise InputError(f"there is no checkpoint {checkpoint} to resume from")
    if checkpoint.is_file() and not (resume or force):
        raise InputError(
            f"{checkpoint} is the checkpoint of a fit that was stopped: continue it "
            "with --resume, or start again with --force"
        )
    ranks = Ranks.join()
    if ranks.rank:
        # The first rank prints warnings for all.
        warnings.simplefilter("ignore")
    bar = not (quiet or as_json) and sys.stderr.isatty() and ranks.rank == 0
    model: Any = BayesianSMM(**{**settings.model, "verbose": bar})
    model._validate_params()
    embedder: Any = DocumentEmbedder(model=model, **settings.counting)
    if covariates is not None and text_columns is not None:
        raise InputError("--covariates are for one language: leave out --text-columns")
    given: dict[str, Any] = {}
    if covariates is not None:
        given = {
            "covariates": _table(corpus, reader, covariates),
            "formula": covariates,
        }
    words: Any
    if text_columns is None:
        words, counts = _count(corpus, reader, embedder)
    else:
        embedder, texts = _parallel(text_columns, corpus, reader, embedder)
        counts, words = embedder.learn_words(texts)
    n_tokens = float(as_counts(counts).n_tokens.sum())

    started = time.perf_counter()
    with _interruptible() as asked:
        embedder.fit_counts(
            counts,
            vocabulary=words,
            **given,
            callback=lambda _: asked.is_set(),
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            resume=resume,
            ranks=ranks,
        )
    stopped = ranks.any(asked.is_set())
    ranks.leave()
    if ranks.rank:
        return
    model = embedder.model_
    if stopped and model.n_iter_ < model.n_passes and not model.converged_:
        typer.echo(
            f"docsigma: stopped after pass {model.n_iter_} of {model.n_passes}; the "
            f"same command with --resume continues from {checkpoint}",
            err=True,
        )
        raise typer.Exit(130)
    model.trained_on_["corpus"] = corpus
    embedder.save(out, overwrite=force or resume)
    checkpoint.unlink(missing_ok=True)
    remove_others(checkpoint)
    last = model.history_[-1]
    report: dict[str, Any] = {
        "model": str(out),
        "corpus": corpus,
        "n_documents": int(counts.shape[0]),
        "n_tokens": int(n_tokens),
        "n_features": int(counts.shape[1]),
        **({} if text_columns is None else {"languages": embedder.languages_}),
        "n_components": int(model.n_components),
        "n_iter": int(model.n_iter_),
        "converged": bool(model.converged_),
        "bound": last["bound"],
        "bound_per_token": last["bound"] / n_tokens,
        "kl": last["kl"],
        "sparsity": last["sparsity"],
        "seconds": time.perf_counter() - started,
    }
    ended = "the bound has settled" if model.converged_ else "all done"
    rows = {
        "documents": report["n_documents"],
        "tokens": report["n_tokens"],
        "languages": ", ".join(report["languages"]) if text_columns else None,
        "words in the vocabulary": report["n_features"],
        "size of an embedding": str(model.n_components),
        "passes": f"{model.n_iter_} ({ended})",
        "bound per token": f"{report['bound_per_token']:.4f} nats",
        "KL to the prior per document": f"{last['kl']:.2f} nats",
        "loadings that are zero": f"{100 * last['sparsity']:.1f} %",
        "time": f"{report['seconds']:.0f} s",
    }
    _common.print_report(report, as_json, f"{corpus} -> {out}", rows)


def _parallel(
    given: str,
    corpus: str,
    reader: _common.DocumentOptions,
    embedder: DocumentEmbedder,
) -> tuple[ParallelEmbedder, dict[str, list[str]]]:
    """Return an embedder of several languages, and their texts."""
    from docsigma.corpora.files import read_columns
    from docsigma.text import ParallelEmbedder

    columns: dict[str, str] = {}
    settings: dict[str, dict[str, str]] = {}
    for one in given.split(","):
        name, *rest = one.strip().split(":")
        if len(rest) not in (1, 2) or not all([name, *rest]) or name in columns:
            raise InputError(
                "--text-columns must be like en:english,de:german, each name once, got "
                f"{given!r:.80}"
            )
        columns[name] = rest[0]
        if rest[1:]:
            settings[name] = {"tokenizer": rest[1]}
    found = read_columns(
        corpus,
        list(columns.values()),
        texts=True,
        delimiter=reader.delimiter,
        encoding=reader.encoding,
    )
    table = {name: found[column] for name, column in columns.items()}
    return ParallelEmbedder(embedder, settings=settings or None), table


def _table(
    corpus: str, reader: _common.DocumentOptions, formula: str
) -> dict[str, list[Any]]:
    """Return the columns that a formula names, one cell per document."""
    from docsigma.design import formula_columns

    return reader.read_columns(corpus, formula_columns(formula))


def _count(
    corpus: str,
    reader: _common.DocumentOptions,
    embedder: DocumentEmbedder,
) -> tuple[Vocabulary | None, sp.csr_matrix | DiskCounts]:
    """Return the words and the counts of a corpus, which may be counted already."""
    from docsigma.counts import Vocabulary

    stored = reader.open_counts(corpus)
    if stored is not None:
        return stored.vocabulary, stored
    documents = reader.load(corpus)
    if documents.texts is not None:
        return embedder.learn_words(documents.texts)
    assert documents.counts is not None
    words = documents.words
    return None if words is None else Vocabulary.from_words(words), documents.counts
