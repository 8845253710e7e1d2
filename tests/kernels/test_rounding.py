from __future__ import annotations

import pytest
import torch

from docsigma.kernels.rounding import relative_rounding, use_rounding


def test_rounding_is_that_of_the_dtype_on_a_cpu():
    with use_rounding("tf32"):
        for dtype in (torch.float32, torch.float64):
            own = relative_rounding(torch.ones(1, dtype=dtype))
            assert own == 8 * torch.finfo(dtype).eps


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_rounding_is_that_of_the_products_on_a_gpu():
    with use_rounding("tf32"):
        assert relative_rounding(torch.ones(1, device="cuda")) == 2.0**-11
        double = torch.ones(1, device="cuda", dtype=torch.float64)
        assert relative_rounding(double) == 8 * torch.finfo(torch.float64).eps
