"""The page, by clicks and keys in headless Chromium."""

from __future__ import annotations

import csv
import json

import pytest

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


def tab(page, name):
    page.click(f"#tabs [data-tab='{name}']")


def pixel(page, row):
    """Return where a document is on the screen."""
    x, y = page.evaluate(f"DS.map.screen({row}, DS.map.panes()[0])")
    box = page.locator("#map").bounding_box()
    return box["x"] + x, box["y"] + y


def download(page, selector):
    with page.expect_download() as found:
        page.click(selector)
    return found.value.path().read_bytes()


def test_texts_of_documents_are_shown_and_never_run(page, workspace):
    for row in range(6):
        page.evaluate(f"DS.app.open({row})")
        until(page, f"DS.app.selected[0] === {row} && DS.app.shown?.row === {row}")
        assert page.inner_text(".text") == workspace.texts[row]
        page.wait_for_timeout(50)
    assert page.inner_text("#panel h2 >> nth=0") == workspace.ids[5]
    page.fill("#query", "<img src=x onerror='window.hacked=1'> rain")
    page.press("#query", "Enter")
    until(page, "DS.app.results !== null")
    page.evaluate("DS.app.open(5)")
    until(page, "DS.app.selected.length === 1")
    page.fill("#new-label", "<img src=x onerror='window.hacked=1'>")
    page.press("#new-label", "Enter")
    until(page, "DS.app.state.names.length === 1")
    tab(page, "Label")
    assert page.evaluate("window.hacked") is None
    assert page.locator("#panel img, #chips img, #panel script").count() == 0


def test_a_click_opens_a_document_and_its_ellipse(page):
    page.mouse.click(*pixel(page, 40))
    until(page, "DS.app.shown !== null")
    row = page.evaluate("DS.app.selected[0]")
    assert page.evaluate("DS.map.selected") == [row]
    assert page.locator("#panel .item").count() == 8
    shown = page.evaluate("location.hash")
    until(page, f"location.hash.includes('rows={row}')")
    assert shown is not None
    page.click("#panel .item >> nth=2")
    until(page, f"DS.app.selected[0] !== {row}")


def test_ellipse_axes_are_the_eigenvalues(page):
    import numpy as np

    xx, xy, yy, a, b, angle = page.evaluate(
        """(() => { const p = DS.map.points, e = DS.map.ellipse(9);
          return [p.xx[9], p.xy[9], p.yy[9], e.a, e.b, e.angle]; })()"""
    )
    values, vectors = np.linalg.eigh([[xx, xy], [xy, yy]])
    np.testing.assert_allclose([b * b, a * a], values, rtol=1e-5)
    along = np.array([np.cos(angle), np.sin(angle)])
    assert abs(along @ vectors[:, 1]) == pytest.approx(1, abs=1e-5)


def test_lasso_by_button_and_by_shift(page):
    box = page.locator("#map").bounding_box()
    left, top = box["x"] + 5, box["y"] + 60
    right, bottom = box["x"] + box["width"] - 5, box["y"] + box["height"] - 5
    corners = [(right, top), (right, bottom), (left, bottom), (left, top)]
    for way in ("button", "shift"):
        page.keyboard.press("Escape")
        until(page, "DS.app.selected.length === 0")
        page.click("#lasso") if way == "button" else page.keyboard.down("Shift")
        page.mouse.move(left, top)
        page.mouse.down()
        for corner in corners:
            page.mouse.move(*corner, steps=3)
        page.mouse.up()
        until(page, "DS.app.selected.length > 250")
        page.click("#lasso") if way == "button" else page.keyboard.up("Shift")
        # The panel comes after its documents, which the page asks for.
        panel = "document.getElementById('panel').innerText"
        until(page, f"{panel}.includes('documents selected')")


def test_keys_move_zoom_and_come_home(page):
    home = page.evaluate("({...DS.map.view})")
    page.focus("#map")
    for key in ("ArrowLeft", "ArrowUp", "+", "+"):
        page.keyboard.press(key)
    moved = page.evaluate("({...DS.map.view})")
    assert moved["scale"] == pytest.approx(1.4**2 * home["scale"])
    assert moved["x"] < home["x"]
    assert moved["y"] > home["y"]
    page.keyboard.press("Home")
    assert page.evaluate("({...DS.map.view})") == home
    page.keyboard.press("Enter")
    until(page, "DS.app.shown !== null")
    page.keyboard.press("/")
    page.keyboard.type("rain")
    page.keyboard.press("Enter")
    until(page, "DS.app.results?.length > 0")
    assert "sure" in page.inner_text("#panel .item small >> nth=0")


def test_wheel_zooms_at_the_pointer_and_drag_moves(page):
    x, y = pixel(page, 30)
    page.mouse.move(x, y)
    page.mouse.wheel(0, -400)
    until(page, "DS.map.view.scale > 1.5 * DS.map.home_scale")
    assert pixel(page, 30) == pytest.approx((x, y), abs=2)
    page.mouse.down()
    page.mouse.move(x + 50, y - 30, steps=4)
    page.mouse.up()
    assert pixel(page, 30) == pytest.approx((x + 50, y - 30), abs=2)


