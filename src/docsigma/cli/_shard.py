"""`--shard i/n`: one of n equal parts of the documents, for any scheduler."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from docsigma.cli._common import option
from docsigma.exceptions import InputError

ShardOption = Annotated[
    str | None,
    option(
        "Process one of n equal parts, 0/8 to 7/8, and write it to a numbered file. A "
        "part that exists already is skipped.",
        "all",
    ),
]


@dataclass(frozen=True)
class Shard:
    """Part `number`, from 0, of equal parts; by default everything."""

    number: int = 0
    of: int = 1

    @classmethod
    def parse(cls, text: str | None) -> Shard:
        """Parse the option's value."""
        if text is None:
            return cls()
        found = re.fullmatch(r"(\d+)/(\d+)", text)
        if found is None or not int(found[1]) < int(found[2]):
            raise InputError(
                f"--shard must be i/n with i from 0 to n - 1, as 0/8, got {text!r}"
            )
        return cls(int(found[1]), int(found[2]))

    def file(self, out: Path) -> Path:
        """Return the name of this part's file."""
        if self.of == 1:
            return out
        name = f"{out.stem}-{self.number:05d}-of-{self.of:05d}{out.suffix}"
        return out.with_name(name)

    def rows(self, n: int) -> slice:
        """Return this part of n documents; refuse more parts than documents."""
        if self.of > max(1, n):
            raise InputError(f"--shard asks for {self.of} parts of {n} documents")
        return slice(n * self.number // self.of, n * (self.number + 1) // self.of)

    def is_done(self, out: Path, force: bool) -> bool:
        """Whether an earlier run has written this part; if so, print that."""
        done = self.of > 1 and not force and self.file(out).is_file()
        if done:
            typer.echo(f"docsigma: {self.file(out)} exists already", err=True)
        return done
