"""The device to compute on, and its memory."""

from __future__ import annotations

import os

import torch

from docsigma.exceptions import InputError


def choose_device(name: str) -> torch.device:
    """Return the torch device called `name`; ``"auto"`` means a GPU if there is one.

    Examples
    --------
    >>> choose_device("cpu")
    device(type='cpu')
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"the device {name!r} cannot be used: {reason}") from error
    return device


def memory_of(device: torch.device) -> int | None:
    """Return a machine's memory or a GPU's free memory in bytes, None if unknown."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return int(free)
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def check_memory(n_bytes: int, device: torch.device, what: str) -> None:
    """Refuse work that needs more memory than a device has."""
    there = memory_of(device)
    if there is not None and n_bytes > there:
        raise InputError(
            f"{what} needs about {n_bytes / 2**30:,.1f} GiB of memory, and "
            f"{device.type} has {there / 2**30:,.1f} GiB"
        )
