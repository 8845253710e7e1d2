"""How the fused kernels divide their work: columns, passes, tiles and shares."""

from __future__ import annotations

from functools import cache

import torch

from docsigma.kernels.settings import FIRST_TILINGS, SECOND_TILINGS, UNIT, Tiling


def power(n: int) -> int:
    """Return the smallest power of two that is at least `n` and at least 16."""
    return max(16, 1 << (n - 1).bit_length())


@cache
def chunks(n_components: int) -> tuple[int, int, int]:
    """Return three powers of two that sum to `n_components` or more; some may be 0.

    Up to a width of 128, one product is as fast as three.
    """
    whole = power(n_components)
    pieces, left = [], n_components
    for last in (False, False, True):
        piece = 0 if left <= 0 else power(left)
        if piece > left > 16 and not last:
            piece //= 2
        pieces.append(piece)
        left -= piece
    if 128 < sum(pieces) < whole:
        return pieces[0], pieces[1], pieces[2]
    return min(whole, 256), max(whole - 256, 0), 0


@cache
def passes(first: bool, second: bool, width: int) -> list[tuple[bool, ...]]:
    """Return the launches, as FIRST, SECOND, HEAD, TAIL: as few as registers allow."""
    if not first or width * (1 + second) <= (256 if second else 400):
        return [(first, second, first, first)]
    moments = [(True, False), (False, True)][: 1 + second]
    if width <= 256:
        return [(*moment, True, True) for moment in moments]
    return [(*moment, head, not head) for moment in moments for head in (True, False)]


@cache
def tiling(width: int, device: torch.device, second: bool) -> tuple[Tiling, int]:
    """Return the tiling for `width`, and how many programs run at a time."""
    table = SECOND_TILINGS if second else FIRST_TILINGS
    processors = 1
    if device.type == "cuda":
        processors = torch.cuda.get_device_properties(device).multi_processor_count
    chosen = next(entry for widest, entry in table.items() if width <= widest)
    return chosen, chosen.resident * processors


@cache
def split(n_blocks: int, n_rows: int, resident: int) -> tuple[int, int]:
    """Return the number of parts of `n_rows` streamed rows, and the rows of each.

    All programs then end at about the same time.
    """
    n_units = n_rows // UNIT

    def time(share: int) -> tuple[int, int]:
        parts = -(-n_units // share)
        # A program costs about two units besides its loop.
        return -(-n_blocks * parts // resident) * (share + 2), parts

    share = min(range(1, n_units + 1), key=time)
    return -(-n_units // share), share * UNIT
