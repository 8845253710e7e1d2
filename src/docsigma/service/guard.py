"""Limits of the service, checked before it: key, sizes, time, counters."""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.exceptions import HTTPException

# Paths that need no key: they reveal nothing of the documents or the model.
OPEN = ("/", "/health", "/ready", "/docs", "/openapi.json")


@dataclass(frozen=True)
class ServiceSettings:
    """Limits of the service, and its key.

    Attributes
    ----------
    api_key : str or None
        Key that requests must send; None means that they need none.
    max_body, max_documents : int
        Most bytes and documents per request.
    max_waiting : int
        Most documents that wait; requests beyond are refused.
    timeout : float
        Seconds that a request may take, including its transfer.
    """

    api_key: str | None = None
    max_body: int = 8 * 2**20
    max_documents: int = 512
    max_waiting: int = 4096
    timeout: float = 30.0


class Guard:
    """ASGI middleware that enforces the key and the limits of `settings`.

    It calls `observe` with the path, status and seconds of each request.
    """

    def __init__(
        self,
        app: Any,
        settings: ServiceSettings,
        observe: Callable[[str, int, float], object],
    ) -> None:
        self._app = app
        self._settings = settings
        self._observe = observe

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status, size = time.perf_counter(), 0, 0

        async def counted_receive() -> Any:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self._settings.max_body:
                raise HTTPException(413, self._too_large())
            return message

        async def noted_send(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        refused = self._refusal(scope)
        try:
            if refused is None:
                async with asyncio.timeout(self._settings.timeout):
                    await self._app(scope, counted_receive, noted_send)
        except TimeoutError:
            seconds = f"{self._settings.timeout:g} seconds"
            refused = 503, f"the request took longer than {seconds}"
        finally:
            if refused is not None and not status:
                await _answer(noted_send, *refused)
            # No status: the client has disconnected.
            path = scope.get("route_path", scope["path"])
            self._observe(path, status or 499, time.perf_counter() - started)

    def _too_large(self) -> str:
        return f"the request has more than {self._settings.max_body} bytes"

    def _refusal(self, scope: Any) -> tuple[int, str] | None:
        headers = dict(scope["headers"])
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self._settings.max_body:
            return 413, self._too_large()
        path = scope["path"]
        is_open = path in OPEN or path.startswith("/static/")
        if self._settings.api_key is None or is_open:
            return None
        given = headers.get(b"x-api-key", b"")
        bearer = headers.get(b"authorization", b"")
        if bearer.lower().startswith(b"bearer "):
            given = bearer[7:].strip()
        if hmac.compare_digest(given, self._settings.api_key.encode()):
            return None
        return 401, "the request has no valid key: send it as X-API-Key"


async def _answer(send: Any, status: int, sentence: str) -> None:
    body = json.dumps({"detail": sentence}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
