"""The FastAPI application of the service.

Add routes to it by ``app.include_router``; ``app.state.engine`` computes.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from fastapi.routing import APIRoute
from fastapi.staticfiles import StaticFiles
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from starlette.exceptions import HTTPException

from docsigma import __version__
from docsigma.exceptions import InputError
from docsigma.models.components import describe_dimensions
from docsigma.service import schemas
from docsigma.service.batcher import BusyError
from docsigma.service.guard import OPEN, Guard, ServiceSettings
from docsigma.service.sentences import sentence_of

if TYPE_CHECKING:
    from docsigma.service.engine import Engine

STATIC = Path(__file__).parent / "static"
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    401: {"model": schemas.Problem, "description": "No valid key"},
    413: {"model": schemas.Problem, "description": "Too large"},
    422: {"model": schemas.Problem, "description": "Wrong input, in one sentence"},
    503: {"model": schemas.Problem, "description": "Busy, or it took too long"},
}
_OR_ABSENT: dict[int | str, dict[str, Any]] = _PROBLEMS | {
    404: {"model": schemas.Problem, "description": "The server has none"}
}


def make_app(engine: Engine, settings: ServiceSettings | None = None) -> FastAPI:
    """Return the application that serves `engine`."""
    settings = settings or ServiceSettings()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        engine.open(settings)
        app.state.ready = True
        yield
        app.state.ready = False
        engine.close()

    app = FastAPI(
        title="docsigma",
        version=__version__,
        summary="Document embeddings with their uncertainties.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.engine, app.state.settings, app.state.ready = engine, settings, False
    _add_problems(app)
    _add_documents(app, engine, settings)
    _add_state(app, engine, settings)
    _add_home(app)
    _describe(app)
    if settings.api_key is not None:
        _describe_key(app)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    return app


def _add_home(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    async def home() -> RedirectResponse:
        return RedirectResponse("docs")


def _describe(app: FastAPI) -> None:
    """Describe each route on the OpenAPI page by its docstring, not by its name."""
    for route in app.routes:
        if isinstance(route, APIRoute):
            route.summary = (route.endpoint.__doc__ or "").strip()
            route.description = ""
            takes_texts = route.methods == {"POST"}
            route.tags = ["documents" if takes_texts else "model and server"]


def _describe_key(app: FastAPI) -> None:
    """Describe the key, so that the OpenAPI page asks for it (Authorize)."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        found = plain()
        schemes = found["components"].setdefault("securitySchemes", {})
        schemes["key"] = {"type": "apiKey", "in": "header", "name": "X-API-Key"}
        for path, operations in found["paths"].items():
            for operation in operations.values() if path not in OPEN else ():
                operation["security"] = [{"key": []}]
        return found

    app.openapi = openapi  # type: ignore[method-assign]


def _json(value: Any) -> Response:
    return Response(json.dumps(value), media_type="application/json")


def _add_documents(app: FastAPI, engine: Engine, settings: ServiceSettings) -> None:
    def checked(given: schemas.Texts) -> list[str]:
        if len(given.texts) > settings.max_documents:
            raise InputError(
                f"`texts` has {len(given.texts)} documents, at most "
                f"{settings.max_documents} are allowed"
            )
        return given.texts

    def require(found: object, option: str) -> None:
        if found is None:
            sentence = f"this server has no {option}: start it with --{option}"
            raise HTTPException(404, sentence)

    @app.post("/embed", response_model=schemas.Embeddings, responses=_PROBLEMS)
    async def embed(given: schemas.Texts) -> Response:
        """Return the Gaussian of each document."""
        found = await engine.embed(checked(given))
        return _json({"model": engine.model.digest, "documents": found})

    classifications = schemas.Classifications

    @app.post("/classify", response_model=classifications, responses=_OR_ABSENT)
    async def classify(given: schemas.Texts) -> Response:
        """Return the label of each document, with its uncertainty."""
        require(engine.classifier, "classifier")
        return _json({"documents": await engine.classify(checked(given))})

    @app.post("/search", response_model=schemas.Matches, responses=_OR_ABSENT)
    async def search(given: schemas.SearchRequest) -> Response:
        """Return the documents of the index that are most like each text."""
        require(engine.index, "index")
        assert engine.index is not None
        filters = given.model_dump(include={"labels", "max_total_variance"})
        n_known, found = await engine.search(checked(given), given.n, filters)
        metric = engine.index.index.metric
        return _json({"metric": metric, "n_known": n_known, "matches": found})

    @app.get("/topics", response_model=schemas.Topics, responses=_PROBLEMS)
    def topics(
        words: int = Query(8, ge=1, le=100, description="Words per end."),
    ) -> Response:
        """Return the words of the model's components."""
        found = describe_dimensions(engine.model, words)
        return _json({"dimensions": [asdict(one) for one in found]})


