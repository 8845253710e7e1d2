"""Requests that a fuzzer makes of the API's own description."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings

from docsigma.service.app import make_app
from docsigma.service.engine import Engine

schemathesis = pytest.importorskip("schemathesis")
PATHS = ["/embed", "/classify", "/search", "/topics", "/health", "/ready", "/metrics"]


@pytest.fixture(scope="module")
def description(parts):
    app = make_app(Engine(*parts))
    with TestClient(app):
        yield schemathesis.openapi.from_asgi("/openapi.json", app)


def test_every_path_is_described(description):
    found = [operation.ok().path for operation in description.get_all_operations()]
    assert sorted(found) == sorted(PATHS)


@pytest.mark.parametrize("mode", ["positive", "negative"])
@pytest.mark.parametrize("path", PATHS)
def test_every_answer_is_as_described(description, path, mode):
    kind = schemathesis.GenerationMode(mode)
    (operation,) = (
        found.ok()
        for found in description.get_all_operations()
        if found.ok().path == path
    )
    if mode == "negative" and not (operation.body or operation.query):
        pytest.skip("nothing of the request can be wrong")
    statuses = set()

    @settings(
        max_examples=30,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=kind))
    def probe(case):
        statuses.add(case.call_and_validate().status_code)

    probe()
    assert max(statuses) < 500
    assert (200 if mode == "positive" else 422) in statuses
