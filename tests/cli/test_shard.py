from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from running import refuse, succeed

TEXTS = ["sun and rain", "rain and wind", "bread and salt", "salt, bread, butter", ""]
LABELS = ["weather", "weather", "food", "food", "food"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    rows = [
        json.dumps({"id": f"d{i}", "text": text, "label": label})
        for i, (text, label) in enumerate(zip(TEXTS, LABELS, strict=True))
    ]
    (folder / "docs.jsonl").write_text("\n".join(rows) + "\n")
    return folder


@pytest.fixture(scope="module")
def made(folder):
    from docsigma.cli.__main__ import main

    docs, model = str(folder / "docs.jsonl"), str(folder / "model")
    counts = str(folder / "counts")
    for command in (
        ["count", docs, "--out", counts, "--min-df", "1"],
        ["fit", counts, "--out", model, "--components", "2", "--l1", "0.1"],
        ["classifier", "fit", model, docs, "--out", str(folder / "clf")],
    ):
        with pytest.raises(SystemExit) as stop:
            main([*command, "--json"])
        assert not stop.value.code
    return folder


@pytest.mark.parametrize("docs", ["docs.jsonl", "counts"])
@pytest.mark.parametrize("n_shards", [2, 5])
def test_shards_together_are_the_whole(made, capsys, docs, n_shards, tmp_path):
    arguments = ["embed", made / "model", made / docs, "--out"]
    succeed(capsys, *arguments, tmp_path / "all.parquet")
    files = []
    for i in range(n_shards):
        out = tmp_path / "part.parquet"
        succeed(capsys, *arguments, out, "--shard", f"{i}/{n_shards}")
        files.append(tmp_path / f"part-{i:05d}-of-{n_shards:05d}.parquet")
    assert not out.exists()
    whole = pq.read_table(tmp_path / "all.parquet").to_pydict()
    parts = [pq.read_table(file).to_pydict() for file in files]
    for name, values in whole.items():
        together = [value for part in parts for value in part[name]]
        if name in ("id", "label", "text"):
            assert together == values
        else:
            np.testing.assert_allclose(together, values, rtol=1e-4, atol=1e-4)


def test_a_part_that_is_there_is_not_done_again(made, capsys, tmp_path):
    arguments = ["embed", made / "model", made / "counts"]
    arguments += ["--out", tmp_path / "part.csv", "--shard", "1/2"]
    succeed(capsys, *arguments)
    (done,) = tmp_path.iterdir()
    before = done.stat()
    assert succeed(capsys, *arguments) == ""
    assert done.stat() == before
    succeed(capsys, *arguments, "--force")
    assert done.stat().st_ino != before.st_ino


def test_predictions_are_sharded_too(made, capsys, tmp_path):
    arguments = ["classifier", "predict", made / "clf", made / "docs.jsonl"]
    arguments += ["--probabilities", "--out"]
    succeed(capsys, *arguments, tmp_path / "all.parquet")
    for i in range(2):
        succeed(capsys, *arguments, tmp_path / "p.parquet", "--shard", f"{i}/2")
    whole = pq.read_table(tmp_path / "all.parquet")
    parts = [pq.read_table(file) for file in sorted(tmp_path.glob("p-*"))]
    assert [name for part in parts for name in part["id"].to_pylist()] == [
        *whole["id"].to_pylist()
    ]
    assert parts[0].column_names == whole.column_names
    found = np.concatenate([part["probability[food]"].to_numpy() for part in parts])
    expected = whole["probability[food]"].to_numpy()
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("shard", ["2/2", "1", "a/b", "-1/2", "0/0"])
def test_wrong_shards_are_refused(made, capsys, shard, tmp_path):
    arguments = ["embed", made / "model", made / "counts", "--out"]
    sentence = refuse(capsys, *arguments, tmp_path / "x.csv", f"--shard={shard}")
    assert "--shard must be i/n with i from 0 to n - 1" in sentence
    assert list(tmp_path.iterdir()) == []


def test_more_parts_than_documents_are_refused(made, capsys, tmp_path):
    arguments = ["embed", made / "model", made / "counts", "--out"]
    sentence = refuse(capsys, *arguments, tmp_path / "x.csv", "--shard", "0/6")
    assert "--shard asks for 6 parts of 5 documents" in sentence
