r"""The one primitive fused for CUDA: neither logits nor probabilities reach memory.

Two kernels as in flash attention. One keeps a block of points and iterates over the
words: ``lse``, ``first`` and ``second``, with an online maximum; if the points are
few, the words are split over several programs and the parts combined. The other keeps
a block of words and iterates over the points, with known ``lse``: the gradients.

Relative errors (Frobenius norm, against float64) of `benchmarks/gpu.py` on an H200, for
11314 points, 56438 words and K from 50 to 400 are those of torch's TF32:

================  ==================  ==================
result            fused               torch, TF32
================  ==================  ==================
lse               0.9e-4 to 1.7e-4    0.9e-4 to 1.7e-4
first             2.3e-4 to 3.1e-4    2.6e-4 to 3.3e-4
second            0.5e-4 to 1.2e-4    0.7e-4 to 1.3e-4
loading_gradient  1.9e-4 to 2.5e-4    1.7e-4 to 2.4e-4
bias_gradient     0.5e-5 to 2.0e-5    0.5e-5 to 2.0e-5
================  ==================  ==================

bfloat16 in place of float16 saved 4 to 9 % of the time for eight times the error
(`benchmarks/results/gpu.json`), and was removed.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from docsigma.exceptions import InputError
from docsigma.kernels import _plan as plan
from docsigma.kernels import _triton_kernels as kernels
from docsigma.kernels.settings import MAX_COMPONENTS, UNIT, Tiling
from docsigma.kernels.softmax_moments import SoftmaxMoments

# float16 has the 10-bit mantissa of TF32 and twice its speed. Powers of two scale every
# matrix into its range: only elements below 2**-30 of the largest underflow.
DTYPE = torch.float16


@dataclass(frozen=True)
class PreparedLoadings:
    """A matrix as the kernels read it: scaled, in 16 bits, padded.

    For words, with their bias and optional squares, it can be used in many calls.
    """

    values: Tensor
    largest: Tensor
    squares: Tensor | None = None
    bias: Tensor | None = None

    @classmethod
    def of(
        cls, loadings: Tensor, bias: Tensor, *, second: bool = False
    ) -> PreparedLoadings:
        """Prepare `loadings` and `bias`, and the squares too if `second`."""
        # torch gives device_of no types.
        with torch.cuda.device_of(loadings):  # type: ignore[no-untyped-call]
            return _round(loadings, bias=bias, squares=second)


def available(like: Tensor) -> bool:
    """Whether `fused_moments` can run on `like`'s device, in its dtype.

    Tilings were measured on data-centre Hopper only: elsewhere plain torch runs.
    """
    if kernels.triton is None or not like.is_cuda or like.dtype != torch.float32:
        return False
    return torch.cuda.get_device_capability(like.device) == (9, 0)


def fused_moments(
    points: Tensor,
    loadings: Tensor,
    bias: Tensor,
    *,
    first: bool = False,
    second: bool = False,
    weights: Tensor | None = None,
    prepared: PreparedLoadings | None = None,
) -> SoftmaxMoments:
    """Return what `softmax_moments` returns, with operands rounded as in TF32.

    Everything else, including sums, is float32. A negative weight gives NaN. `prepared`
    has the same loadings and bias, prepared once for many calls.
    """
    n_points, n_components = points.shape
    first = first or second
    if not 1 <= n_components <= MAX_COMPONENTS:
        raise InputError(
            f"`points` must have 1 to {MAX_COMPONENTS} columns for the fused kernels, "
            f"got {n_components}"
        )
    if n_points == 0:
        return SoftmaxMoments(
            lse=points.new_empty(0),
            first=torch.empty_like(points) if first else None,
            second=torch.empty_like(points) if second else None,
            loading_gradient=None if weights is None else torch.zeros_like(loadings),
            bias_gradient=None if weights is None else torch.zeros_like(bias),
        )
    if prepared is None:
        prepared = PreparedLoadings.of(loadings, bias, second=second)
    if second and prepared.squares is None:
        raise InputError("`prepared` was made without second=True, got second=True")
    # torch gives device_of no types.
    with torch.cuda.device_of(points):  # type: ignore[no-untyped-call]
        w = _round(points)
        moments, shift, weights_largest = _pass_over_words(
            w, prepared, points, first, second, weights
        )
        if shift is None:
            return moments
        gradients = _pass_over_points(
            w, prepared, shift, weights_largest, loadings.shape
        )
    return SoftmaxMoments(moments.lse, moments.first, moments.second, *gradients)


def _pass_over_words(
    w: PreparedLoadings,
    words: PreparedLoadings,
    points: Tensor,
    first: bool,
    second: bool,
    weights: Tensor | None,
) -> tuple[SoftmaxMoments, Tensor | None, Tensor]:
    n_points, n_components = points.shape
    n_rows = w.values.shape[0]
    n_words, width = words.values.shape
    tiling, slots = plan.tiling(width, points.device, second)
    blocks = -(-n_points // tiling.rows)
    parts, share = plan.split(blocks, n_words, slots)
    top = points.new_empty(parts, n_rows)
    total = torch.empty_like(top)
    nothing = top
    first_sums = points.new_empty(parts, n_rows, width) if first else nothing
    second_sums = points.new_empty(parts, n_rows, width) if second else nothing
    for with_first, with_second, head, tail in plan.passes(first, second, width):
        kernels.point_kernel[(blocks, parts)](
            w.values,
            w.largest,
            words.values,
            words.values if words.squares is None else words.squares,
            words.largest,
            words.bias,
            top,
            total,
            first_sums,
            second_sums,
            n_rows,
            n_words,
            share,
            FIRST=with_first,
            SECOND=with_second,
            HEAD=head,
            TAIL=tail,
            **_sizes(tiling, n_components),
        )
    lse = points.new_empty(n_points)
    mean = points.new_empty(n_points, n_components) if first else nothing
    square = points.new_empty(n_points, n_components) if second else nothing
    shift = None if weights is None else points.new_empty(n_rows)
    largest = nothing if weights is None else _largest(weights)
    rows = 4  # of a program: three sums of up to 512 columns stay in its registers
    kernels.combine_kernel[(n_rows // rows,)](
        top,
        total,
        first_sums,
        second_sums,
        words.largest,
        nothing if weights is None else weights.contiguous(),
        largest,
        lse,
        mean,
        square,
        nothing if shift is None else shift,
        n_rows,
        n_points,
        n_components,
        parts,
        FIRST=first,
        SECOND=second,
        WEIGHTS=weights is not None,
        ROWS=rows,
        COLUMNS=plan.power(n_components),
        WIDTH=width,
    )
    moments = SoftmaxMoments(lse, mean if first else None, square if second else None)
    return moments, shift, largest


def _sizes(tiling: Tiling, n_components: int) -> dict[str, int]:
    """Return the compile-time constants of a kernel."""
    sizes = {"ROWS": tiling.rows, "TILE": tiling.tile}
    sizes |= {f"C{i}": size for i, size in enumerate(plan.chunks(n_components))}
    return sizes | {"num_warps": tiling.warps, "num_stages": tiling.stages}


def _pass_over_points(
    w: PreparedLoadings,
    words: PreparedLoadings,
    shift: Tensor,
    weights_largest: Tensor,
    shape: torch.Size,
) -> tuple[Tensor, Tensor]:
    n_features, n_components = shape
    (n_points, width), n_rows = w.values.shape, words.values.shape[0]
    tiling, slots = plan.tiling(width, shift.device, second=False)
    blocks = -(-n_features // tiling.rows)
    parts, share = plan.split(blocks, n_points, slots)
    loading_gradient = shift.new_empty(parts, n_rows, n_components)
    bias_gradient = shift.new_empty(parts, n_rows)
    for _, _, head, tail in plan.passes(True, False, width):
        kernels.word_kernel[(blocks, parts)](
            w.values,
            w.largest,
            words.values,
            words.largest,
            words.bias,
            shift,
            weights_largest,
            loading_gradient,
            bias_gradient,
            n_rows,
            n_points,
            n_components,
            share,
            HEAD=head,
            TAIL=tail,
            **_sizes(tiling, n_components),
        )
    loading_gradient = loading_gradient[:, :n_features]
    bias_gradient = bias_gradient[:, :n_features]
    if parts == 1:
        return loading_gradient[0], bias_gradient[0]
    return loading_gradient.sum(0), bias_gradient.sum(0)


def _round(
    matrix: Tensor, *, bias: Tensor | None = None, squares: bool = False
) -> PreparedLoadings:
    n_rows, n_columns = matrix.shape
    width = sum(plan.chunks(n_columns))
    rows = -(-n_rows // UNIT) * UNIT
    largest = _largest(matrix)
    values = matrix.new_empty(rows, width, dtype=DTYPE)
    squared = torch.empty_like(values) if squares else None
    padded_bias = None if bias is None else bias.new_empty(rows)
    at_once = 16  # rows of a program
    kernels.round_kernel[(rows // at_once,)](
        matrix.contiguous(),
        largest,
        values,
        values if squared is None else squared,
        largest if bias is None else bias.contiguous(),
        largest if padded_bias is None else padded_bias,
        n_rows,
        n_columns,
        SQUARES=squares,
        BIAS=bias is not None,
        ROWS=at_once,
        COLUMNS=plan.power(width),
        WIDTH=width,
    )
    return PreparedLoadings(values, largest, squared, padded_bias)


def _largest(values: Tensor) -> Tensor:
    largest: Tensor = torch.linalg.vector_norm(values, float("inf"))
    return largest
