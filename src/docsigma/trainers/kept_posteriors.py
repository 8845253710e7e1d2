"""Storage for the posterior of every document, in memory or in a file."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from pathlib import Path

    from docsigma.covariances import Gaussians


def repeated(one: Gaussians, n: int, folder: Path | None) -> Gaussians:
    """Return a posterior n times, in writable memory.

    With a `folder` the memory is mapped to a file there, so that the system can write
    pages out when memory is short. The file has no name, and ends with the process.
    """
    tensors = {}
    for name, tensor in one.tensors().items():
        shape = (n, *tensor.shape[1:])
        if folder is None or not tensor.is_cpu or not n:
            tensors[name] = tensor.expand(shape).clone()
            continue
        with tempfile.TemporaryFile(dir=folder) as file:
            array = np.memmap(file, tensor.numpy().dtype, "w+", shape=shape)
        tensors[name] = torch.from_numpy(array).copy_(tensor.expand(shape))
    return one.like(tensors)
