"""How the kernels cut their work: every size, with what measured it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

# The greatest array of intermediate results on a device without tiles of its own. It
# bounds the memory of a call, and was chosen for that.
BLOCK_BYTES = 512 * 2**20


@dataclass(frozen=True)
class TileSizes:
    """How the words and the points are cut on a CPU.

    Attributes
    ----------
    words : int
        Words in a tile (`benchmarks/primitive.py`).
    points : int
        Points at once: enough for efficient products, few enough that a tile of
        probabilities stays in the cache (`benchmarks/primitive.py`).
    kept_bytes : int
        Probabilities kept for the gradient in the loadings, which needs the finished
        sums (`benchmarks/primitive.py`).
    few_points : int
        Up to so many points, a row of words per point makes faster products than a row
        of points per word: three times for one point, six for two
        (`benchmarks/few_points.py`).
    product_bytes : int
        Products of the loadings of a tile of words, for second moments: from 8 to 32
        MiB equally fast, 128 MiB a tenth to a fifth slower
        (`benchmarks/second_moments.py`).
    """

    words: int = 4096
    points: int = 1024
    kept_bytes: int = 256 * 2**20
    few_points: int = 32
    product_bytes: int = 32 * 2**20


class Tiling(NamedTuple):
    """How a fused kernel works.

    It keeps `rows` of one matrix and streams tiles of `tile` rows of the other;
    `resident` programs fit the registers and the shared memory of a processor.
    """

    rows: int
    tile: int
    warps: int
    stages: int
    resident: int


# By the greatest width they serve; the fastest of those tried on an H200
# (`benchmarks/gpu.py`). Where none was measured, on GPUs other than data-centre Hopper,
# the fused kernels do not run.
FIRST_TILINGS = {
    64: Tiling(64, 128, 4, 3, 3),
    128: Tiling(64, 128, 4, 2, 2),
    224: Tiling(64, 64, 4, 3, 2),
    256: Tiling(128, 64, 8, 3, 1),
    400: Tiling(128, 32, 8, 3, 1),
    448: Tiling(128, 64, 8, 2, 1),
    512: Tiling(128, 32, 8, 3, 1),
}
SECOND_TILINGS = {
    64: Tiling(64, 128, 4, 3, 2),
    128: Tiling(64, 64, 4, 3, 2),
    208: Tiling(128, 64, 8, 3, 1),
    256: Tiling(128, 64, 8, 2, 1),
    400: Tiling(128, 32, 8, 3, 1),
    512: Tiling(128, 32, 8, 2, 1),
}
MAX_COMPONENTS = max(FIRST_TILINGS)
# Padded matrices have a multiple of this many rows. Tiles are powers of two: all of
# them divide it.
UNIT = max(max(tiling.rows, tiling.tile) for tiling in FIRST_TILINGS.values())
