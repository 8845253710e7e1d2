"""The processes that train one model together."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch import Tensor

from docsigma.exceptions import InputError


@dataclass(frozen=True)
class Ranks:
    """The processes that train one model together, as one of them sees it.

    By default there is one, and `sum` returns its argument. With several, all must call
    the same methods in the same order; they communicate by ``torch.distributed``.

    Attributes
    ----------
    rank : int
        Number of this process; process 0 writes what is written once.
    size : int
        Number of processes.

    Examples
    --------
    >>> Ranks().sum(torch.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """

    rank: int = 0
    size: int = 1

    @classmethod
    def join(cls) -> Ranks:
        """Join the processes that were started together.

        These are the process group of ``torch.distributed`` if there is one, as under
        Ray Train and Spark's TorchDistributor, else those that ``torchrun`` started,
        else this process alone. GPUs communicate over nccl, the rest over gloo.
        """
        from torch import distributed

        if not distributed.is_available():
            return cls()
        if not distributed.is_initialized():
            if int(os.environ.get("WORLD_SIZE", "1")) < 2 or "RANK" not in os.environ:
                return cls()
            backend = "gloo"
            if torch.cuda.is_available():
                torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
                backend = "cpu:gloo,cuda:nccl"
            # Training fails this long after a machine was lost silently.
            patience = timedelta(minutes=10)
            with _input_errors():
                distributed.init_process_group(backend, timeout=patience)
        return cls(distributed.get_rank(), distributed.get_world_size())

    def leave(self) -> None:
        """Leave the process group at the end of the work."""
        from torch import distributed

        if self.size > 1 and distributed.is_initialized():
            distributed.destroy_process_group()

    def sum(self, tensor: Tensor) -> Tensor:
        """Add up a tensor over the processes, in place; return it.

        The order of the additions depends only on the number of processes, so all get
        the same bits, and the same again if the work is repeated.
        """
        if self.size > 1:
            from torch import distributed

            _in_place(distributed.all_reduce, tensor)
        return tensor

    def first(self, tensor: Tensor) -> Tensor:
        """Copy the first process's tensor to all, in place; return it."""
        if self.size > 1:
            from torch import distributed

            _in_place(lambda given: distributed.broadcast(given, 0), tensor)
        return tensor

    def any(self, flag: bool) -> bool:
        """Return whether `flag` is true in any of the processes."""
        if self.size == 1:
            return flag
        return bool(self.sum(torch.tensor(int(flag))))

    def wait(self) -> None:
        """Wait until all processes have reached this call."""
        self.any(False)


def _in_place(work: Callable[[Tensor], object], tensor: Tensor) -> None:
    """Run a collective operation on a tensor, on whatever device it is."""
    from torch import distributed

    with _input_errors():
        if tensor.is_cpu and distributed.get_backend() == "nccl":
            # A group that Ray or Spark made may support only GPUs.
            there = tensor.cuda()
            work(there)
            tensor.copy_(there)
        else:
            work(tensor)


@contextlib.contextmanager
def _input_errors() -> Iterator[None]:
    """Turn the error of a lost process into an InputError."""
    try:
        yield
    except RuntimeError as error:
        raise InputError(
            "another process of this training has ended or cannot be reached: see its "
            "own message; the last complete checkpoint is kept, and --resume continues "
            f"from it ({str(error).splitlines()[0].strip()})"
        ) from error
