"""Documents from plain text: a folder of files, or a file with one a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docsigma.corpora._columns import DocumentRows
from docsigma.corpora._rows import folder_rows, line_rows

if TYPE_CHECKING:
    from pathlib import Path

    from docsigma.corpora.documents import Documents

__all__ = ["read_folder", "read_lines"]


def read_folder(path: Path, *, labelled: bool = True) -> Documents:
    """Read each file under a folder as one document, sorted by relative path.

    The id is the relative path; the label is the subfolder, the first one where
    they are nested. Hidden files are left out.

    Raises
    ------
    InputError
        If there is no file, one is not UTF-8, or only some have a subfolder.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "good").mkdir()
    >>> _ = (folder / "good" / "1.txt").write_text("sun")
    >>> documents = read_folder(folder)
    >>> documents.ids, documents.labels
    (['good/1.txt'], ['good'])
    """
    rows = DocumentRows(path, "text", "label", "id")
    for number, row in folder_rows(path, labelled=labelled):
        rows.add(number, row)
    return rows.documents()


def read_lines(path: Path) -> Documents:
    r"""Read a ``.txt`` file, one document a line; an empty line is an empty document.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "weather.txt"
    >>> _ = file.write_text("sun\nrain\n")
    >>> documents = read_lines(file)
    >>> documents.ids, documents.texts
    (['1', '2'], ['sun', 'rain'])
    """
    rows = DocumentRows(path, "text", None, None)
    for number, row in line_rows(path):
        rows.add(number, row)
    return rows.documents()
