"""Documents from sparse count matrices, with words and labels beside them."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import scipy.io
from scipy import sparse

from docsigma.corpora._streams import (
    base_name,
    existing_file,
    numbered_lines,
    read_bytes,
)
from docsigma.corpora.documents import Documents
from docsigma.counts._checks import check_counts, check_words
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    import os


# Errors of SciPy's readers on damaged files.
_BROKEN = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError)
_CUT = (EOFError, OSError, MemoryError, NotImplementedError)
DAMAGE = (*_BROKEN, *_CUT, zipfile.BadZipFile, zlib.error)


def read_matrix(
    path: Path,
    *,
    vocabulary: str | os.PathLike[str] | None = None,
    labelled: bool = True,
) -> Documents:
    """Read word counts from a MatrixMarket ``.mtx`` or SciPy ``.npz`` file.

    Parameters
    ----------
    path : Path
        Documents in rows, words in columns.
    vocabulary : path, optional
        Words of the columns, one per line or a ``.json`` list. By default the first
        that exists of ``<stem>.vocab``, ``vocab.txt`` and ``vocabulary.txt`` in the
        same folder.
    labelled : bool
        Whether to read ``<stem>.labels``, one label per line, if it exists.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "vocab.txt").write_text("sun rain".replace(" ", chr(10)))
    >>> sparse.save_npz(folder / "weather.npz", sparse.csr_matrix([[2, 0], [0, 1]]))
    >>> documents = read_matrix(folder / "weather.npz")
    >>> documents.words, documents.counts.toarray().tolist()
    (['sun', 'rain'], [[2.0, 0.0], [0.0, 1.0]])
    """
    content = io.BytesIO(read_bytes(path))
    stem = Path(base_name(path)).stem
    if Path(base_name(path)).suffix.lower() == ".mtx":
        try:
            matrix: Any = scipy.io.mmread(content)
        except DAMAGE as error:
            message = f"cannot read {path}: damaged MatrixMarket ({error})"
            raise InputError(message) from error
    else:
        matrix = _npz(path, content)
    counts = check_counts(matrix, name=str(path))
    n_documents, n_features = counts.shape
    if not n_documents or not n_features:
        raise InputError(
            f"{path} has no documents: {n_documents} rows and {n_features} columns"
        )
    words = None
    beside = (f"{stem}.vocab", "vocab.txt", "vocabulary.txt")
    file = _first(path.parent, beside) if vocabulary is None else Path(vocabulary)
    if file is not None:
        words = read_vocabulary(file)
        if len(words) != n_features:
            raise InputError(
                f"{file} has {len(words)} words but {path} has {n_features} columns"
            )
    labels: list[str | None] | None = None
    file = _first(path.parent, (f"{stem}.labels",)) if labelled else None
    if file is not None:
        # A blank line is a document without a label.
        lines = [line.rstrip("\r\n") for _, line in numbered_lines(file)]
        labels = [line if line and not line.isspace() else None for line in lines]
        if len(labels) != n_documents:
            raise InputError(
                f"{file} has {len(labels)} labels but {path} has {n_documents} rows"
            )
        if not any(labels):
            labels = None
    return Documents(
        ids=[str(row) for row in range(1, n_documents + 1)],
        counts=counts,
        labels=labels,
        words=words,
        source=str(path),
    )


def read_vocabulary(path: str | os.PathLike[str]) -> list[str]:
    r"""Read words from a file, one per line, or from a ``.json`` list.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "vocab.txt"
    >>> _ = file.write_text("sun\nrain\n")
    >>> read_vocabulary(file)
    ['sun', 'rain']
    """
    file = existing_file(path)
    if Path(base_name(file)).suffix.lower() != ".json":
        lines = [line.rstrip("\r\n") for _, line in numbered_lines(file)]
        return list(check_words(lines, name=str(file)))
    try:
        words = json.loads(read_bytes(file).decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        raise InputError(
            f"{file}, line {error.lineno}, column {error.colno}: broken JSON "
            f"({error.msg})"
        ) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file}: JSON that cannot be read ({error})") from error
    if not isinstance(words, list):
        kind = type(words).__name__
        raise InputError(f"{file} must be a JSON list of words, got {kind}")
    return list(check_words(words, name=str(file)))


def _first(folder: Path, names: tuple[str, ...]) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _npz(path: Path, content: io.BytesIO) -> Any:
    try:
        return sparse.load_npz(content)  # never loads pickles
    except DAMAGE as error:
        if "pickle" in str(error):
            raise InputError(
                f"cannot read {path}: it holds pickled objects, which are never loaded"
            ) from error
        raise InputError(
            f"cannot read {path}: damaged, or not what scipy.sparse.save_npz writes"
        ) from error
