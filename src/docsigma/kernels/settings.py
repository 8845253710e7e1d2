"""How the kernels divide their work: every size, with the benchmark that chose it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

# Largest array of intermediate results on a device without tuned tiles. It bounds the
# memory of a call.
BLOCK_BYTES = 512 * 2**20


@dataclass(frozen=True)
class TileSizes:
    """How words and points are divided on a CPU.

    Attributes
    ----------
    words : int
        Words in a tile (`benchmarks/primitive.py`).
    points : int
        Points in a block: enough for efficient products, few enough that a tile of
        probabilities stays in the cache (`benchmarks/primitive.py`).
    kept_bytes : int
        Probabilities kept for the gradient in the loadings, which needs the complete
        sums (`benchmarks/primitive.py`).
    few_points : int
        Up to this many points, products with a row of words per point are faster than
        with a row of points per word: by 3 for one point, by 6 for two
        (`benchmarks/few_points.py`).
    product_bytes : int
        Products of the loadings of a tile of words, for second moments: 8 to 32 MiB
        are equally fast, 128 MiB 10 to 20 % slower (`benchmarks/second_moments.py`).
    """

    words: int = 4096
    points: int = 1024
    kept_bytes: int = 256 * 2**20
    few_points: int = 32
    product_bytes: int = 32 * 2**20


class Tiling(NamedTuple):
    """Tile sizes of a fused kernel.

    A program keeps `rows` of one matrix and streams tiles of `tile` rows of the other;
    `resident` programs fit the registers and the shared memory of a processor.
    """

    rows: int
    tile: int
    warps: int
    stages: int
    resident: int


# By the largest width they serve; the fastest of those tried on an H200
# (`benchmarks/gpu.py`). On other GPUs than data-centre Hopper nothing was measured, and
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
# Padded matrices have a multiple of this many rows, which every tile size divides.
UNIT = max(max(tiling.rows, tiling.tile) for tiling in FIRST_TILINGS.values())