def _add_state(app: FastAPI, engine: Engine, settings: ServiceSettings) -> None:
    registry = CollectorRegistry()
    requests = Counter(
        "docsigma_requests", "Requests", ["path", "status"], registry=registry
    )
    seconds = Histogram(
        "docsigma_request_seconds", "Time of requests", ["path"], registry=registry
    )
    batches = Histogram(
        "docsigma_batch_documents",
        "Documents per batch",
        buckets=[2.0**power for power in range(11)],
        registry=registry,
    )
    engine.on_batch = batches.observe

    def observe(path: str, status: int, elapsed: float) -> None:
        # Only paths that exist; arbitrary ones would fill the memory.
        known = {getattr(route, "path", "") for route in app.routes}
        name = path if path in known else "other"
        requests.labels(name, str(status)).inc()
        seconds.labels(name).observe(elapsed)

    app.add_middleware(Guard, settings=settings, observe=observe)

    @app.get("/health", response_model=schemas.State)
    async def health() -> dict[str, str]:
        """Whether the process answers."""
        return {"status": "ok"}

    @app.get(
        "/ready",
        response_model=schemas.State,
        responses={503: {"model": schemas.State, "description": "Not yet"}},
    )
    async def ready() -> JSONResponse:
        """Whether requests are taken."""
        is_ready = app.state.ready
        status = {"status": "ready" if is_ready else "not ready"}
        return JSONResponse(status, 200 if is_ready else 503)

    @app.get(
        "/metrics", response_class=PlainTextResponse, responses={401: _PROBLEMS[401]}
    )
    async def metrics() -> Response:
        """Return counters in the format of Prometheus."""
        return Response(generate_latest(registry), media_type="text/plain")

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return get_swagger_ui_html(
            openapi_url="openapi.json",
            title="docsigma",
            swagger_js_url="static/swagger-ui-bundle.js",
            swagger_css_url="static/swagger-ui.css",
            swagger_favicon_url="data:,",
            # Do not contact the validator on the web.
            swagger_ui_parameters={"validatorUrl": None},
        )


def _add_problems(app: FastAPI) -> None:
    """Answer every error with one sentence, without a traceback."""

    def problem(status: int, sentence: str, **headers: str) -> JSONResponse:
        return JSONResponse({"detail": sentence}, status, headers=headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        given = request.headers.get("content-type", "none")
        if tuple(first.get("loc", ())) == ("body",) and "json" not in given:
            return problem(
                422, f"`Content-Type` must be application/json, the request has {given}"
            )
        return problem(422, sentence_of(first))

    @app.exception_handler(InputError)
    async def wrong(_: Request, error: InputError) -> JSONResponse:
        return problem(422, str(error))

    @app.exception_handler(BusyError)
    async def busy(_: Request, __: BusyError) -> JSONResponse:
        sentence = "the server is busy: try again in a second"
        return problem(503, sentence, **{"Retry-After": "1"})

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> JSONResponse:
        # FastAPI's answer to a body that is not text.
        if error.status_code == 400:
            return problem(422, "the body of the request is not JSON")
        path, sentence = request.url.path, str(error.detail)
        headers = error.headers or {}
        # What the router says of paths and methods that nobody has written.
        if sentence == "Not Found":
            sentence = f"there is no {path}: /docs shows what there is"
        elif sentence == "Method Not Allowed":
            allowed = headers.get("Allow") or headers.get("allow") or "another method"
            sentence = f"{path} takes {allowed}, and the request is {request.method}"
        return problem(error.status_code, sentence, **headers)

    @app.exception_handler(Exception)
    async def failed(_: Request, __: Exception) -> JSONResponse:
        return problem(500, "the server failed; see its log")
