"""Columns of numbers and strings, written as .parquet, .csv, .npz or .jsonl.

Constants are arrays of the whole table: in .npz separate arrays, in .parquet JSON in
the schema's metadata; .csv and .jsonl have no place for them. A column of vectors
becomes one column per entry in .csv: mean[0], mean[1], ..., and a text that a
spreadsheet would read as a formula starts with an apostrophe there.
"""

from __future__ import annotations

import contextlib
import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from docsigma._files import atomic_file, harmless_cell
from docsigma.cli import _common
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from docsigma.cli._counted import CountedSource

TableFile = Annotated[
    Path, _common.option("File to write: .parquet, .csv, .npz or .jsonl.")
]
Columns = dict[str, Any]
# The next rows of a table, and its constants.
Blocks = Iterable[tuple[Columns, Columns]]


def _write_jsonl(path: Path, blocks: Blocks) -> None:
    with path.open("w", encoding="utf-8") as handle:
        for columns, _ in blocks:
            lists = [v if isinstance(v, list) else v.tolist() for v in columns.values()]
            for row in zip(*lists, strict=True):
                record = dict(zip(columns, row, strict=True))
                handle.write(json.dumps(record, ensure_ascii=False) + "\n")


def _write_csv(path: Path, blocks: Blocks) -> None:
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        for number, (columns, _) in enumerate(blocks):
            flat: dict[str, list[Any]] = {}
            for name, values in columns.items():
                if isinstance(values, list):
                    flat[name] = [harmless_cell(value) for value in values]
                elif values.ndim == 1:
                    flat[name] = values.tolist()
                else:
                    for i, column in enumerate(values.T.tolist()):
                        flat[f"{name}[{i}]"] = column
            if number == 0:
                writer.writerow(flat)
            # A document without a label has an empty field.
            writer.writerows(zip(*flat.values(), strict=True))


def _write_npz(path: Path, blocks: Blocks) -> None:
    import numpy as np

    parts: dict[str, list[Any]] = {}
    whole: Columns = {}
    for columns, constants in blocks:
        whole |= constants
        for name, column in columns.items():
            if isinstance(column, list):
                # A missing label; None would need a pickle.
                column = ["" if value is None else value for value in column]
            parts.setdefault(name, []).append(np.asarray(column))
    arrays: Any = {name: np.concatenate(found) for name, found in parts.items()}
    np.savez(path, **arrays, **whole)


def _write_parquet(path: Path, blocks: Blocks) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from docsigma.workers.text_batches import arrow_column

    with contextlib.ExitStack() as stack:
        file: Any = None
        for columns, constants in blocks:
            rows = pa.table({k: arrow_column(v) for k, v in columns.items()})
            if file is None:
                texts = {k: json.dumps(v.tolist()) for k, v in constants.items()}
                schema = rows.schema.with_metadata(texts)
                file = stack.enter_context(pq.ParquetWriter(path, schema))
            file.write_table(rows)


_WRITERS = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".npz": _write_npz,
    ".jsonl": _write_jsonl,
}


def check_table(path: Path, *inputs: str | Path, force: bool) -> None:
    """Refuse an output that cannot be written, before any work is done."""
    if path.suffix not in _WRITERS:
        raise InputError(
            f"cannot write {path}: its suffix must be one of {', '.join(_WRITERS)}"
        )
    _common.check_writable(path, *inputs, force=force)


def text_column(path: Path, source: CountedSource, rows: Any, no_text: bool) -> Columns:
    """Return the column of texts; none for counts, or in .npz, which pads all texts."""
    if no_text or source.texts is None or path.suffix == ".npz":
        return {}
    return {"text": source.texts(rows)}


def write_table(path: Path, blocks: Blocks) -> None:
    """Write blocks of rows to `path`, one at a time except in .npz.

    The file appears when all are written.
    """
    with atomic_file(path) as temporary:
        _WRITERS[path.suffix](temporary, blocks)
