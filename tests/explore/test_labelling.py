"""Search, labels and the legend, by clicks and keys in headless Chromium."""

from __future__ import annotations

import io

import numpy as np
import pytest

from docsigma.explore.workspace import Workspace
from explorer import Served
from pages import open_page, until


@pytest.fixture
def page(browser, workspace):
    with Served(workspace) as url:
        page = open_page(browser, url)
        yield page
        assert page.outside == []
        assert page.errors == []
        page.context.close()


@pytest.fixture
def many(corpus, browser):
    """A page of 77 labels, of which label 3 has the most documents."""
    model, texts = corpus
    q = model.posterior(model.vocabulary_.count(texts).counts)
    labels = [f"label {row % 77}" for row in range(len(texts))]
    labels[250:] = ["label 3"] * len(labels[250:])
    labels[76] = "a name so long that no box of this page has room for all of it"
    ids = [f"d{row}" for row in range(len(texts))]
    with Served(Workspace(model, q, ids, texts, labels, n_topics=3)) as url:
        page = open_page(browser, url)
        page.select_option("#colour", "label")
        yield page
        page.context.close()


def press(page, keys):
    page.focus("#map")
    page.keyboard.press(keys)


def select(page, rows):
    page.evaluate(f"DS.app.select({rows})")
    until(page, f"DS.app.selected.length === {len(rows)}")


def label_by_name(page, row, name):
    select(page, [row])
    page.fill("#new-label", name)
    page.press("#new-label", "Enter")
    until(page, f"DS.app.state.label[{row}] >= 0")


def search(page, text):
    page.fill("#query", text)
    page.press("#query", "Enter")
    until(page, "DS.app.results?.length > 0")


def test_a_search_selects_nothing_and_outlines_what_it_found(page, workspace):
    label_by_name(page, 7, "wet")
    search(page, "rain and storm")
    until(page, "DS.app.selected.length === 0")
    assert page.is_hidden("#labelling")
    page.wait_for_timeout(100)
    assert page.evaluate("DS.map.over_dots") == {"ellipses": 0, "outlines": 10}
    press(page, "1")
    page.wait_for_timeout(100)
    assert len(workspace.labels) == 1


def test_a_key_labels_many_only_after_a_question(page, workspace):
    label_by_name(page, 7, "wet")
    select(page, [10, 11, 12])
    press(page, "1")
    assert "Label 3 documents “wet”?" in page.inner_text("#asking")
    assert len(workspace.labels) == 1
    press(page, "Escape")
    assert page.inner_text("#asking") == ""
    # What was selected still is.
    assert page.evaluate("DS.app.selected.length") == 3
    press(page, "1")
    page.click("#confirm")
    until(page, "DS.app.state.label[12] === 0")
    assert len(workspace.labels) == 4
    press(page, "u")
    assert "Remove the labels of 3 documents?" in page.inner_text("#asking")
    page.keyboard.press("Enter")
    until(page, "DS.app.state.label[12] === -1")
    assert sorted(workspace.labels.of) == [7]


def test_undo_and_redo_by_key_and_by_button(page, workspace):
    label_by_name(page, 7, "wet")
    label_by_name(page, 8, "dry")
    select(page, [7, 8, 9])
    page.click("#chips [data-label='dry']")
    until(page, "DS.app.state.label[9] === 1")
    assert workspace.labels.of == {7: "dry", 8: "dry", 9: "dry"}
    press(page, "Control+z")
    until(page, "DS.app.state.label[9] === -1")
    assert workspace.labels.of == {7: "wet", 8: "dry"}
    press(page, "Control+z")
    until(page, "DS.app.state.label[8] === -1")
    press(page, "Control+Shift+z")
    until(page, "DS.app.state.label[8] === 1")
    page.click("#tabs [data-tab='Label']")
    page.click("#redo")
    until(page, "DS.app.state.label[9] === 1")
    assert workspace.labels.of == {7: "dry", 8: "dry", 9: "dry"}
    page.click("#undo")
    until(page, "DS.app.state.label[9] === -1")
    # In a box with text the key is the box's own.
    page.fill("#new-label", "text")
    page.press("#new-label", "Control+z")
    page.wait_for_timeout(100)
    assert workspace.labels.of == {7: "wet", 8: "dry"}


