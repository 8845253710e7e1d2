"""The documentation builds, shows no raw markup, and what it says runs."""

from __future__ import annotations

import html
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("mkdocs")
pytest.importorskip("latex2mathml")
typer = pytest.importorskip("typer")

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
RAW = (
    ":math:",
    ".. math::",
    "$$",
    ":func:",
    ":class:",
    ":meth:",
    ":mod:",
    "{{ ",
    "```",
)
REMOTE = ("https://cdn", "unpkg", "fonts.g")
FENCE = re.compile(r"^( *)```(\w+)( run)?\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, *languages: str, run: bool | None = None) -> list[str]:
    """Return the blocks of a page; those that the build runs, does not run, or all."""
    return [
        textwrap.dedent(body)
        for _, name, is_run, body in FENCE.findall(page.read_text("utf-8"))
        if name in languages and run in (None, bool(is_run))
    ]


def commands() -> list[tuple[str, list[str]]]:
    lines = []
    for page in PAGES:
        for body in blocks(page, "bash", "console"):
            for line in body.replace("\\\n", " ").splitlines():
                words = shlex.split(line.removeprefix("$ "))
                if "docsigma" in words:
                    lines.append((page.name, words[words.index("docsigma") + 1 :]))
    return lines


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, "--site-dir", str(folder)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_built(site: Path) -> None:
    built = {page.relative_to(site) for page in site.rglob("*.html")}
    written = {page.relative_to(DOCS).with_suffix(".html") for page in PAGES}
    assert written <= built


def test_every_notebook_was_run_when_the_site_was_built(site: Path) -> None:
    notebooks = sorted(DOCS.glob("notebooks/*.ipynb"))
    assert len(notebooks) >= 3
    for file in notebooks:
        kept = json.loads(file.read_text("utf-8"))["cells"]
        n_cells = sum(cell["cell_type"] == "code" for cell in kept)
        shown = (site / "notebooks" / f"{file.stem}.html").read_text("utf-8")
        numbers = re.findall(r"In\s*\[(\d+)\]", html.unescape(shown))
        assert sorted(map(int, numbers)) == list(range(1, n_cells + 1)), file
        assert "jp-OutputArea-output" in shown, file


def test_no_raw_markup_is_shown(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = html.unescape(page.read_text("utf-8"))
        assert [mark for mark in RAW if mark in text] == [], page


def test_formulas_are_mathml(site: Path) -> None:
    for name in ("model.html", "evidence.html", "api/models.html"):
        text = (site / name).read_text("utf-8")
        assert text.count("<math ") > 3
        assert text.count("<math ") == text.count("</math>")
        # A command that the converter does not know stays in the text.
        formulas = re.findall(r"<math .*?</math>", text, re.DOTALL)
        assert [formula for formula in formulas if "\\" in formula] == []


def test_nothing_comes_from_the_network(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text("utf-8")
        assert [address for address in REMOTE if address in text] == [], page
        assert re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="?http', text) == []


PROBED = [
    "index",
    "tasks/classify",
    "model",
    "architecture",
    "evidence",
    "topic-id",
    "cli",
]
# What a reader's browser makes of a page.
PROBE = """() => {
  const height = e => e.getBoundingClientRect().height;
  const article = document.querySelector("article").getBoundingClientRect();
  return {
    flat: [...document.querySelectorAll("math")].filter(e => height(e) < 5).length,
    maths: document.querySelectorAll("math").length,
    broken: [...document.images].filter(e => !e.naturalWidth).map(e => e.src),
    wide: [...document.querySelectorAll("article table, article img")]
      .filter(e => e.getBoundingClientRect().left < article.left - 1).length,
    heading: document.querySelector("h1").innerText,
  };
}"""


@pytest.mark.parametrize("name", PROBED)
def test_page_is_laid_out_in_chromium(site: Path, browser, name: str) -> None:
    file = site / f"{name}.html"
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(file.as_uri())
    seen = page.evaluate(PROBE)
    page.close()
    assert seen["broken"] == []
    assert seen["flat"] == 0
    assert seen["wide"] == 0
    assert seen["heading"].strip()
    assert seen["maths"] == file.read_text("utf-8").count("<math ")


@pytest.mark.parametrize("width", [400, pytest.param(1280, marks=pytest.mark.release)])
def test_no_page_is_wider_than_the_screen(site: Path, browser, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    for file in sorted(site.rglob("*.html")):
        page.goto(file.as_uri())
        seen = page.evaluate(
            """() => ({
              over: document.documentElement.scrollWidth - window.innerWidth,
              broken: [...document.querySelectorAll(
                ".doc-heading code, .doc-heading .doc-object-name")]
                .filter(e => e.getClientRects().length > 1).map(e => e.innerText)})"""
        )
        assert seen["over"] <= 0, file
        assert seen["broken"] == [], file


def test_search_works_from_a_file(site: Path, browser) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto((site / "index.html").as_uri())
    page.click(".md-search__input")
    page.keyboard.type("tokenizer", delay=50)
    page.wait_for_selector(".md-search-result__item", timeout=30_000)
    assert page.locator(".md-search-result__item").count() > 2


def test_search_leads_with_pages_not_classes(site: Path, browser) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    for words, first in (("classify", "tasks/classify"), ("search", "search")):
        page.goto((site / "index.html").as_uri())
        page.click(".md-search__input")
        page.keyboard.type(words, delay=50)
        page.wait_for_selector(".md-search-result__item", timeout=30_000)
        page.wait_for_timeout(500)
        found = page.eval_on_selector_all(
            ".md-search-result__item > a", "links => links.map((link) => link.href)"
        )
        assert found[0].split("?")[0] == (site / f"{first}.html").as_uri()
        # Any class comes after three pages.
        assert not any("/api/" in address for address in found[:3])
    page.close()


def test_the_copy_button_takes_commands_alone(site: Path, browser) -> None:
    page = browser.new_page()
    page.goto((site / "quickstart.html").as_uri())
    page.evaluate(
        """() => { navigator.clipboard.writeText = async (text) => {
          window.copied = text; };
          document.execCommand = () => {
            window.copied = document.activeElement.value || getSelection().toString();
            return true; }; }"""
    )
    page.locator(".highlight[data-copy] button").first.click(force=True)
    page.wait_for_timeout(300)
    assert page.evaluate("window.copied").splitlines() == [
        "docsigma fit tickets.csv --out model --components 2 \\",
        "    --l1 0.1 --learning-rate 0.05 --max-iter 200",
        "docsigma embed model tickets.csv --out tickets.jsonl",
        "docsigma topics model --words 4",
    ]
    page.close()


def test_figures_open_large_and_tables_scroll_on_a_telephone(
    site: Path, browser
) -> None:
    page = browser.new_page(viewport={"width": 400, "height": 900})
    for name in ("index", "explore", "search", "topic-id", "cli"):
        page.goto((site / f"{name}.html").as_uri())
        seen = page.evaluate(
            """() => ({
              figures: [...document.querySelectorAll("article img")]
                .filter((image) => !image.closest("a")).length,
              cut: [...document.querySelectorAll("article table")].filter((table) =>
                table.getBoundingClientRect().width > innerWidth
                && !table.closest(".md-typeset__scrollwrap")).length})"""
        )
        assert seen == {"figures": 0, "cut": 0}, name
    page.close()


def test_all_tasks_are_where_to_go() -> None:
    home = (DOCS / "index.md").read_text("utf-8")
    listed = (ROOT / "mkdocs.yml").read_text("utf-8")
    tasks = listed.split("- Tasks:")[1].split("- Notebooks:")[0]
    for page in re.findall(r": ([\w/-]+\.md)", tasks):
        assert f"({page})" in home, page


def test_links_of_files_outside_the_site_lead_somewhere() -> None:
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        text = (ROOT / name).read_text("utf-8")
        for target in re.findall(r"\]\(([^)#]+)", text):
            assert (ROOT / target).exists(), f"{name}: {target}"
        for target in re.findall(r"`((?:docs|paper|benchmarks)/[\w./-]+)`", text):
            assert (ROOT / target).exists(), f"{name}: {target}"


@pytest.mark.parametrize(
    "page",
    [p for p in [ROOT / "README.md", *PAGES] if blocks(p, "python", run=False)],
    ids=lambda page: page.stem,
)
def test_python_that_the_build_does_not_run_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A page has one sort of block: each is run once, after those before it.
    assert blocks(page, "python", run=True) == []
    shutil.copytree(DOCS / "examples", tmp_path, dirs_exist_ok=True)
    shutil.copytree(DOCS / "examples", tmp_path / "docs" / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DOCSIGMA_DATA", raising=False)
    namespace: dict[str, object] = {}
    for number, body in enumerate(blocks(page, "python"), start=1):
        exec(compile(body, f"{page.name}, block {number}", "exec"), namespace)


def test_pages_show_every_command() -> None:
    from docsigma.cli.app import app

    shown = {words[0] for _, words in commands()}
    assert set(typer.main.get_command(app).commands) <= shown


@pytest.mark.parametrize(("page", "words"), commands())
def test_command_and_its_options_exist(page: str, words: list[str]) -> None:
    from docsigma.cli.app import app

    command = typer.main.get_command(app)
    used = {word.split("=")[0] for word in words if word.startswith("-")}
    for word in words:
        if not hasattr(command, "commands"):
            break
        assert word in command.commands, page
        command = command.commands[word]
    flags = {flag for parameter in command.params for flag in parameter.opts}
    assert used - {"-h", "--help"} <= flags, page
