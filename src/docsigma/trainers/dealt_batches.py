"""The documents of each batch, and which of them belong to this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from docsigma.random import Stream, generator

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from docsigma.ranks import Ranks


class DealtBatches:
    """Batches of documents, each divided equally among the processes.

    Batches depend on the seed, not on the number of processes, and are the same in
    every pass. They have about the same size: the step of a small last one would be
    mere noise. A process gets a range of the sorted documents of a batch, so that they
    are close to each other on a disk; with more processes than documents in a batch,
    some get none.

    Attributes
    ----------
    rows : array
        Documents of this process, sorted.
    parts : list of arrays
        Those of each batch, as positions in `rows`.
    sizes : list of int
        Documents of each batch, including those of other processes.
    within : list of slice
        Position of each part in its batch.
    first : array
        All documents of the first batch.
    """

    def __init__(
        self, n_documents: int, batch_size: int, seed: int, ranks: Ranks
    ) -> None:
        self.ranks = ranks
        source = generator(seed, Stream.BATCHES)
        order = torch.randperm(n_documents, generator=source)
        n_batches = -(-n_documents // batch_size)
        self.sizes: list[int] = []
        self.within: list[slice] = []
        dealt: list[NDArray[np.intp]] = []
        for drawn in torch.tensor_split(order, n_batches):
            batch = np.sort(drawn.numpy())
            if not dealt:
                self.first: NDArray[np.intp] = batch
            bounds = len(batch) * np.arange(ranks.size + 1) // ranks.size
            own = slice(int(bounds[ranks.rank]), int(bounds[ranks.rank + 1]))
            self.sizes.append(len(batch))
            self.within.append(own)
            dealt.append(batch[own])
        self.rows: NDArray[np.intp] = np.sort(np.concatenate(dealt))
        self.parts = [np.searchsorted(self.rows, part) for part in dealt]

    def __len__(self) -> int:
        return len(self.sizes)

    def gather(self, tensor: Tensor, rows: NDArray[np.intp]) -> Tensor:
        """Return some rows of a tensor whose rows are divided among the processes."""
        place = np.searchsorted(self.rows, rows)
        mine = np.append(self.rows, -1)[place] == rows
        found = tensor.new_zeros(len(rows), *tensor.shape[1:])
        found[torch.from_numpy(mine)] = tensor[torch.from_numpy(place[mine])]
        return self.ranks.sum(found)
