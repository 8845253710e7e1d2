"""Folders of counts that are not whole, or not folders of counts."""

from __future__ import annotations

import json

import pytest

from docsigma import InputError
from docsigma.counts import ShardedCounts
from storing import random_counts, write


def edit(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.fixture
def folder(tmp_path):
    counts = random_counts(23, 7)
    words = [f"word{i}" for i in range(7)]
    labels = ["a"] * 23
    path = tmp_path / "counts"
    write(path, counts, shard_rows=9, words=words, labels=labels)
    return path


FILES = ("00001.indptr", "00001.indices", "00001.data", "00001.labels.json")
FILES += ("n_tokens", "word_totals", "vocabulary.json")


@pytest.mark.parametrize("name", [*FILES, "config.json"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(InputError, match=f"{folder} .*it has no {name}"):
        ShardedCounts.open(folder)


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_a_wrong_size_is_told_with_both_sizes(folder, name):
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[:-1])
    size = len(content)
    sentence = f"{name} is damaged: it has {size - 1} bytes, config.json says {size}"
    with pytest.raises(InputError, match=sentence):
        ShardedCounts.open(folder)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"format": "docsigma-model"},
            "its format is 'docsigma-model', not 'docsigma-",
        ),
        (
            {"schema_version": 2},
            "has schema version 2, this docsigma .* reads version 1",
        ),
        ({"n_documents": 24}, "`n_documents` is 24, but its shards have 23"),
        ({"nnz": 0}, "`nnz` is 0, but its shards have"),
        ({"n_features": 9}, "word_totals is listed with 56 bytes, its shape needs 72"),
        ({"n_features": -1}, "config.json is damaged"),
        ({"shards": 7}, "config.json is damaged"),
        ({"shards": [{"rows": 23}]}, "config.json is damaged"),
        ({"files": {}}, "it does not list n_tokens"),
        ({"files": {"../x": {"bytes": 1, "sha256": ""}}}, "not a name of a file"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(folder, changes, sentence):
    edit(folder, **changes)
    with pytest.raises(InputError, match=sentence) as caught:
        ShardedCounts.open(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"{", b"[1]", b"\xff", b""])
def test_a_config_that_is_no_json_object_is_refused(folder, content):
    (folder / "config.json").write_bytes(content)
    with pytest.raises(InputError, match="config.json is damaged"):
        ShardedCounts.open(folder)


def test_what_is_no_folder_of_counts_is_refused(tmp_path):
    with pytest.raises(InputError, match="there is no folder"):
        ShardedCounts.open(tmp_path / "nowhere")
    with pytest.raises(InputError, match="is no folder of counts"):
        ShardedCounts.open(tmp_path)


def test_damage_of_the_right_size_is_met_when_read_or_verified(folder):
    stored = ShardedCounts.open(folder)
    stored.verify()
    (folder / "00001.indices").write_bytes(
        b"\x7f" * (folder / "00001.indices").stat().st_size
    )
    assert stored[:9].shape == (9, 7)
    with pytest.raises(InputError, match=r"00001.indices is damaged.* column .* of 7"):
        stored[:]
    with pytest.raises(InputError, match=r"00001.indices is damaged: its checksum"):
        stored.verify()
    (folder / "00000.indptr").write_bytes(b"\x7f" * 80)
    with pytest.raises(InputError, match=r"00000.indptr is damaged: a document has"):
        stored[[3]]
    (folder / "00002.data").write_bytes(b"")
    with pytest.raises(InputError, match=r"00002.data is damaged: it has 0 bytes"):
        stored[[22]]
