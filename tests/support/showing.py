"""Progress bars without the two seconds for which they wait."""

from __future__ import annotations

from tqdm import tqdm

__all__ = ["without_delay"]


def without_delay(*given, delay, **more):
    """Return a bar that is shown at once; the one asked for waits two seconds."""
    assert delay == 2
    return tqdm(*given, **more)
