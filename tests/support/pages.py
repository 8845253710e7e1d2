"""Pages in a real browser."""

from __future__ import annotations

import time


def until(page, expression, seconds=60):
    """Wait until an expression holds; the page's policy forbids Playwright's way."""
    deadline = time.monotonic() + seconds
    while not page.evaluate(expression):
        said = page.inner_text("#status")
        assert time.monotonic() < deadline, f"{expression} never held; {said}"
        page.wait_for_timeout(20)


def open_page(browser, url, *, width=1280, scheme="light"):
    """Open the explorer; what leaves the machine or fails is noted on the page."""
    context = browser.new_context(
        viewport={"width": width, "height": 800},
        color_scheme=scheme,
        accept_downloads=True,
    )
    page = context.new_page()
    page.outside, page.errors = [], []
    origin = url.split("/explore")[0]

    def request(found):
        if not found.url.startswith((origin, "blob:", "data:", "file:")):
            page.outside.append(found.url)

    page.on("request", request)
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.on(
        "console",
        lambda said: page.errors.append(said.text) if said.type == "error" else None,
    )
    page.goto(url)
    page.wait_for_selector("html[data-ready]", state="attached", timeout=60_000)
    return page
