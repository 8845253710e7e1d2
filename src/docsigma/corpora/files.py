"""Documents from a user's own file or folder, whatever its kind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from docsigma.corpora._streams import COMPRESSIONS, base_name, existing_file
from docsigma.corpora.folders import read_folder, read_lines
from docsigma.corpora.json_lines import read_json_lines
from docsigma.corpora.matrices import read_matrix
from docsigma.corpora.parquet import read_parquet
from docsigma.corpora.tables import read_table
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    import os

    from docsigma.corpora.documents import Documents

__all__ = ["SUFFIXES", "read_documents"]

SUFFIXES = (".jsonl", ".csv", ".tsv", ".parquet", ".txt", ".mtx", ".npz")


def read_documents(
    path: str | os.PathLike[str],
    *,
    text_column: str = "text",
    label_column: str | None = "label",
    id_column: str | None = "id",
    vocabulary: str | os.PathLike[str] | None = None,
) -> Documents:
    r"""Read documents from a file, its kind told by its suffix, or from a folder.

    ====================== =====================================================
    ``.jsonl``             one JSON object a line
    ``.csv``, ``.tsv``     a table whose first line names the columns
    ``.parquet``           a table (needs ``pip install docsigma[tables]``)
    ``.txt``               one document a line
    ``.mtx``, ``.npz``     sparse counts, documents in rows
    a folder               one document a file, the subfolder is its label
    ====================== =====================================================

    Each file may be compressed: ``.gz`` or ``.xz`` after its suffix.

    Parameters
    ----------
    path : path
    text_column, label_column, id_column : str
        Columns of a table. Without an id column the ids are line numbers (of the
        file, from 1), without a label column there are no labels. None as
        `label_column` or `id_column` leaves that column unread.
    vocabulary : path, optional
        For counts only: words of the columns, one a line or a ``.json`` list. By
        default looked for beside the counts: ``<stem>.vocab``, ``vocab.txt``,
        ``vocabulary.txt``.

    Returns
    -------
    Documents

    Raises
    ------
    InputError
        If the file cannot be used: one sentence, with file, line and column.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "weather.tsv"
    >>> _ = file.write_text("text\tlabel\nsun\tgood\nrain\tbad\n")
    >>> documents = read_documents(file)
    >>> documents.ids, documents.texts, documents.labels
    (['2', '3'], ['sun', 'rain'], ['good', 'bad'])
    """
    file = Path(path)
    suffix = Path(base_name(file)).suffix.lower()
    labelled = label_column is not None
    is_folder = _is_folder(file)
    if not is_folder:
        existing_file(file)
        if suffix not in SUFFIXES:
            raise InputError(
                f"cannot read {file}: unknown suffix {suffix!r}, known are "
                f"{', '.join(SUFFIXES)}, each also with {' or '.join(COMPRESSIONS)}"
            )
        if suffix in (".mtx", ".npz"):
            return read_matrix(file, vocabulary=vocabulary, labelled=labelled)
    if vocabulary is not None:
        raise InputError(
            f"`vocabulary` names the columns of counts (.mtx, .npz), "
            f"but {file} has texts"
        )
    if is_folder:
        return read_folder(file, labelled=labelled)
    if suffix == ".txt":
        return read_lines(file)
    if suffix == ".jsonl":
        return read_json_lines(
            file,
            text_column=text_column,
            label_column=label_column,
            id_column=id_column,
        )
    if suffix == ".parquet":
        return read_parquet(
            file,
            text_column=text_column,
            label_column=label_column,
            id_column=id_column,
        )
    return read_table(
        file,
        delimiter="\t" if suffix == ".tsv" else ",",
        text_column=text_column,
        label_column=label_column,
        id_column=id_column,
    )


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False  # existing_file tells why
