"""Which documents make a batch, and which of them are this process's."""

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
    """Batches of documents, each dealt to the processes in equal parts.

    Batches depend on the seed and not on the number of processes; they stay the same,
    and each pass draws their order again. They are of one size: a small last one would
    give T a step of mere noise. A process's part is a range of a batch's documents in
    their order, so that its documents lie near each other on a disk. It is empty where
    there are more processes than documents in a batch.

    Parameters
    ----------
    n_documents, batch_size : int
        Documents of the corpus and, about, of a batch.
    seed : int
        Decides what documents come together.
    ranks : Ranks
        To which of how many processes.

    Attributes
    ----------
    rows : array
        This process's documents, in their order.
    parts : list of arrays
        Those of each batch, as places in `rows`.
    sizes : list of int
        Documents of each batch, those of other processes included.
    within : list of slice
        Where a part lies in its batch.
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
        """Return the rows of documents in a tensor that has those of each process."""
        place = np.searchsorted(self.rows, rows)
        mine = np.append(self.rows, -1)[place] == rows
        found = tensor.new_zeros(len(rows), *tensor.shape[1:])
        found[torch.from_numpy(mine)] = tensor[torch.from_numpy(place[mine])]
        return self.ranks.sum(found)
