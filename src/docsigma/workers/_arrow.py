"""Columns of numbers and strings as Arrow has them."""

from __future__ import annotations

from typing import Any


def arrow_column(values: Any) -> Any:
    """Return a column: strings from a list, numbers from a vector or a matrix."""
    import pyarrow as pa

    if isinstance(values, list):
        # Said, for a block without one label has no type of its own.
        return pa.array(values, pa.string())
    if values.ndim == 1:
        return pa.array(values)
    flat = pa.array(values.reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, values.shape[1])