def test_escape_clears_every_filter(browser, make_workspace):
    with Served(make_workspace(n_old=150)) as url:
        page = open_page(browser, url)
        page.click("[data-topic='1']")
        page.select_option("#batch", "new")
        search(page, "rain")
        select(page, [3, 4])
        page.click("#lasso")
        press(page, "Escape")
        until(page, "DS.app.selected.length === 0")
        assert page.evaluate("DS.app.highlight") is None
        assert page.evaluate("DS.map.batch") == "both"
        assert page.input_value("#batch") == "both"
        assert page.input_value("#query") == ""
        assert page.evaluate("DS.map.found.length") == 0
        assert page.get_attribute("#lasso", "aria-pressed") == "false"
        page.context.close()


def test_one_ellipse_below_the_pointer_and_for_one_that_is_selected(page):
    def over():
        page.wait_for_timeout(100)
        return page.evaluate("DS.map.over_dots")

    assert over() == {"ellipses": 0, "outlines": 0}
    x, y = page.evaluate("DS.map.screen(40, DS.map.panes()[0])")
    box = page.locator("#map").bounding_box()
    page.mouse.move(box["x"] + x, box["y"] + y)
    assert over() == {"ellipses": 1, "outlines": 0}
    page.mouse.move(5, 5)
    assert over() == {"ellipses": 0, "outlines": 0}
    select(page, [40])
    assert over() == {"ellipses": 1, "outlines": 0}
    select(page, list(range(20)))
    assert over() == {"ellipses": 0, "outlines": 20}


def test_77_labels_differ_by_colour_or_shape(many):
    looks = many.evaluate(
        """[...Array(77).keys()].map((n) => [...DS.colours.named(n),
          ...DS.colours.pixels(DS.colours.shape(n), 4)].join())"""
    )
    assert len(set(looks)) == 77
    assert many.evaluate("new Set(DS.map.shape).size") == 8


def test_labels_are_listed_by_use_and_found_by_name(many):
    many.click("#tabs [data-tab='Label']")
    names = many.locator("#labels .words")
    assert names.nth(0).inner_text() == "label 3"
    assert many.locator("#legend .key").nth(0).inner_text() == "label 3"
    many.fill("#filter", "abel 7")
    shown = names.all_inner_texts()
    assert set(shown) == {f"label {n}" for n in (7, *range(70, 77))}
    select(many, [5])
    many.fill("#new-label", "75")
    assert many.locator("#chips button").all_inner_texts() == ["label 75"]
    # A long name is cut, and a tooltip has all of it.
    long = many.locator("#legend .key", has_text="a name so long")
    assert long.get_attribute("title").startswith("a name so long that no box of")
    assert long.bounding_box()["width"] <= 190


def test_the_legend_hides_no_dot_and_is_in_the_picture(many):
    legend = many.locator("#legend").bounding_box()
    view = many.locator("#map").bounding_box()
    assert legend["y"] >= view["y"] + view["height"]
    many.click("#legend .key >> nth=0")
    assert many.evaluate("DS.app.highlight") == 3
    image = pytest.importorskip("PIL.Image")
    with many.expect_download() as found:
        many.click("#png")
    picture = image.open(io.BytesIO(found.value.path().read_bytes()))
    assert picture.height > view["height"] + 100
    below = np.asarray(picture.convert("L"))[round(view["height"]) :]
    assert (below < 80).sum() > 200


def test_certainty_is_said_in_words_and_of_what_it_is_a_share(page):
    select(page, [40])
    until(page, "document.getElementById('certainty') !== null")
    said = page.inner_text("#certainty")
    assert "known: " in said
    assert "variance removed, more than for" in said


def test_questions_count_down_in_english(page):
    page.click("#tabs [data-tab='Label']")
    page.click("#ask")
    until(page, "DS.app.learning.asking && DS.app.shown !== null")
    assert page.inner_text("#chosen") == "Which label fits? 10 left"


def test_a_message_is_near_the_top_and_an_error_stays(page):
    label_by_name(page, 7, "wet")
    assert "1 document labelled “wet”." in page.inner_text("#status")
    page.click("#status button")
    until(page, "DS.app.state.label[7] === -1")
    page.evaluate("DS.app.safely(() => { throw new Error('it is not running'); })")
    assert page.inner_text("#status") == "It is not running."
    assert page.locator("#status.error").bounding_box()["y"] < 150


