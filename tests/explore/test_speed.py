from __future__ import annotations

import pytest

from explorer import Served, measure, synthetic_workspace
from pages import open_page

# What benchmarks/explore.py shows on two idle cores is below 5 s and above 30 frames;
# others may be at work on the machine that runs the tests, so the best of three counts,
# a third of the frames will do, and the drawing itself must fit into a thirtieth.
SECONDS = 5.0
FRAMES = 10.0


def test_two_thousand_documents_are_drawn_and_moved(browser):
    with Served(synthetic_workspace(2000)) as url:
        page = open_page(browser, url)
        found = measure(page, url, seconds=0.5)
        assert page.evaluate("DS.map.n") == 2000
        page.context.close()
    # Whatever the machine does besides, the map moves under the mouse.
    assert found["frames_per_second"] > 0


@pytest.mark.release
def test_a_hundred_thousand_documents_are_drawn_and_moved(browser):
    workspace = synthetic_workspace(100_000)
    with Served(workspace) as url:
        page = open_page(browser, url)
        found = [measure(page, url, seconds=2.0) for _ in range(3)]
        assert page.evaluate("DS.map.n") == 100_000
        page.context.close()
    assert min(one["load_seconds"] for one in found) < SECONDS, found
    assert min(one["milliseconds_per_frame"] for one in found) < 1000 / 30, found
    assert max(one["frames_per_second"] for one in found) > FRAMES, found
