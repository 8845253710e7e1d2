"""Running a command as a person does: exit code, standard output, standard error."""

from __future__ import annotations

import pytest

from docsigma.cli.__main__ import main

__all__ = ["refuse", "run", "succeed"]


def run(capsys, *arguments):
    """Run a command; give its exit code and both outputs."""
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    shown = capsys.readouterr()
    return stop.value.code or 0, shown.out, shown.err


def succeed(capsys, *arguments):
    """Run a command that must succeed; give its standard output."""
    code, out, err = run(capsys, *arguments)
    assert code == 0, err
    return out


def refuse(capsys, *arguments):
    """Run a command that must refuse its input; give the one sentence."""
    code, out, err = run(capsys, *arguments)
    assert code == 2, (out, err)
    assert out == ""
    assert len(err.strip().splitlines()) == 1, err
    assert err.startswith("docsigma: ")
    assert "Traceback" not in err
    return err