def test_on_a_telephone_the_text_has_room(browser, workspace):
    with Served(workspace) as url:
        context = browser.new_context(
            viewport={"width": 400, "height": 800}, has_touch=True, is_mobile=True
        )
        page = context.new_page()
        page.goto(url)
        page.wait_for_selector("html[data-ready]", state="attached")
        assert "pinch to zoom" in page.inner_text("#hint")
        select(page, [40])
        until(page, "document.querySelector('.text') !== null")
        text = page.locator(".text").bounding_box()
        bar = page.locator("#labelling").bounding_box()
        # Above the bar of labels, and not a box that scrolls.
        assert text["y"] + 40 < bar["y"]
        style = "getComputedStyle(document.querySelector('.text')).maxHeight"
        assert page.evaluate(style) == "none"
        context.close()


def test_neighbours_lie_together_without_ellipses(page, workspace):
    pytest.importorskip("openTSNE")
    before = page.evaluate("DS.map.points.x.slice(0, 3).join()")
    page.select_option("#layout", "neighbours")
    until(page, "!DS.map.exact")
    x, y = page.evaluate("[[...DS.map.points.x], [...DS.map.points.y]]")
    places = np.column_stack([x, y])
    # Of two documents, the nearer one on the plane is nearly always of the same topic.
    apart = np.square(places[:, None] - places).sum(axis=2)
    np.fill_diagonal(apart, np.inf)
    truth = np.arange(len(places)) % 3
    assert (truth[apart.argmin(axis=1)] == truth).mean() > 0.8
    assert "mean nothing" in page.inner_text("#hint")
    assert page.evaluate("DS.map.names.length") == 3
    select(page, [40])
    page.wait_for_timeout(100)
    assert page.evaluate("DS.map.over_dots") == {"ellipses": 0, "outlines": 1}
    page.select_option("#layout", "exact")
    until(page, "DS.map.exact")
    assert page.evaluate("DS.map.points.x.slice(0, 3).join()") == before


def test_a_message_hides_no_text_of_the_panel(page):
    page.click("#tabs [data-tab='Label']")
    page.click("#ask")
    until(page, "DS.app.learning.asking && DS.app.shown !== null")
    until(page, "document.getElementById('status').innerText.startsWith('Give')")
    said = page.locator("#status").bounding_box()
    assert said["x"] + said["width"] <= page.locator("#side").bounding_box()["x"]


def test_the_number_of_a_key_in_the_box_is_its_label(page, workspace):
    label_by_name(page, 7, "wet")
    select(page, [8])
    page.fill("#new-label", "1")
    assert page.locator("#chips [data-label]").all_inner_texts() == ["wet\n1"]
    page.press("#new-label", "Enter")
    until(page, "DS.app.state.label[8] >= 0")
    # No label has the key 2, so that it is a name; then the name comes first.
    label_by_name(page, 9, "2")
    label_by_name(page, 10, "dry")
    label_by_name(page, 11, "2")
    assert workspace.labels.of == {7: "wet", 8: "wet", 9: "2", 10: "dry", 11: "2"}


def test_documents_of_a_label_are_listed_and_lie_on_top(page, workspace):
    for row in (7, 8):
        label_by_name(page, row, "wet")
    page.click("#tabs [data-tab='Label']")
    page.click("#labels [data-name='wet']")
    until(page, "document.querySelectorAll('#labels .item').length === 2")
    shown = page.locator("#labels .item").all_inner_texts()
    assert [workspace.ids[row] in shown[row - 7] for row in (7, 8)] == [True, True]
    # All others are drawn before, wherever they are.
    assert page.evaluate("DS.map.behind.indexOf(0)") == 7
    assert page.evaluate("DS.map.behind.reduce((a, b) => a + b)") == len(workspace) - 2
    colour = page.evaluate(
        """(() => { const m = DS.map; m.selected = []; m.points.x[9] = m.points.x[7];
          m.points.y[9] = m.points.y[7]; m.stale = true; m.drawNow();
          const [x, y] = m.screen(7, m.panes()[0]).map(Math.round);
          return m.pixels[x + y * m.width] === m.colour[7]; })()"""
    )
    assert colour
    # A label taken back leaves the list.
    press(page, "Control+z")
    until(page, "document.querySelectorAll('#labels .item').length === 1")


def test_dots_use_the_whole_scale_however_alike_certainties_are(page):
    ranks = page.evaluate("[...DS.Map.ranks(Uint8Array.from([40, 42, 41, 41]))]")
    assert ranks == [32, 223, 128, 128]
    assert page.evaluate("[...DS.Map.ranks(new Uint8Array(3))]") == [128, 128, 128]
    strength = page.evaluate("[...DS.map.strength]")
    assert min(strength) < 32
    assert max(strength) > 223
