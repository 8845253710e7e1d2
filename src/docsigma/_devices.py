"""Which device to compute on."""

from __future__ import annotations

import torch

from docsigma.exceptions import InputError

__all__ = ["choose_device"]


def choose_device(name: str) -> torch.device:
    """Return the torch device called `name`; ``"auto"`` takes a GPU if there is one.

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
