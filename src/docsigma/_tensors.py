"""Named arrays in a safetensors file, read and written with care."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from docsigma._files import atomic_file
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

__all__ = ["read_tensors", "write_tensors"]


def write_tensors(
    path: str | os.PathLike[str],
    arrays: Mapping[str, np.ndarray[Any, Any]],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write `arrays` to `path`, whole or not at all."""
    # Not np.ascontiguousarray: it makes a vector of a number.
    contiguous = {name: np.asarray(value, order="C") for name, value in arrays.items()}
    data = save(contiguous, {"format": "docsigma", **(metadata or {})})
    with atomic_file(path) as temporary:
        temporary.write_bytes(data)


def read_tensors(
    path: str | os.PathLike[str],
) -> tuple[dict[str, np.ndarray[Any, Any]], dict[str, str]]:
    """Read the arrays and the metadata of a file that :func:`write_tensors` wrote.

    Raises
    ------
    InputError
        If the file is missing, damaged, or written by something else.
    """
    if not Path(path).is_file():
        raise InputError(f"{path} does not exist")
    try:
        with safe_open(path, framework="numpy") as handle:
            metadata = dict(handle.metadata() or {})
            arrays = {name: handle.get_tensor(name) for name in handle.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise InputError(
            f"{path} is damaged or no safetensors file: {str(error).splitlines()[0]}"
        ) from error
    if metadata.get("format") != "docsigma":
        raise InputError(f"{path} is a safetensors file that docsigma did not write")
    return arrays, metadata
