"""A handful of documents, and `docsigma count` run on them."""

from __future__ import annotations

import json

from docsigma.counts import DiskCounts
from running import succeed

TEXTS = [
    ("cats purr and dogs bark at cats", "pets"),
    ("dogs chase cats and cats chase mice", "pets"),
    ("", "none"),
    ("stocks rise and bonds fall as stocks rise", "money"),
    ("bonds pay interest and stocks pay dividends", "money"),
] * 5


def write_documents(path, texts):
    """Write texts and labels as JSON lines; give the path."""
    rows = [
        {"id": f"d{i}", "text": text, "label": label}
        for i, (text, label) in enumerate(texts)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def counted(capsys, *arguments):
    """Count, and open what was written; give it and the report."""
    report = json.loads(succeed(capsys, "count", *arguments, "--json"))
    return DiskCounts(report["folder"]), report
