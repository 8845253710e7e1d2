"""The Triton kernels of `docsigma.kernels.fused`.

A matrix of width K is rounded to 16 bits, its rows padded to a multiple of 128 and its
columns to ``C0 + C1 + C2``: tiles must be powers of two wide, and three of them come
close to any K (400 is 256 + 128 + 16). The padding is zero, padded words have a bias of
minus infinity and padded points a shift of infinity, so no loop needs a mask. Logits
are in base 2.

A separate kernel rounds the points: a computed operand takes registers, a loaded one
sits in shared memory (rounding at use made the training pass 20 to 25 % slower at
K 200 and 400).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

try:
    import triton as triton
    import triton.language as tl
except ImportError:
    triton = None

if TYPE_CHECKING:
    from collections.abc import Callable


def _jit(function: Callable[..., None]) -> Any:
    return function if triton is None else triton.jit(function)


def _constant(value: float) -> Any:
    return value if triton is None else tl.constexpr(value)


LOG2_E = _constant(math.log2(math.e))
LN_2 = _constant(math.log(2))
# Exponentials are lifted by this power of two, so that float16 keeps the relative
# rounding of TF32 down to 2**-28 of the most probable word.
LIFT = _constant(14.0)
# Finite, so that a tile of words of probability zero gives 0 and not NaN.
LOWEST = _constant(-1e30)


@_jit
def _scale(largest: tl.tensor) -> tl.tensor:
    """Return the power of two that brings `largest` into [64, 128)."""
    bits = tl.load(largest).to(tl.int32, bitcast=True)
    exponent = tl.maximum((bits >> 23) & 255, 6)
    return ((260 - exponent) << 23).to(tl.float32, bitcast=True)


@_jit
def _at(ROWS: tl.constexpr, COLUMNS: tl.constexpr, stride: tl.tensor) -> tl.tensor:
    """Return the offsets of a tile of a matrix from its first element.

    Offsets have 32 bits and bases 64: tiles of 64-bit addresses would spill.
    """
    return tl.arange(0, ROWS)[:, None] * stride + tl.arange(0, COLUMNS)[None, :]


@_jit
def round_kernel(
    source: tl.tensor,
    largest: tl.tensor,
    target: tl.tensor,
    squares: tl.tensor,
    bias: tl.tensor,
    bias_target: tl.tensor,
    n_rows: tl.tensor,
    n_columns: tl.tensor,
    SQUARES: tl.constexpr,
    BIAS: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    WIDTH: tl.constexpr,
) -> None:
    """Scale, round and pad a matrix; also its squares and the words' bias."""
    start = tl.program_id(0).to(tl.int64) * ROWS
    rows = start + tl.arange(0, ROWS)
    columns = tl.arange(0, COLUMNS)
    inside = (rows < n_rows)[:, None] & (columns < n_columns)[None, :]
    at = start * n_columns + _at(ROWS, COLUMNS, n_columns)
    x = tl.load(source + at, mask=inside, other=0.0) * _scale(largest)
    to = start * WIDTH + _at(ROWS, COLUMNS, WIDTH)
    padded = (columns < WIDTH)[None, :]
    tl.store(target + to, x.to(target.dtype.element_ty), mask=padded)
    if SQUARES:
        tl.store(squares + to, (x * x).to(target.dtype.element_ty), mask=padded)
    if BIAS:
        m = tl.load(bias + rows, mask=rows < n_rows, other=float("-inf"))
        tl.store(bias_target + rows, m * LOG2_E)


