"""How far products on a GPU may round."""

from __future__ import annotations

import contextlib
from contextvars import ContextVar
from typing import TYPE_CHECKING, Literal

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

Precision = Literal["float32", "tf32", "bf16"]
PRECISIONS: tuple[Precision, ...] = ("float32", "tf32", "bf16")
_current: ContextVar[Precision] = ContextVar("precision", default="float32")


def precision() -> Precision:
    """Return the precision in force; it matters on a GPU only."""
    return _current.get()


# Relative rounding of an operand of a product.
_ROUNDING = {"tf32": 2.0**-11, "bf16": 2.0**-8}


def rounding_of(result: Tensor) -> float:
    """Return how far a log of sums of products may be off, as a part of their size."""
    own: float = 8 * torch.finfo(result.dtype).eps
    if result.is_cuda and result.dtype == torch.float32:
        return max(own, _ROUNDING.get(precision(), 0.0))
    return own


@contextlib.contextmanager
def use_precision(name: Precision) -> Iterator[None]:
    """Round the operands of products on a GPU to `name` inside the block.

    Examples
    --------
    >>> with use_precision("tf32"):
    ...     precision()
    'tf32'
    >>> precision()
    'float32'
    """
    token = _current.set(name)
    try:
        yield
    finally:
        _current.reset(token)
