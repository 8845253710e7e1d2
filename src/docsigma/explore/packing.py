"""Arrays as bytes that a page can read without parsing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from docsigma._array_checks import Floats


def pack(arrays: Mapping[str, NDArray[Any]], **facts: Any) -> bytes:
    """Return arrays, and facts that JSON can hold, as bytes.

    Four bytes hold the length of the JSON after them, which has the type, start and
    length of each array; starts count from the first multiple of 8 after the JSON.

    Examples
    --------
    >>> pack({"x": np.zeros(2, dtype="float32")})[4:-8].decode().split("}")[0]
    '{"arrays": {"x": ["Float32Array", 0, 2]'
    """
    places, parts, at = {}, [], 0
    for name, array in arrays.items():
        data = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"))
        # JavaScript's name: Float32Array, Uint8Array, ...
        kind = f"{array.dtype.name.capitalize()}Array"
        places[name] = [kind, at, int(array.size)]
        # Typed arrays must start at multiples of 8.
        parts.append(data.tobytes() + b"\0" * (-data.nbytes % 8))
        at += len(parts[-1])
    header = json.dumps({"arrays": places, **facts}).encode()
    header += b" " * (-(len(header) + 4) % 8)
    return len(header).to_bytes(4, "little") + header + b"".join(parts)


def to_bytes(shares: Floats) -> NDArray[np.uint8]:
    """Map numbers from 0 to 1 to whole numbers from 0 to 255."""
    return np.rint(255 * np.clip(shares, 0, 1)).astype(np.uint8)