@_jit
def point_kernel(
    points: tl.tensor,
    points_largest: tl.tensor,
    loadings: tl.tensor,
    squares: tl.tensor,
    loadings_largest: tl.tensor,
    bias: tl.tensor,
    top: tl.tensor,
    total: tl.tensor,
    first: tl.tensor,
    second: tl.tensor,
    n_rows: tl.tensor,
    n_words: tl.tensor,
    share: tl.tensor,
    FIRST: tl.constexpr,
    SECOND: tl.constexpr,
    HEAD: tl.constexpr,
    TAIL: tl.constexpr,
    ROWS: tl.constexpr,
    TILE: tl.constexpr,
    C0: tl.constexpr,
    C1: tl.constexpr,
    C2: tl.constexpr,
) -> None:
    """Sum one share of the words for one block of points, by an online maximum.

    The sums of t (FIRST) and of its squares (SECOND) cover the columns C0 (HEAD), or
    C1 and C2 (TAIL), or both.
    """
    WIDTH: tl.constexpr = C0 + C1 + C2
    block = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    points += block * ROWS * WIDTH
    w0 = tl.load(points + _at(ROWS, C0, WIDTH))
    if C1 > 0:
        w1 = tl.load(points + C0 + _at(ROWS, C1, WIDTH))
    if C2 > 0:
        w2 = tl.load(points + C0 + C1 + _at(ROWS, C2, WIDTH))
    unscale = LOG2_E / _scale(points_largest) / _scale(loadings_largest)
    highest = tl.full((ROWS,), LOWEST, tl.float32)
    mass = tl.zeros((ROWS,), tl.float32)
    if HEAD:
        first0 = tl.zeros((ROWS, C0), tl.float32)
        second0 = tl.zeros((ROWS, C0), tl.float32)
    if TAIL and C1 > 0:
        first1 = tl.zeros((ROWS, C1), tl.float32)
        second1 = tl.zeros((ROWS, C1), tl.float32)
    if TAIL and C2 > 0:
        first2 = tl.zeros((ROWS, C2), tl.float32)
        second2 = tl.zeros((ROWS, C2), tl.float32)
    start = part.to(tl.int64) * share
    loadings += start * WIDTH
    squares += start * WIDTH
    bias += start
    for _ in range(tl.minimum(share, n_words - part * share) // TILE):
        t0 = tl.load(loadings + _at(TILE, C0, WIDTH))
        logits = tl.dot(w0, tl.trans(t0))
        if C1 > 0:
            t1 = tl.load(loadings + C0 + _at(TILE, C1, WIDTH))
            logits = tl.dot(w1, tl.trans(t1), logits)
        if C2 > 0:
            t2 = tl.load(loadings + C0 + C1 + _at(TILE, C2, WIDTH))
            logits = tl.dot(w2, tl.trans(t2), logits)
        logits = logits * unscale + tl.load(bias + tl.arange(0, TILE))[None, :]
        higher = tl.maximum(highest, tl.max(logits, 1))
        fade = tl.exp2(highest - higher)
        p = tl.exp2(logits - (higher - LIFT)[:, None])
        highest = higher
        mass = mass * fade + tl.sum(p, 1)
        p = p.to(points.dtype.element_ty)
        if FIRST:
            if HEAD:
                first0 = tl.dot(p, t0, first0 * fade[:, None])
            if TAIL and C1 > 0:
                first1 = tl.dot(p, t1, first1 * fade[:, None])
            if TAIL and C2 > 0:
                first2 = tl.dot(p, t2, first2 * fade[:, None])
        if SECOND:
            if HEAD:
                tt = tl.load(squares + _at(TILE, C0, WIDTH))
                second0 = tl.dot(p, tt, second0 * fade[:, None])
            if TAIL and C1 > 0:
                tt1 = tl.load(squares + C0 + _at(TILE, C1, WIDTH))
                second1 = tl.dot(p, tt1, second1 * fade[:, None])
            if TAIL and C2 > 0:
                tt2 = tl.load(squares + C0 + C1 + _at(TILE, C2, WIDTH))
                second2 = tl.dot(p, tt2, second2 * fade[:, None])
            squares += TILE * WIDTH
        loadings += TILE * WIDTH
        bias += TILE
    base = part.to(tl.int64) * n_rows + block * ROWS
    tl.store(top + base + tl.arange(0, ROWS), highest)
    tl.store(total + base + tl.arange(0, ROWS), mass)
    first += base * WIDTH
    second += base * WIDTH
    if FIRST:
        if HEAD:
            tl.store(first + _at(ROWS, C0, WIDTH), first0)
        if TAIL and C1 > 0:
            tl.store(first + C0 + _at(ROWS, C1, WIDTH), first1)
        if TAIL and C2 > 0:
            tl.store(first + C0 + C1 + _at(ROWS, C2, WIDTH), first2)
    if SECOND:
        if HEAD:
            tl.store(second + _at(ROWS, C0, WIDTH), second0)
        if TAIL and C1 > 0:
            tl.store(second + C0 + _at(ROWS, C1, WIDTH), second1)
        if TAIL and C2 > 0:
            tl.store(second + C0 + C1 + _at(ROWS, C2, WIDTH), second2)


@_jit
def combine_kernel(
    top: tl.tensor,
    total: tl.tensor,
    first_sums: tl.tensor,
    second_sums: tl.tensor,
    loadings_largest: tl.tensor,
    weights: tl.tensor,
    weights_largest: tl.tensor,
    lse: tl.tensor,
    first: tl.tensor,
    second: tl.tensor,
    shift: tl.tensor,
    n_rows: tl.tensor,
    n_points: tl.tensor,
    n_components: tl.tensor,
    n_parts: tl.tensor,
    FIRST: tl.constexpr,
    SECOND: tl.constexpr,
    WEIGHTS: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    WIDTH: tl.constexpr,
) -> None:
    """Rescale the parts of the words to one maximum, add and normalise them."""
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, COLUMNS)
    inside = rows < n_points
    keep = inside[:, None] & (columns < n_components)[None, :]
    highest = tl.full((ROWS,), LOWEST, tl.float32)
    at = rows
    for _ in range(n_parts):
        highest = tl.maximum(highest, tl.load(top + at))
        at += n_rows
    mass = tl.zeros((ROWS,), tl.float32)
    mean = tl.zeros((ROWS, COLUMNS), tl.float32)
    square = tl.zeros((ROWS, COLUMNS), tl.float32)
    at = rows
    for _ in range(n_parts):
        fade = tl.exp2(tl.load(top + at) - highest)
        mass += fade * tl.load(total + at)
        cells = at[:, None] * WIDTH + columns[None, :]
        if FIRST:
            x = tl.load(first_sums + cells, mask=keep, other=0.0)
            mean += fade[:, None] * x
        if SECOND:
            x = tl.load(second_sums + cells, mask=keep, other=0.0)
            square += fade[:, None] * x
        at += n_rows
    value = highest - LIFT + tl.log2(mass)
    tl.store(lse + rows, value * LN_2, mask=inside)
    unscale = 1.0 / _scale(loadings_largest)
    to = rows[:, None] * n_components + columns[None, :]
    if FIRST:
        tl.store(first + to, mean * (unscale / mass)[:, None], mask=keep)
    if SECOND:
        square *= (unscale * unscale / mass)[:, None]
        tl.store(second + to, square, mask=keep)
    if WEIGHTS:
        # Weights are scaled into [0, 1), so that lifted products fit in float16.
        weight = tl.load(weights + rows, mask=inside, other=0.0)
        weight *= _scale(weights_largest) / 128.0
        level = tl.where(inside, value - LIFT - tl.log2(weight), float("inf"))
        tl.store(shift + rows, level)


