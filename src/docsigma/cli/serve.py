"""`docsigma serve`: the REST service."""

from __future__ import annotations

import ipaddress
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from docsigma.cli import _common
from docsigma.cli._common import option
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from docsigma.service.engine import Engine

# Environment variable that holds the key.
KEY = "DOCSIGMA_API_KEY"
# Characters; shorter keys can be guessed.
LEAST_KEY = 16


def serve(
    model: _common.ModelFolder,
    *,
    classifier: Annotated[
        Path | None, option("Folder made by `classifier fit`, for /classify.", "none")
    ] = None,
    index: Annotated[
        Path | None, option("Folder made by `index`, for /search.", "none")
    ] = None,
    host: Annotated[
        str,
        option(f"Address to listen on; beyond this machine it needs {KEY}."),
    ] = "127.0.0.1",
    port: Annotated[int, option("Port to listen on.")] = 8000,
    max_documents: Annotated[int, option("Most documents per request.")] = 512,
    timeout: Annotated[float, option("Seconds that a request may take.")] = 30.0,
    language: Annotated[
        str | None, option("Language of the requests.", "the model has only one")
    ] = None,
    device: _common.Device = None,
) -> None:
    """Serve a model over HTTP: /embed, /classify, /search, /topics.

    MODEL may be a folder of `classifier fit`: it holds its model, and serves /classify.
    /docs is a page to try it, /health and /ready are for monitoring, /metrics for
    Prometheus. If the environment variable DOCSIGMA_API_KEY is set, requests must send
    it as the header X-API-Key.

    Example: docsigma serve model --port 8080
    """
    key = check_address(host, port)
    _common.check_positive("--max-documents", max_documents)
    if not 0 < timeout < float("inf"):
        raise InputError(f"--timeout must be above 0, got {timeout:g}")
    engine = load_engine(model, classifier, index, device, language)
    from docsigma.service.app import make_app
    from docsigma.service.guard import ServiceSettings

    limits = ServiceSettings(key, max_documents=max_documents, timeout=timeout)
    last = int(timeout) + 1
    where = f"[{host}]" if ":" in host else host
    typer.echo(f"{model} at http://{where}:{port}/docs (Ctrl-C stops)", err=True)
    run_app(make_app(engine, limits), host, port, timeout_graceful_shutdown=last)


def check_address(host: str, port: int) -> str | None:
    """Return the key; without one, refuse an address that other machines can reach."""
    if not 0 < port < 65536:
        raise InputError(f"--port must be from 1 to 65535, got {port}")
    key = os.environ.get(KEY)
    if key is not None and (len(key) < LEAST_KEY or not key.isascii()):
        raise InputError(
            f"{KEY} must have {LEAST_KEY} characters of ASCII or more, got {len(key)}: "
            "`openssl rand -hex 16` makes one"
        )
    if key is None and not _is_loopback(host):
        raise InputError(
            f"--host {host} can be reached by other machines: set {KEY} first, or "
            "listen on 127.0.0.1"
        )
    # A port in use is refused before anything is read.
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise InputError(
                f"cannot listen on --port {port} of {host} ({error.strerror}): choose "
                "another"
            ) from error
    return key


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def load_engine(
    model: Path,
    classifier: Path | None,
    index: Path | None,
    device: str | None = None,
    language: str | None = None,
) -> Engine:
    """Load what is served; refuse a classifier or an index of another model.

    The folder of a classifier holds its model, and gives both.
    """
    try:
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        message = "the service needs: pip install docsigma[serve]"
        raise InputError(message) from error
    from docsigma.classifiers.counts_classifier import FOLDER_KIND, CountsClassifier
    from docsigma.persistence import read_model
    from docsigma.search import DocumentIndex
    from docsigma.service.engine import Engine

    clf = found = None
    if read_model(model).kind == FOLDER_KIND:
        clf = _common.in_language(CountsClassifier.load(model), language)
        smm = clf.model_ if device is None else clf.model_.set_params(device=device)
    else:
        smm = _common.load_model(model, device, language)
    if classifier is not None:
        clf = _common.in_language(CountsClassifier.load(classifier), language)
        what = f"the classifier {classifier}"
        _common.check_same_model(what, clf.model_, smm, model)
    if index is not None:
        found = _common.in_language(DocumentIndex.load(index), language)
        _common.check_same_model(f"the index {index}", found.model, smm, model)
    return Engine(smm, clf, found)


def run_app(app: Any, host: str, port: int, **options: Any) -> None:
    """Serve until the process is stopped; current requests are finished first."""
    import uvicorn

    uvicorn.run(app, host=host, port=port, server_header=False, **options)
