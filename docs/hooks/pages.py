"""What every page gets: large figures, its rank in the search, commands to copy."""

from __future__ import annotations

import html
import re
from typing import Any

_LINKED = re.compile(r"<a\b[^>]*>(?:(?!</a>).)*<img(?:(?!</a>).)*</a>", re.DOTALL)
_IMAGE = re.compile(r'<img\b[^>]*\bsrc="([^"]+)"[^>]*>')
_CONSOLE = re.compile(
    r'<div class="highlight">(<pre>(?:(?!</pre>).)*</pre>)', re.DOTALL
)
_OUTPUT = re.compile(r'<span class="g(?:o|t)">.*?</span>', re.DOTALL)
_PROMPT = '<span class="gp">$ </span>'
# Of a page of the reference, relative to a page that says how something is done.
_RANK = {"api/": 0.05, "architecture": 0.3, "extending": 0.3, "cli": 0.7}


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put pages before classes in the search."""
    for start, boost in _RANK.items():
        if page.file.src_uri.startswith(start):
            page.meta.setdefault("search", {})["boost"] = boost
    return markdown


def on_page_content(content: str, **_: Any) -> str:
    """Link every figure to its file, where it fills the screen, and mark commands."""
    content = _CONSOLE.sub(_with_commands, content)
    linked = [match.span() for match in _LINKED.finditer(content)]

    def link(match: re.Match[str]) -> str:
        if any(start <= match.start() < end for start, end in linked):
            return match[0]
        return f'<a class="large" href="{match[1]}">{match[0]}</a>'

    return _IMAGE.sub(link, content)


def _with_commands(match: re.Match[str]) -> str:
    """Return a console with what its copy button takes."""
    if _PROMPT not in match[1]:
        return match[0]
    shown = _OUTPUT.sub("", match[1]).replace(_PROMPT, "")
    lines = html.unescape(re.sub(r"<[^>]+>", "", shown)).splitlines()
    commands = "\n".join(line for line in lines if line.strip())
    return f'<div class="highlight" data-copy="{html.escape(commands)}">{match[1]}'
