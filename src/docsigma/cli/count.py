"""`docsigma count`: documents in, counts on disk out."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from docsigma.cli import _common
from docsigma.cli._common import option
from docsigma.cli._counted import count_words
from docsigma.cli._settings import read_settings
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from docsigma.corpora import Documents
    from docsigma.counts import Vocabulary

    # Called once per pass over the documents.
    Blocks = Callable[[], Iterable[Documents]]


@_common.with_options("vocabulary", "language", split=_common.Split.train)
def count(
    docs: _common.DocumentsArgument,
    out: Annotated[Path, option("Folder of counts to write.")],
    *,
    vocabulary: Annotated[
        Path | None,
        option(
            "Words to count: a folder made by `fit` or `count`, or a file with one "
            "word per line. For a count matrix, a file names its columns.",
            "learned from DOCS",
        ),
    ] = None,
    words_to_keep: _common.CountingOptions,
    config: Annotated[
        Path | None, option("File of settings, as for `fit`.", "none")
    ] = None,
    reader: _common.DocumentOptions,
    force: _common.Force = False,
    quiet: _common.Quiet = False,
    as_json: _common.JsonFlag = False,
) -> None:
    """Count the words of documents and write the counts to a folder.

    Texts (.jsonl, .csv, .tsv, .txt, .parquet, folders) are read in blocks, twice if
    their vocabulary must be learned. Named corpora, count matrices (.mtx, .npz) and
    compressed Parquet are read whole, as by `fit`.

    Example: docsigma count calls.jsonl.gz --out calls --min-df 5
    """
    from docsigma.counts import CountsWriter, DiskCounts

    counting = read_settings(asdict(words_to_keep), config).counting
    inputs = (docs, vocabulary, config)
    _common.check_writable(out, *inputs, folder=True, force=force)
    bar = not (quiet or as_json) and sys.stderr.isatty()
    started = time.perf_counter()
    n_tokens = n_unknown = n_empty = 0
    with _stoppable():
        blocks, words, n_features = _source(docs, reader, vocabulary, counting, bar)
        with CountsWriter(out, n_features, words) as writer:
            for block in _watched(blocks(), "count", bar):
                counted = count_words(words, block)
                unknown = counted.n_unknown
                writer.add(
                    counted.counts, block.labels, ids=block.ids, n_unknown=unknown
                )
                n_tokens += int(counted.n_tokens.sum())
                n_unknown += int(unknown.sum())
                n_empty += int((counted.n_tokens == 0).sum())
            if n_tokens == 0:
                raise InputError(f"{docs} holds no word: every count is zero")
    counts = DiskCounts(out)
    report = {
        "folder": str(out),
        "corpus": docs,
        "n_documents": counts.n_documents,
        "n_tokens": n_tokens,
        "n_unknown": n_unknown,
        "n_empty": n_empty,
        "n_features": counts.n_features,
        "nnz": counts.nnz,
        "bytes": counts.nbytes,
        "digest": counts.digest,
        "seconds": time.perf_counter() - started,
    }
    rows = {
        "documents": counts.n_documents,
        "tokens": n_tokens,
        "unknown tokens": n_unknown,
        "documents with no known word": n_empty,
        "words in the vocabulary": counts.n_features,
        "counts that are not zero": counts.nnz,
        "bytes on disk": counts.nbytes,
        "time": f"{report['seconds']:.0f} s",
    }
    _common.print_report(report, as_json, f"{docs} -> {out}", rows)


def _source(
    docs: str,
    reader: _common.DocumentOptions,
    vocabulary: Path | None,
    counting: dict[str, Any],
    bar: bool,
) -> tuple[Blocks, Vocabulary | None, int]:
    """Return the documents, the words to count, and the number of columns."""
    from docsigma.corpora.files import can_stream
    from docsigma.counts import Vocabulary, WordFrequencies
    from docsigma.counts._base import BLOCK

    is_path = not _common.is_corpus(docs)
    if is_path and can_stream(docs):
        blocks = _streamed(Path(docs), reader)
    else:
        # As in `fit`, a file of words beside a matrix names the matrix's columns.
        names_columns = is_path and vocabulary is not None and not vocabulary.is_dir()
        if names_columns:
            reader = replace(reader, vocabulary=vocabulary)
        documents = reader.load(docs)

        def blocks() -> Iterator[Documents]:
            for start in range(0, len(documents), BLOCK):
                yield documents[start : start + BLOCK]

        if documents.counts is not None and (names_columns or vocabulary is None):
            named = documents.words
            words = None if named is None else Vocabulary.from_words(named)
            return blocks, words, int(documents.counts.shape[1])
    if vocabulary is not None:
        known = _given(vocabulary, counting)
    else:
        frequencies = WordFrequencies(**counting)
        for block in _watched(blocks(), "vocabulary", bar):
            frequencies.add(block.texts or [])
        known = frequencies.vocabulary()
    return blocks, known, len(known)


def _streamed(path: Path, reader: _common.DocumentOptions) -> Blocks:
    from docsigma.corpora import iter_documents

    sizes: list[int] = []

    def blocks() -> Iterator[Documents]:
        size = 0
        for block in iter_documents(path, **reader.columns):
            size += len(block)
            yield block
        sizes.append(size)
        if size != sizes[0]:
            raise InputError(
                f"{path} changed while it was read: it had {sizes[0]} documents, "
                f"now it has {size}"
            )

    return blocks


def _given(source: Path, counting: dict[str, Any]) -> Vocabulary:
    """Read the words of a model, of counts, or of a file."""
    from docsigma.corpora.matrices import read_vocabulary
    from docsigma.counts import DiskCounts, Vocabulary, is_counts_folder
    from docsigma.persistence import read_model

    for name, value in counting.items():
        if source.is_dir() or name in ("min_df", "max_df", "max_features"):
            raise InputError(
                f"`{name}` is {value}, but {source} already says which words to count"
            )
    if not source.is_dir():
        return Vocabulary(tuple(read_vocabulary(source)), **counting)
    if is_counts_folder(source):
        known = DiskCounts(source).vocabulary
    else:
        state = read_model(source).vocabulary
        known = None if state is None else Vocabulary.from_dict(state)
    if known is None:
        raise InputError(
            f"{source} does not know its words, so no texts can be counted"
        )
    return known


def _watched(blocks: Iterable[Documents], what: str, bar: bool) -> Iterator[Documents]:
    from tqdm import tqdm

    with tqdm(desc=what, unit=" documents", unit_scale=True, disable=not bar) as shown:
        for block in blocks:
            yield block
            shown.update(len(block))


@contextlib.contextmanager
def _stoppable() -> Iterator[None]:
    # SIGTERM as Ctrl-C: either way the half-written folder is removed.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("docsigma: stopped; nothing was written", err=True)
        raise typer.Exit(130) from None
    finally:
        signal.signal(signal.SIGTERM, before)
