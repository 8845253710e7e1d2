"""Types of arrays, and checks of arguments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from docsigma.exceptions import InputError

Floats = NDArray[np.float64]


def check_choice(name: str, value: str, choices: Iterable[str]) -> None:
    """Refuse a value that is not one of the choices."""
    if value not in choices:
        raise InputError(f"`{name}` must be one of {', '.join(choices)}, got {value!r}")


def floats(name: str, values: ArrayLike, n_dimensions: int) -> NDArray[Any]:
    """Return a copy of `values` as a finite float array of `n_dimensions` axes."""
    array = np.array(values)
    if array.ndim != n_dimensions:
        raise InputError(
            f"`{name}` must have {n_dimensions} dimensions, got {array.ndim}"
        )
    if not np.issubdtype(array.dtype, np.floating):
        array = array.astype(np.float64)
    check_finite(f"`{name}`", array)
    return array


def check_shape(name: str, array: NDArray[Any], shape: tuple[int, ...]) -> None:
    """Refuse an array of another shape."""
    if array.shape != shape:
        raise InputError(f"`{name}` must have the shape {shape}, got {array.shape}")


def check_finite(what: str, array: NDArray[Any]) -> None:
    """Refuse an array that has infinity or NaN; the message locates the first."""
    if not np.isfinite(array).all():
        place = np.argwhere(~np.isfinite(array))[0].tolist()
        where = f" at {place}" if place else ""
        raise InputError(f"{what} must be finite, got {array[tuple(place)]}{where}")


def check_all(
    name: str, array: NDArray[Any], allowed: NDArray[np.bool_], rule: str
) -> None:
    """Refuse an array unless all entries are `allowed`; locate the first other."""
    if not allowed.all():
        place = tuple(np.argwhere(~allowed)[0].tolist())
        axes = zip(("row", "column"), place, strict=False)
        where = ", ".join(f"{axis} {index}" for axis, index in axes)
        raise InputError(f"`{name}` must {rule}, got {array[place]:g} in {where}")
