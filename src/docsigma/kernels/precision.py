"""How far products on a GPU may round."""

from __future__ import annotations

import contextlib
from contextvars import ContextVar
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["PRECISIONS", "Precision", "precision", "use_precision"]

Precision = Literal["float32", "tf32", "bf16"]
PRECISIONS: tuple[Precision, ...] = ("float32", "tf32", "bf16")
_current: ContextVar[Precision] = ContextVar("precision", default="float32")


def precision() -> Precision:
    """Return the precision in force; it matters on a GPU only."""
    return _current.get()


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
