"""Results of an experiment, row by row, so that a stopped run can continue."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from docsigma._files import atomic_file
from docsigma.exceptions import InputError
from docsigma.metrics.environment import environment, gpu_work
from docsigma_paper.reproduce.baselines import installed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path


class Record:
    """The JSON file of one experiment: a heading and one row per result.

    Parameters
    ----------
    path : Path
        The file. If it exists, its rows are kept.
    heading : dict
        Name and settings, which must agree for a run to continue.
    log : callable, default=None
        Called with a line on each row.
    others : sequence of Path, default=()
        Files of other runs, of other seeds or systems, whose rows are included.
    computes : bool, default=True
        Whether missing rows are computed or left out.

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
    >>> record.row({"seed": 0}, {"K": 5}, lambda: {"accuracy": 80.0})["accuracy"]
    80.0
    >>> again = Record(file, {"experiment": "demo"})
    >>> again.row({"seed": 0}, {"K": 5}, lambda: {"accuracy": 0.0})["accuracy"]
    80.0
    >>> again.row({"seed": 0}, {"K": 9}, lambda: {"accuracy": 90.0})["accuracy"]
    90.0
    """

    def __init__(
        self,
        path: Path,
        heading: dict[str, Any],
        log: Callable[[str], object] | None = None,
        others: Sequence[Path] = (),
        *,
        computes: bool = True,
    ) -> None:
        self.path = path
        self.heading = heading
        self._log = log
        #: Called after each row, found or computed.
        self.after: Callable[[], object] = lambda: None
        self._computes = computes
        self._asked: list[dict[str, Any]] = []
        self.rows: list[dict[str, Any]] = []
        # Of other parameters: not shown, but kept.
        self._stale: list[dict[str, Any]] = []
        self._offered: list[dict[str, Any]] = []
        if path.exists():
            self.rows = self._read(path, heading)
        same = {name: heading[name] for name in heading if name != "seeds"}
        for other in others:
            for row in self._read(other, same):
                seed = row["key"].get("seed")
                wanted = "seeds" not in heading or seed in heading["seeds"]
                if wanted:
                    known = self.find(row["key"]) is not None
                    (self._offered if known else self.rows).append(row)

    @staticmethod
    def _read(path: Path, heading: dict[str, Any]) -> list[dict[str, Any]]:
        try:
            before = json.loads(path.read_text("utf-8"))
            rows: list[Any] = before["rows"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path} holds no results: {error}") from error
        for number, row in enumerate(rows, start=1):
            if not isinstance(row, dict) or not isinstance(row.get("key"), dict):
                raise InputError(f"{path} holds no results: row {number} has no key")
        for name, value in heading.items():
            if before.get(name) != value:
                raise InputError(
                    f"{path} holds another run: {name} is {before.get(name)!r} "
                    f"there and {value!r} here"
                )
        return rows

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def find(
        self, key: dict[str, Any], parameters: dict[str, Any] | None = None
    ) -> dict[str, Any] | None:
        """Return the row of `key`, and of `parameters` if they are named.

        As JSON returns them: without tuples.
        """
        for row in self.rows if parameters is None else self.rows + self._offered:
            if row["key"] == key and parameters in (None, row.get("parameters")):
                return row
        return None

    def row(
        self,
        key: dict[str, Any],
        parameters: dict[str, Any],
        compute: Callable[[], dict[str, Any]],
        needs: str | None = None,
    ) -> dict[str, Any] | None:
        """Return the row of `key`; compute and write it if it is missing.

        A row of other `parameters` counts as missing. A record that does not compute
        returns None then, and keeps that row in the file. `needs` names a library that
        the computation needs; see :class:`Plan`.
        """
        del needs
        self._asked.append(key)
        parameters = _as_read(parameters)
        row, old = self.find(key, parameters), self.find(key)
        if old is not None and row is not old:
            self.rows.remove(old)
            if row is not None:
                self.rows.append(row)
            elif not self._computes:
                self._stale.append(old)
            self._tell(f"{_named(key)}: left out, its parameters are others now")
        if row is None and self._computes:
            row = self._make(key, parameters, compute)
        self.after()
        return row

    def _make(
        self,
        key: dict[str, Any],
        parameters: dict[str, Any],
        compute: Callable[[], dict[str, Any]],
    ) -> dict[str, Any]:
        started, before = time.perf_counter(), gpu_work()
        result = compute()
        seconds = round(time.perf_counter() - started, 2)
        made = {"key": key, "parameters": parameters, **result, "seconds": seconds}
        made |= environment(on_gpu=gpu_work() > before)
        self.rows.append(made)
        self.write()
        self._tell(f"{_named(key)}: {seconds:.0f} s")
        return made

    def _tell(self, line: str) -> None:
        if self._log is not None:
            self._log(line)

    def write(self) -> None:
        """Write the file, with the rows in the order of the calls of :meth:`row`."""
        asked = [row for key in self._asked if (row := self.find(key)) is not None]
        self.rows = [row for row in self.rows if row["key"] not in self._asked] + asked
        # One row per line: curves hold thousands of numbers, a change shows its row.
        heading = json.dumps({**self.heading, "rows": []}, indent=1)
        rows = ",\n".join(f"  {json.dumps(row)}" for row in self.rows + self._stale)
        text = heading.replace('"rows": []', f'"rows": [\n{rows}\n ]')
        with atomic_file(self.path) as temporary:
            temporary.write_text(text + "\n", "utf-8")


class Plan:
    """Counts the rows of an experiment without computing them.

    Parameters
    ----------
    record : Record
        Whose rows need not be computed.
    """

    def __init__(self, record: Record) -> None:
        self.n_rows = 0
        self._record = record
        self._missing: set[str] = set()

    def row(
        self,
        key: dict[str, Any],
        parameters: dict[str, Any],
        compute: Callable[[], object],
        needs: str | None = None,
    ) -> None:
        """Count a row, and note a missing library that it needs."""
        del compute
        self.n_rows += 1
        if needs is None or installed(needs):
            return
        if self._record.find(key, _as_read(parameters)) is None:
            self._missing.add(needs)

    def check(self) -> None:
        """Refuse, before hours of work, rows that need a missing library."""
        if self._missing:
            raise InputError(
                f"some rows need {' and '.join(sorted(self._missing))}: pip install "
                "docsigma-paper[baselines], or name other systems with --system"
            )


def _as_read(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return parameters as JSON returns them: without tuples."""
    read: dict[str, Any] = json.loads(json.dumps(parameters))
    return read


def _named(key: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in key.items())
