"""Columns of numbers and strings, written as .parquet, .npz or .jsonl."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from docsigma._files import atomic_file
from docsigma.cli import _common
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

__all__ = ["check_table", "write_table"]

Columns = dict[str, Any]


def _write_jsonl(path: Path, columns: Columns) -> None:
    lists = {k: v if isinstance(v, list) else v.tolist() for k, v in columns.items()}
    with path.open("w", encoding="utf-8") as handle:
        for row in zip(*lists.values(), strict=True):
            record = dict(zip(lists, row, strict=True))
            handle.write(json.dumps(record, ensure_ascii=False) + "\n")


def _write_npz(path: Path, columns: Columns) -> None:
    import numpy as np

    arrays: Any = {name: np.asarray(column) for name, column in columns.items()}
    np.savez(path, **arrays)


def _write_parquet(path: Path, columns: Columns) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    def column(values: list[str] | np.ndarray[Any, Any]) -> Any:
        if isinstance(values, list) or values.ndim == 1:
            return pa.array(values)
        flat = pa.array(values.reshape(-1))
        return pa.FixedSizeListArray.from_arrays(flat, values.shape[1])

    pq.write_table(pa.table({k: column(v) for k, v in columns.items()}), path)


_WRITERS = {".parquet": _write_parquet, ".npz": _write_npz, ".jsonl": _write_jsonl}


def check_table(path: Path) -> None:
    """Refuse an output that cannot be written, before any work is done."""
    if path.suffix not in _WRITERS:
        raise InputError(
            f"cannot write {path}: its suffix must be one of {', '.join(_WRITERS)}"
        )
    if path.suffix == ".parquet":
        try:
            import pyarrow  # noqa: F401
        except ImportError as error:
            raise InputError(
                "writing .parquet needs pyarrow: pip install docsigma[tables]"
            ) from error
    _common.check_writable(path)


def write_table(path: Path, columns: Columns) -> None:
    """Write columns (lists, vectors, matrices) to `path`, whole or not at all."""
    with atomic_file(path) as temporary:
        _WRITERS[path.suffix](temporary, columns)
