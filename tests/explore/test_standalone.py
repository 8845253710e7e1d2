"""The page as one file."""

from __future__ import annotations

import re

from docsigma.explore.page import write_page
from pages import open_page, until


def test_one_file_shows_documents_and_runs_nothing_of_them(
    browser, make_workspace, tmp_path
):
    given = [("weather", "food", "music")[row % 3] for row in range(306)]
    workspace = make_workspace(given=given)
    workspace.learn()
    file = tmp_path / "explore.html"
    write_page(workspace, file)
    text = file.read_text("utf-8")
    assert not re.search(r'(?:src|href)="(?!data:)[^"]*[/.]', text.split("<script>")[0])
    page = open_page(browser, file.as_uri())
    for row in (0, 2, 5):
        page.evaluate(f"DS.app.open({row})")
        until(page, f"DS.app.shown?.row === {row}")
        assert page.inner_text(".text") == workspace.texts[row]
        assert page.locator("#panel .item").count() == 8
        assert page.locator("#doubt").count() == 1
    page.fill("#query", "violin opera")
    page.press("#query", "Enter")
    until(page, "DS.app.results !== null")
    rows = page.evaluate("DS.app.results.map((found) => found.row)")
    assert all("opera" in workspace.texts[row] for row in rows[:3])
    page.evaluate("DS.app.open(30)")
    until(page, "DS.app.selected[0] === 30")
    page.fill("#new-label", "sound")
    page.press("#new-label", "Enter")
    until(page, "DS.app.state.names.includes('sound')")
    page.click("[data-tab='Label']")
    assert page.locator("#learn").count() == 0
    with page.expect_download() as found:
        page.click("#save")
    assert '{"id":"d30","label":"sound"}' in found.value.path().read_text("utf-8")
    assert page.evaluate("window.hacked") is None
    assert page.errors == []
    assert page.outside == []
    page.context.close()
