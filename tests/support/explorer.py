"""The explorer, served by this process."""

from __future__ import annotations

import threading
import time

import numpy as np
import uvicorn

from docsigma import DocumentEmbedder, GaussianPosterior, GaussianPrior
from docsigma.explore.workspace import Workspace
from docsigma.service.app import make_app
from docsigma.service.engine import Engine
from docsigma.service.explore import add_explorer


def explorer(workspace):
    app = make_app(Engine(workspace.model))
    add_explorer(app, workspace, {"127.0.0.1", "localhost", "testserver"})
    return app


class Served:
    """A page that a server of this process gives, until it is left."""

    def __init__(self, workspace):
        config = uvicorn.Config(
            explorer(workspace), port=0, log_level="warning", lifespan="on"
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    def __enter__(self):
        self._thread.start()
        deadline = time.monotonic() + 60
        while not self._server.started and time.monotonic() < deadline:
            time.sleep(0.02)
        port = self._server.servers[0].sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}/explore/"

    def __exit__(self, *_):
        self._server.should_exit = True
        self._thread.join(30)


def synthetic_workspace(n_documents, n_components=10, seed=0):
    """Return documents of twenty topics, drawn as Gaussians, with short texts."""
    random = np.random.default_rng(seed)
    words = [f"w{number:03d}" for number in range(200)]
    some = [" ".join(random.choice(words, 30)) for _ in range(60)]
    model = DocumentEmbedder(n_components, random_state=0).fit(some).model_
    centres = 1.5 * random.normal(size=(20, n_components))
    mean = centres[random.integers(20, size=n_documents)]
    mean += 0.5 * random.normal(size=mean.shape)
    variance = random.gamma(2, 0.05, size=mean.shape)
    prior = GaussianPrior.isotropic(1.0, n_components)
    n_tokens = random.integers(1, 200, size=n_documents)
    q = GaussianPosterior(mean, variance, prior=prior, n_tokens=n_tokens)
    texts = [some[row % 60] for row in range(n_documents)]
    ids = [str(row) for row in range(n_documents)]
    return Workspace(model, q, ids, texts, title="synthetic")


def measure(page, url, seconds=3.0):
    """Return seconds until all documents are drawn, and frames per second in panning.

    The page is loaded anew; then the mouse drags the map, and frames in which it was
    drawn are counted.
    """
    page.goto("about:blank")
    started = time.perf_counter()
    page.goto(url)
    page.wait_for_selector("html[data-ready]", state="attached", timeout=60_000)
    loaded = time.perf_counter() - started
    box = page.locator("#map").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    before, started = page.evaluate("DS.map.frames"), time.perf_counter()
    step = 0
    while time.perf_counter() - started < seconds:
        step += 1
        page.mouse.move(x + 3 * (step % 80), y + 2 * (step % 50))
    drawn = page.evaluate("DS.map.frames") - before
    elapsed = time.perf_counter() - started
    page.mouse.up()
    own = page.evaluate(
        """(() => { const found = [];
          for (let i = 0; i < 30; i++) { const t = performance.now();
            DS.map.stale = true; DS.map.drawNow(); found.push(performance.now() - t); }
          return found.sort((a, b) => a - b)[15]; })()"""
    )
    return {
        "load_seconds": loaded,
        "frames_per_second": drawn / elapsed,
        "milliseconds_per_frame": own,
    }
