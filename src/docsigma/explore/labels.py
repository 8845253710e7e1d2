"""Labels set by a person, kept in a file of one JSON object per line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from docsigma._files import atomic_file
from docsigma.exceptions import InputError


class Labels:
    """Labels of documents by row, starting from those `given`.

    With a `file`, they are read from it if it exists, and written to it, with the ids
    of the documents, after every change.
    """

    def __init__(
        self,
        ids: Sequence[str],
        given: Sequence[str | None] | None = None,
        file: Path | None = None,
    ) -> None:
        self._ids, self._file = ids, file
        self._rows = {name: row for row, name in enumerate(ids)}
        self.of: dict[int, str] = {}
        # In the order of first use, so that a label keeps its colour and key.
        self._names: dict[str, None] = {}
        for row, label in enumerate(given or []):
            if label is not None:
                self.of[row] = label
                self._names[label] = None
        if file is not None and file.exists():
            self.load(file.read_text("utf-8"), str(file))

    def __len__(self) -> int:
        return len(self.of)

    def names(self) -> list[str]:
        """Return all labels used so far, in the order of first use."""
        return list(self._names)

    def set(self, rows: Iterable[int], label: str | None) -> None:
        """Set the label of documents, or remove it (None)."""
        rows = list(rows)
        for row in rows:
            if not 0 <= row < len(self._ids):
                raise InputError(
                    f"there is no document {row}: there are {len(self._ids)}"
                )
        self._change(dict.fromkeys(rows, _checked(label)))

    def load(self, lines: str, source: str = "the labels") -> int:
        """Add labels from lines of JSON with `id` and `label`; return how many.

        If any line is wrong or names an unknown document, nothing changes.
        """
        found: dict[int, str | None] = {}
        for number, line in enumerate(lines.split("\n"), start=1):
            if not line.strip():
                continue
            where = f"line {number} of {source}"
            try:
                entry = json.loads(line)
                name, label = entry["id"], entry["label"]
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                raise InputError(
                    f"{where} is not a JSON object with `id` and `label`"
                ) from error
            if not isinstance(name, str) or name not in self._rows:
                raise InputError(f"{where} names an unknown document: {name!r:.80}")
            if label is not None and not isinstance(label, str):
                raise InputError(f"{where} has the label {label!r:.80}, not a string")
            found[self._rows[name]] = _checked(label)
        self._change(found)
        return len(found)

    def dump(self) -> str:
        """Return all labels, one JSON object per line, in the order of documents."""
        lines = (
            json.dumps({"id": self._ids[row], "label": self.of[row]})
            for row in sorted(self.of)
        )
        return "".join(f"{line}\n" for line in lines)

    def _change(self, changes: dict[int, str | None]) -> None:
        kept = {row: label for row, label in self.of.items() if row not in changes}
        kept |= {row: label for row, label in changes.items() if label is not None}
        n_labels = len(set(kept.values()))
        if n_labels > 1000:
            raise InputError(f"there are {n_labels} different labels, at most 1000 fit")
        self.of = kept
        self._names |= dict.fromkeys(kept.values())
        if self._file is not None:
            with atomic_file(self._file) as temporary:
                temporary.write_text(self.dump(), "utf-8")


def _checked(label: str | None) -> str | None:
    if label is None:
        return None
    label = label.strip()
    if not 1 <= len(label) <= 200:
        raise InputError(f"a label has from 1 to 200 characters, got {len(label)}")
    return label
