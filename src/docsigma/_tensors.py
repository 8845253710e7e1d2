"""Reading and writing named arrays in safetensors files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from docsigma._files import atomic_file
from docsigma.exceptions import InputError

# The format's letters for numpy's kinds of numbers; the size in bits follows.
LETTERS = {"f": "F", "i": "I", "u": "U"}


def write_tensors(
    path: str | os.PathLike[str],
    arrays: Mapping[str, np.ndarray[Any, Any]],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write `arrays` to `path`, whole or not at all.

    The same arrays and metadata always make the same bytes. The safetensors library
    keeps the metadata in a hash map, whose order differs from process to process, so
    the file is put together here.
    """
    parts = _encode(arrays, {"format": "docsigma", **(metadata or {})})
    with atomic_file(path) as temporary:
        _write(temporary, parts)


def _write(path: Path, parts: list[Any]) -> None:
    # One by one: joined, they would be in memory twice.
    with path.open("wb") as handle:
        handle.writelines(parts)


def _encode(
    arrays: Mapping[str, np.ndarray[Any, Any]], metadata: Mapping[str, str]
) -> list[Any]:
    """Return the parts of a safetensors file: length of the header, header, data."""
    plain = {
        name: np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")
        for name, array in arrays.items()
    }
    header: dict[str, Any] = {"__metadata__": dict(sorted(metadata.items()))}
    # Wide numbers first: each array then starts at a multiple of its own width.
    names = sorted(plain, key=lambda name: (-plain[name].itemsize, name))
    end = 0
    for name in names:
        start, end = end, end + plain[name].nbytes
        header[name] = {
            "dtype": _type_name(plain[name].dtype),
            "shape": plain[name].shape,
            "data_offsets": (start, end),
        }
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    # Data must start at a multiple of eight bytes.
    text += b" " * (-len(text) % 8)
    data = [plain[name].data for name in names]
    return [len(text).to_bytes(8, "little"), text, *data]


def _type_name(dtype: np.dtype[Any]) -> str:
    if dtype.kind == "b":
        return "BOOL"
    if dtype.kind not in LETTERS or dtype.itemsize > 8:
        raise TypeError(f"an array of {dtype} does not fit into a safetensors file")
    return f"{LETTERS[dtype.kind]}{8 * dtype.itemsize}"


def read_tensors(
    path: str | os.PathLike[str],
) -> tuple[dict[str, np.ndarray[Any, Any]], dict[str, str]]:
    """Return the arrays and the metadata of a file that :func:`write_tensors` wrote."""
    if not Path(path).is_file():
        raise InputError(f"{path} does not exist")
    try:
        with safe_open(path, framework="numpy") as handle:
            metadata = dict(handle.metadata() or {})
            arrays = {name: handle.get_tensor(name) for name in handle.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise InputError(
            f"{path} is damaged or not safetensors: {str(error).splitlines()[0]}"
        ) from error
    if metadata.get("format") != "docsigma":
        raise InputError(f"{path} is a safetensors file that docsigma did not write")
    return arrays, metadata