@_jit
def word_kernel(
    points: tl.tensor,
    points_largest: tl.tensor,
    loadings: tl.tensor,
    loadings_largest: tl.tensor,
    bias: tl.tensor,
    shift: tl.tensor,
    weights_largest: tl.tensor,
    loading_gradient: tl.tensor,
    bias_gradient: tl.tensor,
    n_rows: tl.tensor,
    n_points: tl.tensor,
    n_components: tl.tensor,
    share: tl.tensor,
    HEAD: tl.constexpr,
    TAIL: tl.constexpr,
    ROWS: tl.constexpr,
    TILE: tl.constexpr,
    C0: tl.constexpr,
    C1: tl.constexpr,
    C2: tl.constexpr,
) -> None:
    """Sum one share of the points for one block of words, with known lse.

    ``exp2(logits - shift)`` is the probability of the word times the point's weight.
    """
    WIDTH: tl.constexpr = C0 + C1 + C2
    block = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    loadings += block * ROWS * WIDTH
    t0 = tl.load(loadings + _at(ROWS, C0, WIDTH))
    if C1 > 0:
        t1 = tl.load(loadings + C0 + _at(ROWS, C1, WIDTH))
    if C2 > 0:
        t2 = tl.load(loadings + C0 + C1 + _at(ROWS, C2, WIDTH))
    m = tl.load(bias + block * ROWS + tl.arange(0, ROWS))
    unscale = LOG2_E / _scale(points_largest) / _scale(loadings_largest)
    mass = tl.zeros((ROWS,), tl.float32)
    if HEAD:
        sum0 = tl.zeros((ROWS, C0), tl.float32)
    if TAIL and C1 > 0:
        sum1 = tl.zeros((ROWS, C1), tl.float32)
    if TAIL and C2 > 0:
        sum2 = tl.zeros((ROWS, C2), tl.float32)
    start = part.to(tl.int64) * share
    points += start * WIDTH
    shift += start
    for _ in range(tl.minimum(share, n_points - part * share) // TILE):
        w0 = tl.load(points + _at(TILE, C0, WIDTH))
        logits = tl.dot(t0, tl.trans(w0))
        if C1 > 0:
            w1 = tl.load(points + C0 + _at(TILE, C1, WIDTH))
            logits = tl.dot(t1, tl.trans(w1), logits)
        if C2 > 0:
            w2 = tl.load(points + C0 + C1 + _at(TILE, C2, WIDTH))
            logits = tl.dot(t2, tl.trans(w2), logits)
        logits = logits * unscale + m[:, None]
        p = tl.exp2(logits - tl.load(shift + tl.arange(0, TILE))[None, :])
        mass += tl.sum(p, 1)
        p = p.to(points.dtype.element_ty)
        if HEAD:
            sum0 = tl.dot(p, w0, sum0)
        if TAIL and C1 > 0:
            sum1 = tl.dot(p, w1, sum1)
        if TAIL and C2 > 0:
            sum2 = tl.dot(p, w2, sum2)
        points += TILE * WIDTH
        shift += TILE
    base = part.to(tl.int64) * n_rows + block * ROWS
    # Weights were divided by 128, probabilities lifted by 2 ** LIFT = 128 ** 2.
    unlift = 1.0 / 128.0 / _scale(weights_largest)
    tl.store(bias_gradient + base + tl.arange(0, ROWS), mass * unlift)
    unlift /= _scale(points_largest)
    to = loading_gradient + base * n_components
    if HEAD:
        keep = (tl.arange(0, C0) < n_components)[None, :]
        tl.store(to + _at(ROWS, C0, n_components), sum0 * unlift, mask=keep)
    if TAIL and C1 > 0:
        to += C0
        keep = (tl.arange(0, C1) < n_components - C0)[None, :]
        tl.store(to + _at(ROWS, C1, n_components), sum1 * unlift, mask=keep)
    if TAIL and C2 > 0:
        to += C1
        keep = (tl.arange(0, C2) < n_components - C0 - C1)[None, :]
        tl.store(to + _at(ROWS, C2, n_components), sum2 * unlift, mask=keep)
