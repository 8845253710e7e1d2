"""The server as a process: addresses, load, the end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from docsigma import BayesianSMM, load_corpus
from docsigma.cli.serve import KEY
from running import refuse

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    corpus = load_corpus("docstrings")
    from docsigma import DocumentEmbedder

    texts = corpus.train.texts[:400]
    folder = tmp_path_factory.mktemp("served") / "model"
    DocumentEmbedder(5, random_state=0, model=BayesianSMM(max_iter=3)).fit(texts).save(
        folder
    )
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
