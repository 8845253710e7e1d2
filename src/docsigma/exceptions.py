"""Errors that a user can cause and mend."""

from __future__ import annotations


class InputError(ValueError):
    """Input that cannot be used, told in one sentence.

    The sentence names the file, line, column or argument, and both numbers
    where two numbers disagree. The command line prints it and exits with 2.

    Examples
    --------
    >>> raise InputError("`l1` must not be negative, got -1.0")
    Traceback (most recent call last):
        ...
    docsigma.exceptions.InputError: `l1` must not be negative, got -1.0
    """
