"""Docstrings of the installed scientific packages, labelled with their subpackage."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from docsigma.corpora.documents import Corpus, Documents
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


PACKAGES = ("numpy", "scipy", "sklearn", "torch")
DESCRIPTION = "Docstrings of the installed numpy, scipy, sklearn and torch"

_SKIPPED = {"tests", "test", "externals", "conftest.py", "setup.py"}
# numpy keeps most of its public functions in this private folder.
_PUBLIC_ANYWAY = {"_core"}
_ADDERS = {"add_newdoc", "add_docstr", "_add_docstr", "add_docstr_all"}

_Found = tuple[str, str]


def installed_packages() -> list[str]:
    """Return which of `PACKAGES` are installed, without importing them."""
    return [name for name in PACKAGES if _folder(name) is not None]


def docstrings_status() -> tuple[bool, str]:
    """Return whether `load_docstrings` finds any package, and which."""
    packages = installed_packages()
    if packages:
        return True, f"from the installed {', '.join(packages)}"
    return False, f"install one of {', '.join(PACKAGES)}"


def load_docstrings(*, packages: Sequence[str] = PACKAGES) -> Corpus:
    """Harvest docstrings of at least 20 words from the packages' source files.

    The files are parsed, never run. The label is the subpackage, such as
    ``scipy.stats``, or the package if the subpackage has fewer than 30 documents.
    Equal docstrings are kept once. One document in five is a test document, chosen by
    a hash of its id, so that other packages do not change the choice.

    Parameters
    ----------
    packages : sequence of str
        Which of numpy, scipy, sklearn and torch to read; those that are not installed
        are skipped, unless none is.
    """
    for name in packages:
        if name not in PACKAGES:
            raise InputError(
                f"`packages` must be of {', '.join(PACKAGES)}, got {name!r}"
            )
    found: dict[str, _Found] = {}
    for name in PACKAGES:
        folder = _folder(name) if name in packages else None
        if folder is not None:
            found.update(harvest(folder, name))
    if not found:
        raise InputError(
            "the corpus `docstrings` needs one of these packages installed: "
            + ", ".join(packages)
        )
    documents = _documents(found)
    hashes = (hashlib.sha256(name.encode("utf-8")).digest() for name in documents.ids)
    test = np.array([int.from_bytes(value[:8], "big") % 5 == 0 for value in hashes])
    return Corpus(
        "docstrings",
        train=documents[~test],
        test=documents[test],
        description=DESCRIPTION,
    )


def harvest(folder: Path, package: str) -> dict[str, _Found]:
    r"""Return id -> (text, subpackage) for the docstrings under a package's folder.

    Folders and names that start with an underscore are private and left out. The
    public names of a private module in a public folder count as names of the folder:
    scikit-learn and SciPy keep there what the folder exports.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp()) / "weather"
    >>> folder.mkdir()
    >>> text = "Tell how much it rains. " * 5
    >>> _ = (folder / "_rain.py").write_text(f'def rain():\n    "{text}"')
    >>> list(harvest(folder, "weather"))
    ['weather.rain']
    """
    found: dict[str, _Found] = {}
    for file in sorted(_sources(folder)):
        parts = list(file.relative_to(folder).with_suffix("").parts)
        top = parts[0] if len(parts) > 1 and not parts[0].startswith("_") else None
        label = f"{package}.{top}" if top else package
        module = parts.pop()
        in_core = any(part.startswith("_") for part in parts)
        public = [part for part in parts if not part.startswith("_")]
        if not module.startswith("_") and not in_core:
            public.append(module)
        prefix = ".".join([package, *public])
        own = module == "__init__" or not module.startswith("_")
        try:
            tree = ast.parse(file.read_bytes())
        except (SyntaxError, ValueError, OSError, RecursionError):
            continue  # written for another Python, or unreadable: no docstrings here
        if own and not in_core:
            _keep(found, prefix, ast.get_docstring(tree), label)
        for name, text in _docstrings(tree.body):
            _keep(found, f"{prefix}.{name}", text, label)
    return found


def _folder(package: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))


def _sources(folder: Path) -> Iterator[Path]:
    for entry in folder.iterdir():
        if entry.name in _SKIPPED or entry.name.startswith("test_"):
            continue
        if entry.is_dir():
            private = entry.name.startswith(("_", "."))
            if not private or entry.name in _PUBLIC_ANYWAY:
                yield from _sources(entry)
        elif entry.suffix == ".py":
            yield entry


def _keep(found: dict[str, _Found], name: str, text: str | None, label: str) -> None:
    if text is not None and name not in found and len(text.split()) >= 20:
        found[name] = (text, label)


def _docstrings(body: Sequence[ast.stmt]) -> Iterator[tuple[str, str | None]]:
    for node in body:
        if isinstance(node, ast.If | ast.Try):
            yield from _docstrings(node.body)
            yield from _docstrings(node.orelse)
        elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name.startswith("_"):
                continue
            yield node.name, ast.get_docstring(node)
            if isinstance(node, ast.ClassDef):
                for name, text in _docstrings(node.body):
                    yield f"{node.name}.{name}", text
        elif isinstance(node, ast.Expr | ast.Assign) and isinstance(
            node.value, ast.Call
        ):
            yield from _added(node, node.value)


def _added(
    statement: ast.Expr | ast.Assign, call: ast.Call
) -> Iterator[tuple[str, str | None]]:
    """Yield docstrings that a call adds to functions written in C."""
    adder = ast.unparse(call.func).rpartition(".")[2]
    if adder not in _ADDERS or len(call.args) < 2:
        return
    *owners, last = call.args
    if isinstance(statement, ast.Assign):
        owner = ast.unparse(statement.targets[0])
    else:
        owner = _literal(owners[-1]) or ast.unparse(owners[-1]).rpartition(".")[2]
    if adder == "add_docstr_all":
        owner = f"Tensor.{owner}"
    pairs = last.elts if isinstance(last, ast.List) else [last]
    for pair in pairs:
        name, text = owner, pair
        if isinstance(pair, ast.Tuple) and len(pair.elts) == 2:
            name, text = f"{owner}.{_literal(pair.elts[0])}", pair.elts[1]
        raw = _literal(text)
        if raw is not None and not any(p.startswith("_") for p in name.split(".")):
            yield name, inspect.cleandoc(raw)


def _literal(node: ast.expr) -> str | None:
    """Return the string literal in an expression, ``format`` not applied."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _literal(node.func.value)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        sides = (_literal(node.left), _literal(node.right))
        return "".join(side for side in sides if side is not None) or None
    return None


def _documents(found: dict[str, _Found]) -> Documents:
    first: dict[str, str] = {}
    for identity in sorted(found):
        first.setdefault(" ".join(found[identity][0].split()), identity)
    ids = list(first.values())
    labels = [found[identity][1] for identity in ids]
    sizes = Counter(labels)
    return Documents(
        ids=ids,
        texts=[found[identity][0] for identity in ids],
        labels=[name if sizes[name] >= 30 else name.split(".")[0] for name in labels],
        source="installed packages",
    )
