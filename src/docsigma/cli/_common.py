"""What the commands share: documents, models, output."""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from docsigma._files import check_replaceable
from docsigma.cli._counted import CountedSource, counted_in_memory, counted_on_disk
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.table import Table

    from docsigma.corpora import Documents
    from docsigma.counts import DiskCounts
    from docsigma.models._count_model import CountModel


class Split(StrEnum):
    """Which half of a named corpus."""

    train = "train"
    test = "test"


def option(text: str, default: str | None = None) -> Any:
    """Return an option with its help; `default` replaces the default shown there."""
    return typer.Option(help=text, show_default=True if default is None else default)


ModelFolder = Annotated[Path, typer.Argument(help="Model folder, made by `fit`.")]
ClassifierFolder = Annotated[
    Path, typer.Argument(metavar="CLF", help="Folder made by `classifier fit`.")
]
DocumentsArgument = Annotated[
    str, typer.Argument(metavar="DOCS", help="Name of a corpus, or a file or folder.")
]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON, nothing else.")]
Device = Annotated[
    str | None,
    option("Where to compute: cpu, cuda, or auto (a GPU if there is one).", "auto"),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress bar.")]
NoText = Annotated[
    bool, typer.Option("--no-text", help="Leave the texts out of what --out names.")
]
Force = Annotated[
    bool, typer.Option("--force", help="Overwrite what --out names, if it exists.")
]


@dataclass(frozen=True)
class CountingOptions:
    """How to choose the words of a vocabulary."""

    min_df: Annotated[
        int | None, option("Keep words found in at least this many documents.", "2")
    ] = None
    max_df: Annotated[
        float | None,
        option("Leave out words found in more than this share of documents.", "1.0"),
    ] = None
    max_features: Annotated[
        int | None, option("Keep only this many words, the most frequent.", "all")
    ] = None
    stop_words: Annotated[
        str | None, option("`english` leaves out English stop words.", "none")
    ] = None
    tokenizer: Annotated[
        str | None,
        option(
            "Package that finds words where no spaces do: jieba (Chinese), janome "
            "(Japanese) or pythainlp (Thai); install it with pip.",
            "spaces and punctuation",
        ),
    ] = None


@dataclass(frozen=True)
class DocumentOptions:
    """How to read documents; :func:`with_options` turns the fields into options."""

    split: Annotated[
        Split, option("Which half of a named corpus; files are read whole.")
    ] = Split.test
    text_column: Annotated[str, option("Column that holds the text.")] = "text"
    label_column: Annotated[str | None, option("Column that holds the label.")] = (
        "label"
    )
    id_column: Annotated[str, option("Column that holds the document's id.")] = "id"
    delimiter: Annotated[
        str | None,
        option("Separator of columns: `;`, `tab`, ...", "comma; tab in .tsv"),
    ] = None
    encoding: Annotated[str, option("Encoding of the texts, for example cp1252.")] = (
        "utf-8"
    )
    missing_labels: Annotated[
        str,
        option("Labels that mean none, with commas; empty cells always do."),
    ] = "nan,na,n/a,null"
    vocabulary: Annotated[
        Path | None,
        option("Words of a count matrix, one per line.", "a file beside it"),
    ] = None
    language: Annotated[
        str | None, option("Language of the documents.", "the model has only one")
    ] = None

    def load(self, name: str) -> Documents:
        """Load the documents called `name`: a corpus, a file or a folder."""
        from docsigma.corpora import load_corpus

        if is_corpus(name):
            corpus = load_corpus(name)
            return corpus.train if self.split is Split.train else corpus.test
        return load_corpus(name, vocabulary=self.vocabulary, **self.columns).train

    @property
    def columns(self) -> dict[str, Any]:
        """Options for reading the columns of a table."""
        no_columns = ("split", "vocabulary", "language")
        found = {k: v for k, v in vars(self).items() if k not in no_columns}
        missing = tuple(filter(None, self.missing_labels.split(",")))
        return found | {"missing_labels": missing}

    def columns_found(self, name: str) -> list[str]:
        """Return the names of the columns of a table, for a message."""
        from docsigma.corpora.files import column_names

        if is_corpus(name) or Path(name).is_dir():
            return []
        return column_names(name, **self.columns)

    def read_columns(self, name: str, columns: list[str]) -> dict[str, list[Any]]:
        """Read columns of the table called `name`, one cell per document."""
        from docsigma.corpora.files import read_columns

        if is_corpus(name) or self.open_counts(name) is not None:
            raise InputError(
                f"{name} is not a table of texts, so it has no column `{columns[0]}`"
            )
        return read_columns(
            name, columns, delimiter=self.delimiter, encoding=self.encoding
        )

    def open_counts(self, name: str) -> DiskCounts | None:
        """Open the folder `name` that `count` wrote; None if it is something else."""
        from docsigma.counts import DiskCounts, is_counts_folder

        if is_corpus(name) or not is_counts_folder(name):
            return None
        if self.vocabulary is not None:
            raise InputError(
                "`vocabulary` names the columns of a count matrix (.mtx, .npz), but "
                f"{name} is a folder of counts"
            )
        return DiskCounts(name)

    def count(
        self,
        name: str,
        model: CountModel,
        part: Callable[[int], slice] = lambda n: slice(n),
    ) -> CountedSource:
        """Count documents with a model's words, or open counts that fit the model.

        `part` maps the number of documents to those to use. Steps of the model that
        take longer than two seconds show a bar from then on, on a terminal.
        """
        model.verbose = model.verbose or sys.stderr.isatty()
        stored = self.open_counts(name)
        if stored is not None:
            return counted_on_disk(model, stored, part(stored.n_documents))
        documents = self.load(name)
        return counted_in_memory(model, documents[part(len(documents))])


def is_corpus(name: str) -> bool:
    """Whether `name` is the name of a corpus."""
    from docsigma.corpora import available_corpora

    return name in {info.name for info in available_corpora()}


def with_options(
    *without: str, **defaults: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Turn the fields of a command's dataclass arguments into options.

    The fields `without` are not offered and keep their defaults; `defaults` replaces
    those of the class.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(command, include_extras=True)
        groups: dict[str, dict[str, Any]] = {}
        parameters: list[inspect.Parameter] = []
        for given in inspect.signature(command).parameters.values():
            own, types = {given.name: given.default}, hints
            if is_dataclass(hint := hints[given.name]):
                types = get_type_hints(hint, include_extras=True)
                values = {f.name: defaults.get(f.name, f.default) for f in fields(hint)}
                own = {k: v for k, v in values.items() if k not in without}
                groups[given.name] = values
            parameters += [
                inspect.Parameter(k, given.KEYWORD_ONLY, default=v, annotation=types[k])
                for k, v in own.items()
            ]

        @functools.wraps(command)
        def run(**given: Any) -> None:
            for group, values in groups.items():
                named = {k: given.pop(k) for k in values if k not in without}
                given[group] = hints[group](**values | named)
            command(**given)

        run.__annotations__ = {p.name: p.annotation for p in parameters}
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return run

    return decorate


def labelled_rows(
    labels: Sequence[str | None] | None,
    n_documents: int,
    name: str,
    reader: DocumentOptions,
    others: str = "are left out",
) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Return the rows that have a label, and these labels; refuse documents with none.

    If some have no label, standard error says so, and what becomes of the `others`.
    """
    import numpy as np

    labels = labels or []
    rows = [row for row, label in enumerate(labels) if label is not None]
    if not rows:
        where = "has a label (in a folder, the name of a subfolder)"
        if found := reader.columns_found(name):
            where = f"has a value in the column `{reader.label_column}`"
            where += f" (--label-column), and the columns are {', '.join(found)}"
        raise InputError(
            f"{name} has no labels: none of its {n_documents} documents {where}"
        )
    if len(rows) < n_documents:
        typer.echo(
            f"docsigma: {len(rows)} of {n_documents} documents have a label; the "
            f"others {others}",
            err=True,
        )
    return np.array(rows), np.array([labels[row] for row in rows])


def load_model(
    folder: Path, device: str | None = None, language: str | None = None
) -> CountModel:
    """Read a model folder of any kind; of several languages it is the one named."""
    from docsigma.models.registry import load_model

    model: Any = load_model(folder)
    views = getattr(model, "views_", None)
    if views is None and language is not None:
        raise InputError(f"{folder} has one language, without a name: no --language")
    if views is not None:
        if language not in views:
            raise InputError(
                f"{folder} has the languages {', '.join(views)}: choose the one of the "
                "documents with --language"
                + ("" if language is None else f", got {language}")
            )
        model = model.view(language)
    found: CountModel = model if device is None else model.set_params(device=device)
    return found


def in_language(classifier: Any, language: str | None) -> Any:
    """Return a classifier or an index for texts in a language."""
    return classifier if language is None else classifier.in_language(language)


def check_same_model(
    what: str, other: CountModel, model: CountModel, folder: Path
) -> None:
    """Refuse what was made with another model than the one in `folder`."""
    if other.digest != model.digest:
        raise InputError(
            f"{what} is of another model ({other.digest[:8]}) than {folder} "
            f"({model.digest[:8]})"
        )


@contextlib.contextmanager
def resumable(kept: str) -> Iterator[None]:
    """On Ctrl-C, print what was kept for the same command to continue from."""
    try:
        yield
    except KeyboardInterrupt:
        message = f"docsigma: stopped; {kept}, and the same command continues"
        typer.echo(message, err=True)
        raise typer.Exit(130) from None


def check_positive(option: str, value: int) -> None:
    """Refuse a number below 1."""
    if value < 1:
        raise InputError(f"{option} must be 1 or more, got {value}")


def check_writable(
    path: Path, *inputs: str | Path | None, folder: bool = False, force: bool = False
) -> None:
    """Refuse an output that cannot be written, or that exists without `force`."""
    for name in inputs:
        if name is not None and path.exists() and _is_same_file(path, name):
            raise InputError(
                f"--out {path} is an input of this command: choose another name"
            )
    parent = path.absolute().parent
    if not parent.is_dir():
        raise InputError(f"cannot write {path}: there is no folder {parent}")
    if not os.access(parent, os.W_OK):
        raise InputError(f"cannot write {path}: the folder {parent} is not writable")
    if folder:
        check_replaceable(path)
    elif path.is_dir():
        raise InputError(f"cannot write {path}: it is a folder")
    occupied = any(path.iterdir()) if path.is_dir() else path.exists()
    if occupied and not force:
        raise InputError(
            f"{path} exists already: overwrite it with --force, or choose another --out"
        )


def _is_same_file(path: Path, name: str | Path) -> bool:
    try:
        return path.samefile(name)
    except (OSError, ValueError):
        return False


def make_folder(folder: Path) -> None:
    """Create a folder unless it exists."""
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        message = f"cannot make the folder {folder}: {error.strerror}"
        raise InputError(message) from error


def print_json(value: Any) -> None:
    """Print one JSON object; NaN becomes null."""
    typer.echo(json.dumps(_safe(value), indent=2))


def print_report(
    report: Any, as_json: bool, title: str, rows: Mapping[str, Any]
) -> None:
    """Print a report as JSON, or `rows` as a table, without those that are None."""
    if as_json:
        print_json(report)
        return
    lines = table(title, "what", ">value")
    for name, value in rows.items():
        if value is not None:
            lines.add_row(name, number(value, 0) if isinstance(value, int) else value)
    show(lines)


def _safe(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _safe(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_safe(item) for item in value]
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return None
    return value


def table(title: str, *columns: str) -> Table:
    """Make a plain table; columns that start with ``>`` are right-aligned."""
    from rich import box
    from rich.table import Table

    result = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left")
    for name in columns:
        justify: Any = "right" if name.startswith(">") else "left"
        result.add_column(name.lstrip(">"), justify=justify, overflow="fold")
    return result


def show(*items: Any) -> None:
    """Print tables and lines to standard output, as wide as the terminal."""
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else 80, highlight=False)
    for item in items:
        console.print(item)


def beginning(text: str, width: int = 60) -> str:
    """Return the first words of a text, on one line."""
    from docsigma.counts.texts import beginning

    found = beginning(text, width + 1)
    return found if len(found) <= width else f"{found[:width].rstrip()} …"


def number(value: float, digits: int = 1) -> str:
    """Write a number with a space every three digits: 1 234 567."""
    return f"{value:,.{digits}f}".replace(",", " ")
