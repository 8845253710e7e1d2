"""Docstrings of the package, from numpydoc with Sphinx roles to Markdown.

A griffe extension: mkdocstrings loads it (``extensions`` in ``mkdocs.yml``).
"""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Any

import griffe

if TYPE_CHECKING:
    from collections.abc import Iterator

_MATH_BLOCK = re.compile(
    r"^(?P<indent>[ ]*)\.\. math::[ ]*\n"
    r"(?P<body>(?:[ ]*\n|(?P=indent)[ ]{2,}\S.*\n?)+)",
    re.MULTILINE,
)
_MATH_ROLE = re.compile(r":math:`([^`]+)`", re.DOTALL)
_ROLE = re.compile(r":(?:func|class|meth|mod|attr|data|exc|obj):`(~?)([^`]+)`")
_CONTINUED = re.compile(r"[ ]*\\\n[ ]+")
# A term in double back-ticks, its text indented under it.
_DEFINITION = re.compile(
    r"^(?P<indent>[ ]*)(?P<term>``[^`\n]+``)\n(?P=indent)(?P<text>[ ]{4}\S)",
    re.MULTILINE,
)
_SHARED = re.compile(
    r"^(?P<names>\w+(?:, \w+)+)(?P<type>[ ]*:.*)?\n(?P<text>(?:[ ]+\S.*\n)*)",
    re.MULTILINE,
)
_RULE = r"[ ]*=+(?:[ ]+=+)+[ ]*\n"
_TABLE = re.compile(
    rf"^{_RULE}(?P<rows>(?:[ ]*[^=\s].*\n)+)(?:{_RULE}|$)", re.MULTILINE
)


def _maths(match: re.Match[str]) -> str:
    indent = match["indent"]
    body = textwrap.dedent(match["body"]).strip()
    lines = ["", "$$", *body.splitlines(), "$$", ""]
    return "\n".join(indent + line if line else "" for line in lines) + "\n"


def _table(match: re.Match[str]) -> str:
    lines = match[0].splitlines()
    starts = [found.start() for found in re.finditer("=+", lines[0])]
    ends = [*starts[1:], None]
    rows = [
        [line[start:end].strip() for start, end in zip(starts, ends, strict=True)]
        for line in match["rows"].splitlines()
    ]
    head = ["" for _ in starts]
    body = [head, ["---" for _ in starts], *rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in body)


def _one_each(text: str) -> str:
    """Give parameters that share an entry (``a, b : int``) one entry each.

    griffe would show the default of the first for all of them.
    """
    sections = re.split(r"^(\w[\w ]*\n-{3,}\n)", text, flags=re.MULTILINE)
    for at in range(1, len(sections), 2):
        if sections[at].startswith("Parameters\n"):
            sections[at + 1] = _SHARED.sub(
                lambda entry: "".join(
                    f"{name}{entry['type'] or ''}\n{entry['text']}"
                    for name in entry["names"].split(", ")
                ),
                sections[at + 1],
            )
    return "".join(sections)


class SphinxRoles(griffe.Extension):
    """Rewrite every docstring of the package before it is parsed."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Rewrite the docstrings of `pkg`."""
        for found in _objects(pkg):
            if found.docstring is not None:
                found.docstring.value = self._markdown(found, found.docstring.value)

    def _markdown(self, owner: griffe.Object, text: str) -> str:
        text = _CONTINUED.sub(" ", text)
        text = _one_each(text + "\n")
        text = _MATH_BLOCK.sub(_maths, text)
        text = _MATH_ROLE.sub(lambda m: f"${' '.join(m[1].split())}$", text)
        text = _ROLE.sub(lambda m: self._link(owner, m[2], bool(m[1])), text)
        text = _TABLE.sub(_table, text)
        text = _DEFINITION.sub(r"\g<indent>\g<term>\n\g<indent>:\g<text>", text)
        return text.rstrip()

    def _link(self, owner: griffe.Object, target: str, short: bool) -> str:
        """Link to the target if some page documents it, else show it as code."""
        name = target.rsplit(".", 1)[-1] if short else target.lstrip(".")
        path = _resolve(owner, target)
        if path is None:
            return f"`{name}`"
        return f'<autoref optional identifier="{path}">`{name}`</autoref>'


def _resolve(owner: griffe.Object, target: str) -> str | None:
    scope: griffe.Object | None = owner
    relative = target.lstrip(".")
    if target.startswith(("docsigma.", "docsigma_paper.")):
        return _canonical(owner, target)
    while scope is not None:
        members = scope.all_members if scope.is_class else scope.members
        if not scope.is_function and relative.split(".")[0] in members:
            return _canonical(owner, f"{scope.path}.{relative}")
        scope = scope.parent
    return None


def _canonical(owner: griffe.Object, path: str) -> str | None:
    name = path.rsplit(".", 1)[-1]
    try:
        found = owner.modules_collection[path]
        if found.is_module and name in found.members:
            # A package that exports a function of its module's name.
            found = found.members[name]
        return str(found.canonical_path)
    except (KeyError, griffe.AliasResolutionError):
        return None


def _objects(module: griffe.Object) -> Iterator[griffe.Object]:
    yield module
    for member in module.members.values():
        if not member.is_alias:
            yield from _objects(member)
