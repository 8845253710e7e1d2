"""`docsigma explore` and `docsigma drift` as a person meets them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from docsigma import DocumentEmbedder
from running import refuse, run, succeed

pytest.importorskip("uvicorn")
testclient = pytest.importorskip("fastapi.testclient")

TOPICS = [
    ["cats", "purr", "dogs", "bark", "mice", "birds"],
    ["stocks", "rise", "bonds", "fall", "banks", "lend"],
    ["bread", "butter", "cheese", "wine", "cook", "soup"],
]


def write(path, shares, n_documents, seed, labels=()):
    random = np.random.default_rng(seed)
    rows = []
    for number in range(n_documents):
        words = random.choice(TOPICS[random.choice(3, p=shares)], 25)
        row = {"id": f"{path.stem}{number}", "text": " ".join(words)}
        rows.append(row | ({"label": labels[number]} if labels else {}))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return [row["text"] for row in rows]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("explore")
    texts = write(root / "old.jsonl", [0.6, 0.2, 0.2], 100, 1)
    write(root / "new.jsonl", [0.1, 0.7, 0.2], 100, 2)
    DocumentEmbedder(3, random_state=0).fit(texts).save(root / "model")
    return root


def test_drift_finds_the_topic_that_grew(folder, capsys):
    arguments = ("drift", folder / "model", folder / "old.jsonl", folder / "new.jsonl")
    report = json.loads(succeed(capsys, *arguments, "--topics", 3, "--json"))
    grew = [topic for topic in report["topics"] if topic["grew"]]
    assert set(grew[0]["words"][:3]) <= set(TOPICS[1])
    assert all(name.startswith("new") for name in grew[0]["typical"])
    # Shares 0.2 and 0.7 of 100 documents each: five standard errors are 0.3.
    assert grew[0]["change"]["value"] == pytest.approx(0.5, abs=0.3)
    shown = succeed(capsys, *arguments, "--topics", 3)
    assert "grew" in shown
    assert "Nothing explains" in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.fixture
def served(monkeypatch):
    """Keep the application instead of serving it."""
    apps = []
    monkeypatch.setattr("uvicorn.run", lambda app, **_: apps.append(app))
    return apps


def test_explore_serves_both_batches_and_keeps_labels(folder, capsys, served, tmp_path):
    labels = tmp_path / "labels.jsonl"
    succeed(
        capsys,
        *("explore", folder / "model", folder / "new.jsonl"),
        *("--before", folder / "old.jsonl", "--labels", labels),
        *("--no-browser", "--topics", 3),
    )
    (app,) = served
    with testclient.TestClient(app, base_url="http://127.0.0.1:8001") as client:
        about = client.get("/explore/about").json()
        assert (about["n"], about["n_old"], about["title"]) == (200, 100, "new")
        # Three topics, and finer ones that changed.
        topics = about["drift"]["topics"]
        assert len(topics) - sum(topic["grew"] is not None for topic in topics) <= 3
        assert len(topics) >= 3
        shown = client.get("/explore/document/150").json()
        assert shown["id"] == "new50"
        body = {"rows": [150], "label": "money"}
        client.post("/explore/labels", json=body).raise_for_status()
        # The service is there as well.
        assert client.post("/embed", json={"texts": ["cats"]}).status_code == 200
    assert json.loads(labels.read_text()) == {"id": "new50", "label": "money"}


def test_a_browser_is_opened_unless_told_otherwise(folder, capsys, served, monkeypatch):
    opened = []

    class Timer:
        def __init__(self, _, action, arguments):
            opened.append((action, arguments))

        def start(self):
            pass

    monkeypatch.setattr("threading.Timer", Timer)
    explore = ("explore", folder / "model", folder / "new.jsonl", "--port", 8123)
    succeed(capsys, *explore)
    assert opened[0][1] == ["http://127.0.0.1:8123/explore/"]
    succeed(capsys, *explore, "--no-browser")
    assert len(opened) == 1


def test_ids_that_come_twice_are_numbered(folder, capsys, served):
    old = folder / "old.jsonl"
    command = ("explore", folder / "model", old, "--before", old, "--no-browser")
    succeed(capsys, *command)
    with testclient.TestClient(served[0], base_url="http://127.0.0.1:8001") as client:
        names = [
            client.get(f"/explore/document/{row}").json()["id"] for row in (3, 103)
        ]
    assert names == ["old3", "old3 (2)"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--port", "0"], "--port must be from 1 to 65535, got 0"),
        (["--topics", "0"], "--topics must be 1 or more, got 0"),
        (["--labels", "/no/such/folder/labels.jsonl"], "there is no folder"),
        (["--classifier", "/no/such/classifier"], "/no/such/classifier"),
    ],
)
def test_wrong_options_are_refused(folder, capsys, served, options, sentence):
    command = ("explore", folder / "model", folder / "new.jsonl", "--no-browser")
    assert sentence in refuse(capsys, *command, *options)
    assert served == []


def test_labels_of_other_documents_are_refused_and_kept(folder, capsys, tmp_path):
    labels = tmp_path / "labels.jsonl"
    labels.write_text('{"id": "someone", "label": "x"}\n')
    command = ("explore", folder / "model", folder / "new.jsonl", "--no-browser")
    code, _, said = run(capsys, *command, "--labels", labels)
    assert code == 2
    assert "names an unknown document: 'someone'" in said
    assert labels.read_text() == '{"id": "someone", "label": "x"}\n'
