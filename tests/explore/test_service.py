from __future__ import annotations

import json

import pytest

from docsigma.service.app import make_app
from docsigma.service.engine import Engine
from docsigma.service.explore import add_explorer

testclient = pytest.importorskip("fastapi.testclient")


@pytest.fixture
def client(workspace):
    app = make_app(Engine(workspace.model))
    add_explorer(app, workspace, {"127.0.0.1"})
    with testclient.TestClient(app, base_url="http://127.0.0.1:80") as found:
        found.headers["host"] = "127.0.0.1:80"
        yield found


def test_the_page_allows_nothing_from_outside_and_no_inline_script(client):
    page = client.get("/explore/")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert client.get("/", follow_redirects=False).headers["location"] == "/explore/"


def test_labels_are_set_loaded_saved_and_learned_from(client, workspace):
    rows = {"a": [0, 6, 9], "b": [1, 7, 10]}
    for label, given in rows.items():
        answer = client.post("/explore/labels", json={"rows": given, "label": label})
    assert answer.json() == {"n_labels": 6}
    saved = client.get("/explore/labels.jsonl").text
    assert json.loads(saved.splitlines()[0]) == {"id": "d0", "label": "a"}
    client.post("/explore/labels", json={"rows": [0, 1], "label": None})
    assert client.post("/explore/labels/load", json={"lines": saved}).json() == {
        "n_loaded": 6
    }
    assert client.post("/explore/learn").json() == {"n_classes": 2}
    proposed = client.get("/explore/proposals").json()
    assert not {row["row"] for row in proposed} & set(workspace.labels.of)
    assert client.get("/explore/predictions.csv").text.startswith("id,label,predicted")


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/explore/labels", {"rows": [10**6], "label": "a"}, 422),
        ("/explore/labels", {"rows": [0], "label": ""}, 422),
        ("/explore/labels", {"rows": ["0"], "label": "a"}, 422),
        ("/explore/labels/load", {"lines": "{"}, 422),
        ("/explore/learn", None, 422),
        ("/explore/search", {"text": 3}, 422),
    ],
)
def test_wrong_requests_get_one_sentence_and_change_nothing(
    client, workspace, path, body, status
):
    answer = client.post(path, json=body)
    assert answer.status_code == status
    assert "\n" not in answer.json()["detail"]
    assert len(workspace.labels) == 0


def test_a_document_that_is_not_there_is_not_found(client):
    assert client.get("/explore/document/99999").status_code == 404
    assert client.get("/explore/document/-1").status_code == 404


def test_other_pages_and_other_names_are_refused(client):
    other = {"host": "attacker.test:80"}
    assert client.get("/explore/about", headers=other).status_code == 403
    cross = {"sec-fetch-site": "cross-site"}
    body = {"rows": [0], "label": "a"}
    answer = client.post("/explore/labels", json=body, headers=cross)
    assert answer.status_code == 403
