"""Run what a page shows, when the site is built, and show what it printed.

A fence ``console run`` holds `docsigma` commands, one a line after ``$``; a fence
``python run`` holds Python. The runs of a page share one folder, which starts with
the files of ``docs/examples``, and one Python namespace. Notebooks are run by
mkdocs-jupyter; what their pages would load from the network is left out.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import tempfile
import textwrap
from functools import cache
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[1] / "examples"
# Scripts of nbconvert that load formulas and diagrams from elsewhere.
_REMOTE = re.compile(
    r"<script(?:(?!</script>).)*?(?:cdnjs|MathJax)(?:(?!</script>).)*</script>",
    re.DOTALL,
)
# A fence may be indented, as in a tab.
_FENCE = re.compile(
    r"^( *)```(console|python) run\n(.*?)^\1```$", re.MULTILINE | re.DOTALL
)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the output of every run of a page into the page."""
    fences = [
        (match[2], textwrap.dedent(match[3])) for match in _FENCE.finditer(markdown)
    ]
    results = iter(_run_page(tuple(fences)))
    return _FENCE.sub(lambda m: textwrap.indent(next(results), m[1]), markdown)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Leave out of a notebook's page what it would load from the network."""
    if not page.file.src_uri.endswith(".ipynb"):
        return output
    return _REMOTE.sub("", output).replace('<script src=""> </script>', "")


@cache
def _run_page(fences: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    if not fences:
        return ()
    import torch

    namespace: dict[str, Any] = {}
    threads = torch.get_num_threads()
    data = os.environ.pop("DOCSIGMA_DATA", None)
    # One thread: the runs are small, and other processes may be busy.
    torch.set_num_threads(1)
    try:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            shutil.copytree(EXAMPLES, folder, dirs_exist_ok=True)
            return tuple(
                _commands(body) if kind == "console" else _python(body, namespace)
                for kind, body in fences
            )
    finally:
        torch.set_num_threads(threads)
        if data is not None:
            os.environ["DOCSIGMA_DATA"] = data


def _commands(body: str) -> str:
    shown = []
    status = 0
    for line in re.split(r"(?<!\\)\n", body.strip("\n")):
        words = shlex.split(line.removeprefix("$ ").replace("\\\n", " "))
        if words == ["echo", "$?"]:
            output = str(status)
        elif words[:1] == ["docsigma"]:
            output, status = run_command(words[1:])
        else:
            raise ValueError(f"cannot run {line!r}: it is no docsigma command")
        shown.append(f"{line}\n{output}".rstrip())
    text = "\n\n".join(shown)
    return f"```console\n{text}\n```"


def run_command(arguments: list[str]) -> tuple[str, int]:
    """Run `docsigma` in this process; give what it printed and its exit status."""
    from docsigma.cli.__main__ import main

    stream = io.StringIO()
    status = 0
    with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
        try:
            main(arguments)
        except SystemExit as stop:
            status = int(stop.code or 0)
    lines = [line.rstrip() for line in stream.getvalue().splitlines()]
    kept = [line for at, line in enumerate(lines) if line or (at and lines[at - 1])]
    return "\n".join(kept).rstrip(), status


def _python(body: str, namespace: dict[str, Any]) -> str:
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        exec(compile(body, "<page>", "exec"), namespace)
    output = stream.getvalue().rstrip()
    shown = f"```python\n{body}```"
    return f"{shown}\n\n```text\n{output}\n```" if output else shown