def test_colours_change_the_picture_and_a_topic_stands_alone(page):
    seen = set()
    for colour in ("topic", "label", "doubt", "odd"):
        page.select_option("#colour", colour)
        seen.add(page.evaluate("DS.map.colour.join()"))
    assert len(seen) == 4
    for show in ("size", "none", "opacity"):
        page.select_option("#show", show)
        seen.add(page.evaluate("DS.map.colour.join() + DS.map.weight.join()"))
    assert len(seen) == 7
    tab(page, "Topics")
    page.click("[data-topic='1']")
    assert page.get_attribute("[data-topic='1']", "aria-pressed") == "true"
    assert page.locator("#panel .item").count() == 3
    tab(page, "Odd ones")
    assert page.locator("#panel .list >> nth=0 >> .item").count() == 20
    assert "Not known to the model" in page.inner_text("#panel")


def test_state_is_in_the_address(page, browser):
    page.select_option("#colour", "doubt")
    page.evaluate("DS.app.open(12)")
    page.focus("#map")
    page.keyboard.press("+")
    until(page, "/colour=doubt.*rows=12.*view=/.test(location.hash)")
    page.wait_for_timeout(300)
    view = page.evaluate("({...DS.map.view})")
    again = open_page(browser, page.url)
    assert again.evaluate("DS.app.selected") == [12]
    assert again.evaluate("DS.app.colour") == "doubt"
    assert again.evaluate("DS.map.view.scale") == pytest.approx(view["scale"], rel=1e-3)
    again.context.close()


def test_label_learn_ask_save_load_and_export(page, workspace):
    truth = ("weather", "food", "music")
    tab(page, "Label")
    assert page.is_disabled("#learn")
    page.click("#ask")
    for n in range(10):
        until(page, "DS.app.learning.asking && DS.app.shown !== null")
        row = page.evaluate("DS.app.selected[0]")
        name = truth[row % 3]
        names = page.evaluate("DS.app.state.names")
        if name in names:
            page.focus("#map")
            page.keyboard.press(str(names.index(name) + 1))
        else:
            page.fill("#new-label", name)
            page.press("#new-label", "Enter")
        until(page, f"DS.app.selected[0] !== {row} && !DS.app.learning.busy")
        assert len(workspace.labels) == n + 1
    # After ten the page has learned, and asks on.
    until(page, "DS.app.state.predicted !== undefined && DS.app.colour === 'label'")
    assert workspace.predictions is not None
    tab(page, "Label")
    page.click("#stop")
    page.evaluate("DS.app.open(33)")
    until(page, "document.getElementById('doubt') !== null")
    assert "at the most" in page.inner_text("#doubt")
    tab(page, "Label")
    saved = download(page, "#save").decode()
    assert len(saved.splitlines()) == 10
    rows = list(csv.DictReader(download(page, "#export").decode().splitlines()))
    assert len(rows) == len(workspace)
    right = sum(row["predicted"] == truth[i % 3] for i, row in enumerate(rows))
    assert right > 0.7 * len(rows)
    page.set_input_files("#load", files=[_file(json.dumps({"id": "d7", "label": "x"}))])
    until(page, "DS.app.state.names.includes('x')")
    assert workspace.labels.of[7] == "x"
    page.set_input_files("#load", files=[_file("{")])
    until(page, "document.getElementById('status').textContent.includes('not a JSON')")
    assert page.locator("#status.error").count() == 1
    page.errors.clear()  # Chromium logs the 422 that the sentence came with.
    page.evaluate("DS.app.open(7)")
    until(page, "DS.app.selected[0] === 7")
    page.focus("#map")
    page.keyboard.press("u")
    until(page, "DS.app.state.label[7] === -1")
    assert download(page, "#png")[:4] == b"\x89PNG"
    assert download(page, "#csv").startswith(b"id,label")


def _file(text):
    return {"name": "labels.jsonl", "mimeType": "text/plain", "buffer": text.encode()}


def test_dark_mode_by_wish_and_by_key(browser, workspace):
    with Served(workspace) as url:
        page = open_page(browser, url, scheme="dark")
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        page.keyboard.press("d")
        assert page.evaluate("document.documentElement.dataset.theme") == "light"
        page.context.close()


@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_is_wider_than_the_screen(browser, make_workspace, width):
    with Served(make_workspace(n_old=150)) as url:
        page = open_page(browser, url, width=width)
        names = page.evaluate("Object.keys(DS.app.panels)")
        assert "Batches" in names
        for name in names:
            tab(page, name)
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, name
        page.context.close()


def test_two_batches_side_by_side(browser, make_workspace):
    with Served(make_workspace(n_old=150)) as url:
        page = open_page(browser, url)
        tab(page, "Batches")
        assert page.locator(".shift").count() == 3
        assert "of the new batch" in page.inner_text("#panel")
        page.select_option("#batch", "side")
        left, right = page.evaluate("DS.map.panes()")
        assert (left["only"], right["only"]) == (0, 1)
        page.mouse.click(*_pixel_of_pane(page, 200, 1))
        until(page, "DS.app.shown !== null")
        assert page.evaluate("DS.app.selected[0]") >= 150
        page.context.close()


def _pixel_of_pane(page, row, pane):
    x, y = page.evaluate(f"DS.map.screen({row}, DS.map.panes()[{pane}])")
    box = page.locator("#map").bounding_box()
    return box["x"] + x, box["y"] + y
