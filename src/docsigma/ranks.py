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

    By default there is one, and its sums are what they are. With more, all of them call
    the same methods in the same order; their machinery is ``torch.distributed``.

    Attributes
    ----------
    rank : int
        Number of this process, from 0; that one writes what is written once.
    size : int
        How many there are.

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

        Those of ``torch.distributed`` where they are joined already, as Ray Train and
        Spark's TorchDistributor do; else those that ``torchrun`` started; else this
        process is alone. GPUs talk over nccl, everything else over gloo.
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
            # A machine that is lost without a word ends the training after this.
            patience = timedelta(minutes=10)
            with _told():
                distributed.init_process_group(backend, timeout=patience)
        return cls(distributed.get_rank(), distributed.get_world_size())

    def leave(self) -> None:
        """Let the others go, at the end of the work."""
        from torch import distributed

        if self.size > 1 and distributed.is_initialized():
            distributed.destroy_process_group()

    def sum(self, tensor: Tensor) -> Tensor:
        """Add up a tensor over the processes, in place; return it.

        All get the same bits, and get them again when the work is repeated: every
        number is added up in one order, which depends on the number of processes and
        nothing else.
        """
        if self.size > 1:
            from torch import distributed

            _in_place(distributed.all_reduce, tensor)
        return tensor

    def first(self, tensor: Tensor) -> Tensor:
        """Copy what the first process has to all, in place; return it."""
        if self.size > 1:
            from torch import distributed

            _in_place(lambda given: distributed.broadcast(given, 0), tensor)
        return tensor

    def any(self, flag: bool) -> bool:
        """Whether `flag` holds in any of the processes."""
        if self.size == 1:
            return flag
        return bool(self.sum(torch.tensor(int(flag))))

    def wait(self) -> None:
        """Wait until all processes have come here."""
        self.any(False)


def _in_place(work: Callable[[Tensor], object], tensor: Tensor) -> None:
    """Let the processes work on a tensor, wherever it is."""
    from torch import distributed

    with _told():
        if tensor.is_cpu and distributed.get_backend() == "nccl":
            # A group that an engine made may know GPUs only.
            there = tensor.cuda()
            work(there)
            tensor.copy_(there)
        else:
            work(tensor)


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Turn the error of a process that is gone into one sentence."""
    try:
        yield
    except RuntimeError as error:
        raise InputError(
            "another process of this training has ended or cannot be reached: see its "
            "own message; the last complete checkpoint stays, and --resume goes on "
            f"from it ({str(error).splitlines()[0].strip()})"
        ) from error
