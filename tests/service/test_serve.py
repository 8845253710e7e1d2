"""The server as a process: addresses, load, the end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from docsigma import BayesianSMM, DocumentEmbedder
from docsigma.cli.serve import KEY
from running import refuse

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def model(docstrings, tmp_path_factory):
    folder = tmp_path_factory.mktemp("served") / "model"
    embedder = DocumentEmbedder(5, random_state=0, model=BayesianSMM(max_iter=3))
    embedder.fit(docstrings.train.texts[:400]).save(folder)
    return folder


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.4", "::", "example"])
def test_without_a_key_only_this_machine_is_served(model, host, capsys, monkeypatch):
    monkeypatch.delenv(KEY, raising=False)
    assert f"set {KEY}" in refuse(capsys, "serve", model, "--host", host)


def test_a_short_key_is_refused(model, capsys, monkeypatch):
    monkeypatch.setenv(KEY, "short")
    sentence = refuse(capsys, "serve", model)
    assert "16 characters" in sentence
    assert "got 5" in sentence


def test_wrong_options_are_refused(model, capsys, monkeypatch, tmp_path):
    monkeypatch.delenv(KEY, raising=False)
    assert "--port" in refuse(capsys, "serve", model, "--port", "0")
    assert "--timeout" in refuse(capsys, "serve", model, "--timeout", "0")
    assert "no model folder" in refuse(capsys, "serve", tmp_path / "nothing")


def test_a_server_gives_what_the_library_gives_and_stops(
    model, docstrings, monkeypatch
):
    pytest.importorskip("uvicorn")
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    from service_load import Server, request

    texts = docstrings.test.texts[:20]
    server = Server(model)
    try:
        status, answer = server.ask("/embed", request(texts))
        assert status == 200
        found = [document["mean"] for document in json.loads(answer)["documents"]]
        assert server.ask("/embed", b"{}")[0] == 422
    finally:
        code = server.stop()
    expected = DocumentEmbedder.load(model).posterior(texts).mean
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)
    assert code in (0, -15)


@pytest.mark.release
def test_a_short_mixed_load_gets_right_answers_and_the_server_stops(model, tmp_path):
    pytest.importorskip("uvicorn")
    report = tmp_path / "report.json"
    command = [sys.executable, ROOT / "benchmarks" / "service_load.py", model]
    command += ["--docs", "docstrings", "--limit", "64", "--requests", "20"]
    command += ["--batch", "16", "--batches", "2", "--seconds", "6", "--json", report]
    done = subprocess.run(
        list(map(str, command)),
        capture_output=True,
        text=True,
        timeout=150,
        env=os.environ,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(report.read_text())["mixed"]
    assert found["unexpected"] == []
    assert found["largest_difference"] < 1e-4
    assert any(name.startswith("good 200") for name in found["answers"])
    assert any(name.startswith("bad 422") for name in found["answers"])
    # Stopped by a signal that it answered, with nothing under way lost.
    assert found["exit_code"] in (0, -15)


def test_the_folder_of_a_classifier_serves_its_model_too(parts, tmp_path):
    from docsigma.cli.serve import load_engine

    model, classifier, _ = parts
    classifier.save(tmp_path / "clf")
    engine = load_engine(tmp_path / "clf", None, None)
    assert engine.model.digest == model.digest
    assert engine.classifier.classes_.tolist() == ["food", "weather"]
