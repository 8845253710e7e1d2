"""The explorer, served by this process."""

from __future__ import annotations

import threading
import time

import uvicorn

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
