"""The `docsigma` command: one sentence and exit code 2 for bad input."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Sequence
from typing import Any


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its status.

    0: done. 1: a defect, with a traceback. 2: bad input, in one sentence. 130: Ctrl-C.
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

    # Of click, or of its copy in typer, depending on the version.
    wrong_option: Any = typer.BadParameter.__base__
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            # In standalone mode typer draws a box around a wrong option.
            status = app(arguments, prog_name="docsigma", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        print("docsigma: stopped", file=sys.stderr)
        sys.exit(130)
    except InputError as error:
        _fail(_with_flags(str(error)))
    except BrokenPipeError:
        # The reader of the output has closed it (`docsigma ... | head`).
        sys.stderr.close()
        sys.exit(0)
    except ValueError as error:
        from sklearn.utils._param_validation import InvalidParameterError

        if not isinstance(error, InvalidParameterError):
            raise
        _fail(_parameter_sentence(str(error)))
    except wrong_option as error:
        given = sys.argv[1:] if arguments is None else arguments
        _fail(_option_sentence(error.format_message(), given))
    else:
        sys.exit(status or 0)


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"docsigma: {_with_flags(str(message))}", file=sys.stderr)


def _with_flags(message: str) -> str:
    """Replace the library's names of arguments by those of options."""
    names = "text_column|label_column|id_column|delimiter|encoding|n_components"
    names += "|missing_labels|tokenizer|threshold|top|risk|level|coverage|confidence"

    def flag(found: re.Match[str]) -> str:
        return "--" + found[1].removeprefix("n_").replace("_", "-")

    return re.sub(rf"`({names})`", flag, message).replace("`y`", "the label column")


def _parameter_sentence(message: str) -> str:
    """Return scikit-learn's two sentences about a parameter as one, in plain words."""
    from docsigma.cli._settings import ALIASES

    form = r"The '(\w+)' parameter of \w+ must be (.*)\. Got (.*) instead\."
    found = re.fullmatch(form, message, re.DOTALL)
    if found is None:
        return message
    name, wanted, value = found.groups()
    flags = {parameter: flag for flag, parameter in ALIASES.items()}
    for pattern, words in (
        (r"an int", "a whole number"),
        (r"a float", "a number"),
        (r" in the range \[([\d.]+), inf\)", r" of \1 or more"),
        (r" in the range \(([\d.]+), inf\)", r" above \1"),
        (r"a str among \{(.*)\}", r"one of \1"),
    ):
        wanted = re.sub(pattern, words, wanted)
    return f"`{flags.get(name, name)}` must be {wanted}, got {value}"


def _option_sentence(message: str, arguments: Sequence[str]) -> str:
    """Name the value that is not a number, as typer does not."""
    found = re.match(
        r"Invalid value for '(--[\w-]+)': Input should be a valid", message
    )
    if found is None or found[1] not in arguments[:-1]:
        return message
    value = arguments[list(arguments).index(found[1]) + 1]
    wanted = "a whole number" if "integer" in message else "a number"
    return f"{found[1]} must be {wanted}, got {value!r}"


def _fail(sentence: str) -> None:
    # Empty where help has been shown instead.
    if sentence:
        print(f"docsigma: {sentence}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
