"""`python -m docsigma`: the command line, for torchrun."""

from __future__ import annotations

from docsigma.cli.__main__ import main

if __name__ == "__main__":
    main()
