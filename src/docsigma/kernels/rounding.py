"""Rounding of products on a GPU."""

from __future__ import annotations

import contextlib
from contextvars import ContextVar
from typing import TYPE_CHECKING, Literal

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

Rounding = Literal["float32", "tf32"]
ROUNDINGS: tuple[Rounding, ...] = ("float32", "tf32")
_current: ContextVar[Rounding] = ContextVar("rounding", default="float32")


def rounding() -> Rounding:
    """Return the current rounding; it matters only on a GPU."""
    return _current.get()


def is_coarse(like: Tensor) -> bool:
    """Whether products with this tensor round to TF32."""
    return like.is_cuda and like.dtype == torch.float32 and rounding() == "tf32"


def relative_rounding(result: Tensor) -> float:
    """Return the relative rounding error of a log of sums of products."""
    # TF32 keeps ten bits of an operand.
    own: float = 8 * torch.finfo(result.dtype).eps
    return 2.0**-11 if is_coarse(result) else own


@contextlib.contextmanager
def use_rounding(name: Rounding) -> Iterator[None]:
    """Round the operands of products on a GPU to `name` inside the block.

    Examples
    --------
    >>> with use_rounding("tf32"):
    ...     rounding()
    'tf32'
    >>> rounding()
    'float32'
    """
    token = _current.set(name)
    try:
        yield
    finally:
        _current.reset(token)
