"""The page as a single file."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docsigma._files import atomic_file

if TYPE_CHECKING:
    from docsigma.explore.workspace import Workspace

STATIC = Path(__file__).parent / "static"


def write_page(workspace: Workspace, file: Path) -> None:
    """Write a page that holds the corpus and opens without a server.

    It cannot train a classifier, its search is for words, and the table that it saves
    has no texts.
    """
    documents = [workspace.document(row) for row in range(len(workspace))]
    for document in documents:
        for other in document["neighbours"]:
            # The list of documents has these.
            del other["excerpt"], other["id"], other["label"]
    data = {
        "about": workspace.about() | {"can_learn": False},
        "points": base64.b64encode(workspace.points()).decode(),
        "state": base64.b64encode(workspace.state()).decode(),
        "documents": documents,
        "csv": workspace.predictions_csv(with_text=False),
    }
    with atomic_file(file) as temporary:
        temporary.write_text(assemble(data), "utf-8")


def assemble(data: dict[str, Any]) -> str:
    """Return the page with its scripts, style and data inside."""
    page = (STATIC / "index.html").read_text("utf-8")
    scripts = re.findall(r'<script src="static/([\w-]+\.js)" defer></script>\n', page)
    # One script, as the files share a scope.
    code = "\n".join((STATIC / name).read_text("utf-8") for name in scripts)
    style = (STATIC / "explore.css").read_text("utf-8")
    policy = (
        f"default-src 'none'; script-src '{_digest(code)}'; "
        f"style-src '{_digest(style)}'; img-src data: blob:; base-uri 'none'; "
        "form-action 'none'"
    )
    # No text can end the element that it is in.
    held = json.dumps(data).replace("<", "\\u003c")
    page = re.sub(r'<script src="static/[^\n]*\n', "", page)
    page = page.replace(
        '<link rel="stylesheet" href="static/explore.css">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<style>{style}</style>",
    )
    return page.replace(
        "</body>",
        f'<script type="application/json" id="data">{held}</script>\n'
        f"<script>{code}</script>\n</body>",
    )


def _digest(text: str) -> str:
    found = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(found).decode()}"
