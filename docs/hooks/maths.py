"""Turn the LaTeX of a page into MathML: no script, no font, no network.

``pymdownx.arithmatex`` marks the formulas; this hook replaces what it marked.
"""

from __future__ import annotations

import html
import re
from functools import cache
from typing import Any

from latex2mathml.converter import convert

_INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
_BLOCK = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)
_LETTER = r'<mi mathvariant="normal">(\w)</mi>'
# What the converter writes, and what browsers need.
_REPAIRS: tuple[tuple[re.Pattern[str], str], ...] = (
    # `\sim` comes as an identifier, the ASCII tilde.
    (re.compile(r"<mi>&#x0007E;</mi>"), "<mo>&#x0223C;</mo>"),
    # MathML Core, which Chromium follows, has no `columnalign`.
    (
        re.compile(r'<mtd columnalign="(left|right)">'),
        r'<mtd style="text-align: \1; padding-left: 0; padding-right: 0">',
    ),
    # Bars are fences: no space around them.
    (
        re.compile(r'<mo stretchy="false">&#x0007C;</mo>'),
        '<mo stretchy="false" lspace="0em" rspace="0em">&#x0007C;</mo>',
    ),
    # Names of functions want space around them, but not before a bracket.
    (
        re.compile(r'<mi>(log|exp)</mi>(?=<mo stretchy="false">&#x00028;)'),
        r'<mo lspace="0.167em" rspace="0em">\1</mo>',
    ),
    (
        re.compile(r"<mi>(log|exp)</mi>"),
        r'<mo lspace="0.167em" rspace="0.167em">\1</mo>',
    ),
)


@cache
def mathml(latex: str, display: str) -> str:
    """Give the MathML of a formula; `display` is ``inline`` or ``block``.

    A block that aligns or breaks outside any environment is put into one.
    """
    body = latex.strip()
    if display == "block" and r"\begin{" not in body and ("&" in body or r"\\" in body):
        body = rf"\begin{{split}}{body}\end{{split}}"
    result = convert(body, display=display)
    # `\mathrm{softmax}` comes letter by letter.
    result = re.sub(
        f"(?:{_LETTER})+",
        lambda run: (
            f"<mi>{''.join(re.findall(_LETTER, run[0]))}</mi>"
            if run[0].count("<mi") > 1
            else run[0]
        ),
        result,
    )
    for pattern, repaired in _REPAIRS:
        result = pattern.sub(repaired, result)
    return result


def on_page_content(content: str, **_: Any) -> str:
    """Replace every formula of a page."""

    def inline(match: re.Match[str]) -> str:
        return mathml(html.unescape(match[1]), "inline")

    def block(match: re.Match[str]) -> str:
        formula = mathml(html.unescape(match[1]), "block")
        return f'<div class="maths">{formula}</div>'

    return _INLINE.sub(inline, _BLOCK.sub(block, content))
