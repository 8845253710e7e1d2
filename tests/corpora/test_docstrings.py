from __future__ import annotations

import hashlib
import importlib.util

import pytest

from docsigma.corpora import docstrings, load_corpus
from docsigma.exceptions import InputError


def words(start: str, number: int = 20) -> str:
    return " ".join([start, *(f"word{n}" for n in range(number - 1))])


@pytest.fixture
def package(tmp_path):
    def package(files):
        for name, content in files.items():
            path = tmp_path / "pkg" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        return docstrings.harvest(tmp_path / "pkg", "pkg")

    return package


def test_public_docstrings_are_named_and_labelled(package):
    function = f"def f():\n    '{words('f')}'\n"
    method = f"    def m(self):\n        '{words('m')}'\n"
    guarded = f"    def g():\n        '{words('g')}'\n"
    found = package(
        {
            "__init__.py": f'"""{words("top")}"""\n',
            "plain.py": f'"""{words("plain")}"""\n{function}',
            "sub/_impl.py": f"'{words('private')}'\n"
            f"class C:\n    '{words('c')}'\n{method}",
            "sub/deep/mod.py": f"try:\n{guarded}except ImportError:\n    pass\n",
        }
    )
    assert {name: label for name, (_, label) in found.items()} == {
        "pkg": "pkg",
        "pkg.plain": "pkg",
        "pkg.plain.f": "pkg",
        "pkg.sub.C": "pkg.sub",
        "pkg.sub.C.m": "pkg.sub",
        "pkg.sub.deep.mod.g": "pkg.sub",
    }
    assert found["pkg.sub.C.m"][0] == words("m")


def test_private_names_tests_short_and_broken_ones_are_left_out(package):
    body = f"    '{words('long')}'\n"
    found = package(
        {
            "mod.py": f"def _f():\n{body}"
            f"class _C:\n    def m(self):\n    {body}"
            f"def short():\n    '{words('short', 19)}'\n"
            f"def kept():\n{body}",
            "tests/test_mod.py": f"def f():\n{body}",
            "_private/mod.py": f"def f():\n{body}",
            "broken.py": "def f(:\n",
            "conftest.py": f"def f():\n{body}",
        }
    )
    assert list(found) == ["pkg.mod.kept"]


def test_docstrings_added_to_c_functions_are_found(package):
    flat = "add_newdoc('pkg._core', 'flat',"
    found = package(
        {
            "_core/_add_newdocs.py": f"{flat} '''{words('a')}''')\n"
            f"{flat} ('base', '''{words('b')}'''))\n"
            f"{flat} [('x', '''{words('c')}''')])\n"
            f"{flat} ('__array__', '''{words('d')}'''))\n",
            "special/_add_newdocs.py": f"add_newdoc('erf', '''{words('e')}''')\n",
            "_docs.py": f"add_docstr(pkg.abs, '''{words('f')}'''.format(**args))\n"
            f"add_docstr_all('cos', '''{words('g')}''')\n",
            "nn.py": f"conv = _add_docstr(pkg.conv, '''{words('h')}''' + 'end')\n",
        }
    )
    assert {name: text.split()[0] for name, (text, _) in found.items()} == {
        "pkg.flat": "a",
        "pkg.flat.base": "b",
        "pkg.flat.x": "c",
        "pkg.special.erf": "e",
        "pkg.abs": "f",
        "pkg.Tensor.cos": "g",
        "pkg.nn.conv": "h",
    }


def test_equal_docstrings_are_kept_once_and_small_subpackages_merged(
    monkeypatch, tmp_path
):
    found = {f"numpy.big.f{n:02}": (words(f"t{n}"), "numpy.big") for n in range(30)}
    found["numpy.small.f"] = (words("small"), "numpy.small")
    found["numpy.small.g"] = (words("small").replace(" ", "\n   "), "numpy.small")
    monkeypatch.setattr(docstrings, "harvest", lambda *_: found)
    corpus = load_corpus("docstrings", packages=["numpy"])
    labels = dict(
        zip(
            corpus.train.ids + corpus.test.ids,
            corpus.train.labels + corpus.test.labels,
            strict=True,
        )
    )
    assert labels["numpy.small.f"] == "numpy"
    assert "numpy.small.g" not in labels
    assert labels["numpy.big.f00"] == "numpy.big"
    for name in corpus.test.ids:
        digest = hashlib.sha256(name.encode()).hexdigest()
        assert int(digest[:16], 16) % 5 == 0


def test_the_installed_numpy_gives_a_corpus():
    corpus = load_corpus("docstrings", packages=("numpy",))
    assert len(corpus.train) > 500
    assert 0.1 < len(corpus.test) / (len(corpus.train) + len(corpus.test)) < 0.3
    assert {"numpy", "numpy.linalg", "numpy.ma"} <= set(corpus.train.labels)
    assert not set(corpus.train.ids) & set(corpus.test.ids)
    assert not set(corpus.train.texts) & set(corpus.test.texts)
    ids = {*corpus.train.ids, *corpus.test.ids}
    assert "numpy.ndarray" in ids
    assert "numpy.linalg.svd" in ids


def test_packages_that_are_not_installed_are_passed_over(monkeypatch):
    find = importlib.util.find_spec
    hidden = {"scipy", "sklearn", "torch"}
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in hidden else find(name)
    )
    assert docstrings.installed_packages() == ["numpy"]
    corpus = load_corpus("docstrings")
    assert {label.split(".")[0] for label in corpus.train.labels} == {"numpy"}
    hidden.add("numpy")
    with pytest.raises(InputError, match="numpy, scipy, sklearn, torch"):
        load_corpus("docstrings")


def test_an_unknown_package_is_refused():
    with pytest.raises(InputError, match="got 'pandas'"):
        load_corpus("docstrings", packages=["pandas"])
