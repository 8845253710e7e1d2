"""Results of an experiment, row by row, so that a run that was stopped can go on."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import platform
import time
from typing import TYPE_CHECKING, Any

from docsigma._files import atomic_file
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

__all__ = ["Plan", "Record"]

PACKAGES = ("docsigma", "torch", "numpy", "scipy", "scikit-learn", "tomotopy", "gensim")


class Record:
    """The JSON file of one experiment: a heading and one row a result.

    Parameters
    ----------
    path : Path
        The file. If it is there, its rows are kept.
    heading : dict
        What must agree between a run and the run that goes on: name and settings.
    say : callable, default=None
        Told about each row.
    others : sequence of Path, default=()
        Files of runs elsewhere, of other seeds or systems; their rows are taken over.
    computes : bool, default=True
        Whether rows that are not there are computed; if not, they are left out.

    Raises
    ------
    InputError
        If the file holds another run, or no run at all.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "demo.json"
    >>> record = Record(file, {"experiment": "demo"})
    >>> record.row({"seed": 0}, lambda: {"accuracy": 80.0})["accuracy"]
    80.0
    >>> again = Record(file, {"experiment": "demo"})
    >>> again.row({"seed": 0}, lambda: {"accuracy": 0.0})["accuracy"]
    80.0
    """

    def __init__(
        self,
        path: Path,
        heading: dict[str, Any],
        say: Callable[[str], object] | None = None,
        others: Sequence[Path] = (),
        *,
        computes: bool = True,
    ) -> None:
        self.path = path
        self.heading = heading
        self._say = say
        #: Called after each row, be it found or computed.
        self.after: Callable[[], object] = lambda: None
        self._computes = computes
        self._asked: list[dict[str, Any]] = []
        self.rows: list[dict[str, Any]] = []
        if path.exists():
            self.rows = self._read(path, heading)
        same = {name: heading[name] for name in heading if name != "seeds"}
        for other in others:
            for row in self._read(other, same):
                seed = row["key"].get("seed")
                wanted = "seeds" not in heading or seed in heading["seeds"]
                if wanted and self.find(row["key"]) is None:
                    self.rows.append(row)

    @staticmethod
    def _read(path: Path, heading: dict[str, Any]) -> list[dict[str, Any]]:
        try:
            before = json.loads(path.read_text("utf-8"))
            rows: list[dict[str, Any]] = before["rows"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path} holds no results: {error}") from error
        for name, value in heading.items():
            if before.get(name) != value:
                raise InputError(
                    f"{path} holds another run: {name} is {before.get(name)!r} "
                    f"there and {value!r} here"
                )
        return rows

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def find(self, key: dict[str, Any]) -> dict[str, Any] | None:
        """Give the row of `key`, if there is one."""
        for row in self.rows:
            if row["key"] == key:
                return row
        return None

    def row(
        self, key: dict[str, Any], compute: Callable[[], dict[str, Any]]
    ) -> dict[str, Any] | None:
        """Give the row of `key`; compute and write it if it is not there.

        A record that computes nothing gives None then.
        """
        self._asked.append(key)
        row = self.find(key)
        if row is None and self._computes:
            row = self._make(key, compute)
        self.after()
        return row

    def _make(
        self, key: dict[str, Any], compute: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        started = time.perf_counter()
        result = compute()
        seconds = round(time.perf_counter() - started, 2)
        made = {"key": key, **result, "seconds": seconds, **_surroundings()}
        self.rows.append(made)
        self.write()
        if self._say is not None:
            named = ", ".join(f"{name} {value}" for name, value in key.items())
            self._say(f"{named}: {seconds:.0f} s")
        return made

    def write(self) -> None:
        """Write the file, whole; rows in the order in which they were asked for."""
        asked = [row for key in self._asked if (row := self.find(key)) is not None]
        self.rows = [row for row in self.rows if row["key"] not in self._asked] + asked
        # A row a line: curves hold thousands of figures, and a change shows its row.
        heading = json.dumps({**self.heading, "rows": []}, indent=1)
        rows = ",\n".join(f"  {json.dumps(row)}" for row in self.rows)
        text = heading.replace('"rows": []', f'"rows": [\n{rows}\n ]')
        with atomic_file(self.path) as temporary:
            temporary.write_text(text + "\n", "utf-8")


class Plan:
    """Counts the rows that an experiment will ask for, and computes none."""

    def __init__(self) -> None:
        self.n_rows = 0

    def row(self, key: dict[str, Any], compute: Callable[[], object]) -> None:
        """Count a row."""
        del key, compute
        self.n_rows += 1


def _surroundings() -> dict[str, Any]:
    import torch

    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    cuda = torch.cuda.is_available()
    now = datetime.datetime.now(datetime.UTC)
    return {
        "date": now.isoformat(timespec="seconds"),
        "machine": torch.cuda.get_device_name() if cuda else platform.machine(),
        "versions": versions,
    }
