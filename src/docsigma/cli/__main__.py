"""The `docsigma` command: one sentence and exit code 2 for bad input."""

from __future__ import annotations

import sys
import warnings
from typing import Any


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; exits with its status.

    0: done. 1: a defect, with a traceback. 2: bad input, told in one sentence.
    130: stopped by Ctrl-C.
    """
    try:
        import rich  # noqa: F401 # typer does without, our tables do not

        from docsigma.cli.app import app
    except ImportError as error:
        if error.name not in {"typer", "rich", "click"}:
            raise
        message = "the command line needs: pip install docsigma[cli]"
        print(f"docsigma: {message}", file=sys.stderr)
        sys.exit(2)
    import typer

    from docsigma.exceptions import InputError

    # Of click, or of the copy that typer brings, as the version has it.
    wrong_option: Any = typer.BadParameter.__base__
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            # Not alone: typer would draw a box around a wrong option.
            status = app(arguments, prog_name="docsigma", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        print("docsigma: stopped", file=sys.stderr)
        sys.exit(130)
    except InputError as error:
        _fail(str(error))
    except BrokenPipeError:
        # The reader of our output has gone (`docsigma ... | head`).
        sys.stderr.close()
        sys.exit(0)
    except ValueError as error:
        from sklearn.utils._param_validation import InvalidParameterError

        if not isinstance(error, InvalidParameterError):
            raise
        _fail(str(error))
    except wrong_option as error:
        _fail(error.format_message())
    else:
        sys.exit(status or 0)


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"docsigma: {message}", file=sys.stderr)


def _fail(sentence: str) -> None:
    # Without one, help has been shown instead.
    if sentence:
        print(f"docsigma: {sentence}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
