from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from fastapi.testclient import TestClient

from docsigma import DocumentEmbedder, TopicClassifier
from docsigma.service.app import make_app
from docsigma.service.engine import Engine
from docsigma.service.guard import ServiceSettings

TEXT = ["rain and storm", "salt on bread", "xyzzy"]


@pytest.fixture
def client(engine):
    with TestClient(make_app(engine), raise_server_exceptions=False) as found:
        yield found


def test_embed_is_the_librarys(client, parts):
    model = parts[0]
    answer = client.post("/embed", json={"texts": TEXT}).json()
    q = model.posterior(model.vocabulary_.count(TEXT).counts)
    assert answer["model"] == model.digest
    found = answer["documents"]
    np.testing.assert_allclose([d["mean"] for d in found], q.mean, atol=1e-6)
    np.testing.assert_allclose([d["variance"] for d in found], q.variance, atol=1e-6)
    assert [d["n_tokens"] for d in found] == [2, 2, 0]


def test_classify_is_the_librarys(client, parts):
    _, classifier, _ = parts
    expected = classifier.predict_proba(classifier.count(TEXT).counts)
    found = client.post("/classify", json={"texts": TEXT}).json()["documents"]
    assert [d["label"] for d in found[:2]] == ["weather", "food"]
    values = [list(d["probabilities"].values()) for d in found]
    np.testing.assert_allclose(values, expected, atol=1e-6)
    for found_one, chances in zip(found, expected, strict=True):
        second = np.argsort(-chances, kind="stable")[1]
        assert found_one["second"] == classifier.classes_[second]
        assert found_one["second_probability"] == pytest.approx(chances[second])


def test_the_page_asks_for_the_key_where_one_is_set(engine):
    for key, where in ((None, None), ("k" * 16, [{"key": []}])):
        app = make_app(engine, ServiceSettings(api_key=key))
        with TestClient(app) as client:
            found = client.get("/openapi.json").json()
        schemes = found["components"].get("securitySchemes")
        header = {"type": "apiKey", "in": "header", "name": "X-API-Key"}
        assert schemes == (None if key is None else {"key": header})
        assert found["paths"]["/embed"]["post"].get("security") == where
        # Needs no key.
        assert "security" not in found["paths"]["/health"]["get"]


