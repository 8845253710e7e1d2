"""Errors that a user can cause and correct."""

from __future__ import annotations


class InputError(ValueError):
    """Input that cannot be used, described in one sentence.

    The sentence names the file, line, column or argument, and both numbers if two
    numbers disagree. The command line prints it and exits with code 2.

    Examples
    --------
    >>> raise InputError("`l1` must not be negative, got -1.0")
    Traceback (most recent call last):
        ...
    docsigma.exceptions.InputError: `l1` must not be negative, got -1.0
    """
