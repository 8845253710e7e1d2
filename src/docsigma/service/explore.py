"""Routes of the page that shows a corpus."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, FastAPI, Query, Request
from fastapi.responses import FileResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from docsigma.explore.page import STATIC

if TYPE_CHECKING:
    from docsigma.explore.workspace import Workspace

# Nothing is loaded from outside, no script in a text runs, no other page frames it.
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class LabelRequest(_Strict):
    """A label for some documents; null removes it."""

    rows: list[int] = Field(max_length=1_000_000)
    label: str | None


class LoadRequest(_Strict):
    """Labels, one JSON object per line."""

    lines: str


class ExploreSearch(_Strict):
    """A search for documents like a text."""

    text: str = Field(max_length=100_000)
    n: int = Field(20, ge=1, le=200)


def add_explorer(app: FastAPI, workspace: Workspace, hosts: set[str]) -> None:
    """Add the page and its data under /explore.

    Requests to other host names than `hosts`, as after DNS rebinding, and requests that
    other pages send are refused.
    """
    router = APIRouter(prefix="/explore", include_in_schema=False)

    @app.middleware("http")
    async def guard(request: Request, call_next: Any) -> Any:
        path = request.url.path
        if path != "/" and not path.startswith("/explore"):
            return await call_next(request)
        host = request.headers.get("host", "").rpartition(":")[0]
        site = request.headers.get("sec-fetch-site", "none")
        sent = request.method != "GET" and site not in ("same-origin", "none")
        if host not in hosts or sent:
            return Response(
                '{"detail": "this page is for this machine alone"}',
                403,
                media_type="application/json",
            )
        response = await call_next(request)
        response.headers.update(HEADERS)
        return response

    @router.get("/")
    async def page() -> FileResponse:
        return FileResponse(STATIC / "index.html")

    # The first page is this one, and not that of the API.
    routes = app.router.routes
    routes[:] = [route for route in routes if getattr(route, "path", "") != "/"]

    @app.get("/", include_in_schema=False)
    async def home() -> RedirectResponse:
        return RedirectResponse("/explore/")

    _add_reading(router, workspace)
    _add_labels(router, workspace)
    app.include_router(router)
    app.mount("/explore/static", StaticFiles(directory=STATIC), name="explorer")


def _binary(data: bytes) -> Response:
    return Response(data, media_type="application/octet-stream")


def _file(text: str, name: str, kind: str) -> Response:
    disposition = f'attachment; filename="{name}"'
    return Response(text, media_type=kind, headers={"Content-Disposition": disposition})


def _add_reading(router: APIRouter, workspace: Workspace) -> None:
    router.get("/about")(workspace.about)

    @router.get("/points")
    def points() -> Response:
        return _binary(workspace.points())

    arranging = threading.Lock()

    @router.get("/neighbours")
    def neighbours() -> Response:
        with arranging:
            return _binary(workspace.neighbour_map)

    @router.get("/state")
    def state() -> Response:
        return _binary(workspace.state())

    @router.get("/document/{row}")
    def document(row: int) -> dict[str, Any]:
        if not 0 <= row < len(workspace):
            raise HTTPException(404, f"there is no document {row}")
        return workspace.document(row)

    @router.get("/rows")
    def rows(row: Annotated[list[int], Query(max_length=200)]) -> list[dict[str, Any]]:
        return workspace.rows([r for r in row if 0 <= r < len(workspace)])

    @router.post("/search")
    def search(given: ExploreSearch) -> list[dict[str, Any]]:
        return workspace.search(given.text, given.n)

    @router.get("/predictions.csv")
    def predictions() -> Response:
        return _file(workspace.predictions_csv(), "predictions.csv", "text/csv")


def _add_labels(router: APIRouter, workspace: Workspace) -> None:
    lock = threading.Lock()

    @router.get("/labels.jsonl")
    def labels() -> Response:
        return _file(workspace.labels.dump(), "labels.jsonl", "application/jsonl")

    @router.post("/labels")
    def label(given: LabelRequest) -> dict[str, int]:
        with lock:
            workspace.labels.set(given.rows, given.label)
        return {"n_labels": len(workspace.labels)}

    @router.post("/labels/load")
    def load(given: LoadRequest) -> dict[str, int]:
        with lock:
            return {"n_loaded": workspace.labels.load(given.lines)}

    @router.get("/proposals")
    def proposals() -> list[dict[str, Any]]:
        return workspace.propose()

    @router.post("/learn")
    def learn() -> dict[str, int]:
        with lock:
            workspace.learn()
        assert workspace.predictions is not None
        return {"n_classes": len(workspace.predictions.classes)}