def test_classify_counts_pairs_of_words():
    pairs = ["red sun and blue sea", "blue sun and red sea", "sea and sun"]
    # No two alike: equal texts are one of that weight, and then none can be held out.
    names = ["kim", "lou", "max", "dan", "ola", "pam", "ron", "sue"]
    texts = [f"{text} {name}" for name in names for text in pairs]
    embedder = DocumentEmbedder(2, random_state=0).fit(texts)
    topics = TopicClassifier(embedder).fit(texts, ["a", "b", "c"] * 8)
    engine = Engine(embedder.model_, topics.classifier_)
    found = [row["probabilities"]["a"] for row in engine.classify_now(texts[:3])]
    expected = topics.predict_proba(texts[:3])[:, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    # Only pairs of words tell the first two apart.
    assert found[0] > 1.5 * found[1]


def test_search_is_the_librarys(client, parts):
    body = {"texts": TEXT, "n": 4, "labels": ["weather"]}
    answer = client.post("/search", json=body).json()
    assert answer["metric"] == "joint"
    expected = parts[2].search(TEXT, 4, labels=["weather"])
    for matches, own in zip(answer["matches"], expected, strict=True):
        assert [m["id"] for m in matches] == [m.id for m in own]
        assert [m["words"] for m in matches] == [
            [list(w) for w in m.words] for m in own
        ]
    assert answer["matches"][2] == []


def test_topics_health_ready_and_metrics(client):
    assert len(client.get("/topics?words=3").json()["dimensions"]) == 2
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/ready").json() == {"status": "ready"}
    client.post("/embed", json={"texts": TEXT})
    shown = client.get("/metrics").text
    assert 'docsigma_requests_total{path="/embed",status="200"} 1.0' in shown
    assert "docsigma_batch_documents_sum 3.0" in shown


def test_the_page_of_the_api_loads_nothing_from_outside(client):
    page = client.get("/docs").text
    assert "http" not in page.replace('"http', "")
    assert client.get("/static/swagger-ui-bundle.js").status_code == 200
    assert client.get("/static/swagger-ui.css").status_code == 200
    paths = client.get("/openapi.json").json()["paths"]
    assert paths["/embed"]["post"]["summary"] == "Return the Gaussian of each document."
    assert "/search" in paths


@pytest.mark.parametrize(
    ("path", "body", "sentence"),
    [
        ("/embed", {"texts": "one"}, "`texts` must be a list, got a string"),
        ("/embed", {"texts": [1]}, "`texts.0` must be a string, got a number"),
        ("/embed", {"texts": ["a", None]}, "`texts.1` must be a string, got null"),
        ("/embed", {}, "`texts` is missing: it is required"),
        ("/embed", {"text": ["a"]}, "`texts` is missing: the request has `text`"),
        ("/embed", {"texts": [], "more": 1}, "`more` is no field of this request"),
        ("/embed", ["sun"], "must be an object such as"),
        ("/search", {"texts": ["a"], "n": 0}, "`n`"),
        ("/search", {"texts": ["a"], "max_total_variance": -1}, "`max_total_variance`"),
        ("/embed", {"texts": ["a"] * 513}, "513 documents, at most 512"),
        ("/topics?words=0", None, "`words`"),
    ],
)
def test_wrong_input_gets_one_sentence(client, path, body, sentence):
    answer = client.get(path) if body is None else client.post(path, json=body)
    assert answer.status_code == 422
    detail = answer.json()["detail"]
    assert sentence in detail
    assert "\n" not in detail


@pytest.mark.parametrize("body", [b"{", b"\xff\xfe", b"", b"[1, 2"])
def test_a_body_that_is_no_json_gets_one_sentence(client, body):
    headers = {"content-type": "application/json"}
    answer = client.post("/embed", content=body, headers=headers)
    assert answer.status_code == 422
    assert isinstance(answer.json()["detail"], str)


def test_a_body_that_is_too_large_is_refused(engine):
    app = make_app(engine, ServiceSettings(max_body=1000))
    with TestClient(app) as client:
        large = json.dumps({"texts": ["a" * 2000]}).encode()
        answer = client.post("/embed", content=large)
        assert (answer.status_code, "1000 bytes" in answer.text) == (413, True)
        # Without a length that is said in advance.
        pieces = (large[i : i + 100] for i in range(0, len(large), 100))
        assert client.post("/embed", content=pieces).status_code == 413
        assert client.post("/embed", json={"texts": ["rain"]}).status_code == 200


def test_without_the_key_nothing_is_answered(engine):
    key = "k" * 20
    app = make_app(engine, ServiceSettings(api_key=key))
    with TestClient(app) as client:
        body = {"texts": ["rain"]}
        for headers in ({}, {"X-API-Key": "wrong"}, {"Authorization": "Bearer no"}):
            answer = client.post("/embed", json=body, headers=headers)
            assert answer.status_code == 401
        assert client.get("/metrics").status_code == 401
        for headers in ({"X-API-Key": key}, {"Authorization": f"Bearer {key}"}):
            answer = client.post("/embed", json=body, headers=headers)
            assert answer.status_code == 200
        assert client.get("/health").status_code == 200


def test_what_is_not_there_is_said(parts):
    with TestClient(make_app(Engine(parts[0]))) as client:
        answer = client.post("/classify", json={"texts": ["rain"]})
        assert answer.status_code == 404
        assert "--classifier" in answer.json()["detail"]
        assert client.post("/search", json={"texts": ["a"]}).status_code == 404
        answer = client.get("/nothing")
        assert answer.status_code == 404
        assert answer.json()["detail"].startswith("there is no /nothing: /docs")
        answer = client.get("/embed")
        assert answer.status_code == 405
        assert "/embed takes POST, and the request is GET" in answer.text


def test_the_address_alone_leads_to_the_page(engine):
    app = make_app(engine, ServiceSettings(api_key="k" * 20))
    with TestClient(app) as client:
        found = client.get("/")
    assert found.status_code == 200
    assert found.url.path == "/docs"


def test_the_probabilities_of_all_labels_come_last(client):
    found = client.post("/classify", json={"texts": TEXT}).json()["documents"]
    assert {list(one)[-1] for one in found} == {"probabilities"}
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    assert list(schemas["Classification"]["properties"])[-1] == "probabilities"
    assert "router" in schemas["Texts"]["properties"]["texts"]["examples"][0][0]


def test_no_trace_leaves_the_server(engine, monkeypatch):
    app = make_app(engine)
    with TestClient(app, raise_server_exceptions=False) as client:

        def fail(texts):
            raise RuntimeError("secret of the server")

        monkeypatch.setattr(engine.embed, "work", fail)
        answer = client.post("/embed", json={"texts": ["rain"]})
        assert answer.status_code == 500
        assert "secret" not in answer.text
        assert "Traceback" not in answer.text


def test_requests_that_arrive_together_are_one_batch(engine, parts):
    sizes = []
    held = threading.Event()
    app = make_app(engine)
    with TestClient(app) as client:
        work = engine.embed.work

        def slow(texts):
            sizes.append(len(texts))
            held.wait(10)
            return work(texts)

        engine.embed.work = slow
        texts = ["rain", "salt soup", "storm wind snow", "bread", "sun cloud", "milk"]

        def ask(text):
            return client.post("/embed", json={"texts": [text]}).json()["documents"]

        with ThreadPoolExecutor(len(texts)) as pool:
            answers = [pool.submit(ask, text) for text in texts]
            deadline = time.monotonic() + 10
            while sum(sizes) + engine.embed.n_waiting < len(texts):
                assert time.monotonic() < deadline
                time.sleep(0.01)
            held.set()
            found = [answer.result()[0]["mean"] for answer in answers]
    # The first to come go ahead, the rest follow together.
    assert len(sizes) == 2
    assert sum(sizes) == len(texts)
    # In any batch a document gets what it gets alone.
    model = parts[0]
    alone = [
        model.posterior(model.vocabulary_.count([t]).counts).mean[0] for t in texts
    ]
    np.testing.assert_allclose(found, alone, atol=1e-4)


def test_slow_and_too_many_requests_get_503(engine):
    settings = ServiceSettings(timeout=0.2, max_waiting=3)
    with TestClient(make_app(engine, settings)) as client:
        engine.embed.work = lambda _: time.sleep(0.6)
        answer = client.post("/embed", json={"texts": ["rain"]})
        assert (answer.status_code, "0.2 seconds" in answer.text) == (503, True)
        answer = client.post("/embed", json={"texts": ["rain"] * 4})
        assert (answer.status_code, "busy" in answer.text) == (503, True)


def test_a_body_that_does_not_say_it_is_json_is_told_so(client):
    body = b'{"texts": ["sun"]}'
    header = {"Content-Type": "text/plain"}
    for headers, found in (({}, "none"), (header, "text/plain")):
        answer = client.post("/embed", content=body, headers=headers)
        assert answer.status_code == 422
        assert answer.json()["detail"] == (
            f"`Content-Type` must be application/json, the request has {found}"
        )


def test_a_calibrated_classifier_gives_sets_and_p_values(parts, calibrated):
    model, plain, _ = parts
    shown = Engine(model, plain).classify_now(TEXT)
    assert all("prediction_set" not in one for one in shown)
    documents = calibrated.embed_texts(TEXT)
    expected = calibrated.predict_sets(documents)
    with TestClient(make_app(Engine(model, calibrated))) as client:
        found = client.post("/classify", json={"texts": TEXT}).json()["documents"]
    sets = [[str(name) for name in calibrated.classes_[row]] for row in expected]
    assert [one["prediction_set"] for one in found] == sets
    # A text without known words may be anything.
    assert sets[2] == [str(name) for name in calibrated.classes_]
    p_values = calibrated.unknown_p_value(documents)
    np.testing.assert_allclose([one["unknown_p_value"] for one in found], p_values)
