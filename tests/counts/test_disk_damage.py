"""Folders of counts that are not whole, or not folders of counts."""

from __future__ import annotations

import json

import numpy as np
import pytest

from docsigma import InputError
from docsigma.counts import DiskCounts
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
    ids = [f"d{i}" for i in range(23)]
    write(path, counts, words=words, labels=labels, ids=ids)
    return path


FILES = ("indptr.npy", "indices.npy", "data.npy", "labels.npy", "ids.npy")
FILES += ("n_tokens.npy", "word_totals.npy", "classes.json", "vocabulary.json")


@pytest.mark.parametrize("name", [*FILES, "config.json"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(InputError, match=f"{folder} .*has no {name}"):
        DiskCounts(folder)


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_a_wrong_size_is_told_with_both_sizes(folder, name):
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[:-1])
    size = len(content)
    sentence = f"{name} is damaged: it has {size - 1} bytes, config.json says {size}"
    with pytest.raises(InputError, match=sentence):
        DiskCounts(folder)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"format": "docsigma-model"},
            "its format is 'docsigma-model', not 'docsigma-",
        ),
        (
            {"schema_version": 2},
            "version 2, this docsigma reads version 1",
        ),
        ({"n_documents": 24}, r"indptr.npy .* shape \(24,\), .* the shape \(25,\)"),
        ({"nnz": 0}, r"indices.npy .* int32 of the shape \(0,\)"),
        ({"n_features": 9}, r"word_totals.npy .* shape \(7,\), .* shape \(9,\)"),
        ({"n_features": -1}, "config.json is damaged"),
        ({"files": 7}, "config.json is damaged"),
        ({"files": {"indptr.npy": {"bytes": 3}}}, "config.json is damaged"),
        ({"files": {}}, "it lists none as its files, indptr.npy must be one"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(folder, changes, sentence):
    edit(folder, **changes)
    with pytest.raises(InputError, match=sentence) as caught:
        DiskCounts(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"{", b"[1]", b"\xff", b""])
def test_a_config_that_is_no_json_object_is_refused(folder, content):
    (folder / "config.json").write_bytes(content)
    with pytest.raises(InputError, match="config.json is damaged"):
        DiskCounts(folder)


def test_what_is_no_folder_of_counts_is_refused(tmp_path):
    with pytest.raises(InputError, match="there is no counts folder"):
        DiskCounts(tmp_path / "nowhere")
    with pytest.raises(InputError, match="the counts folder .* has no config.json"):
        DiskCounts(tmp_path)


def test_a_name_with_a_folder_is_refused(folder):
    files = json.loads((folder / "config.json").read_text())["files"]
    edit(folder, files=files | {"../x": {"bytes": 1, "sha256": ""}})
    with pytest.raises(InputError, match=r"\.\./x must be one of them and without"):
        DiskCounts(folder)


def test_an_array_of_another_type_is_refused(folder):
    np.save(folder / "indices.npy", np.load(folder / "indices.npy").astype("<f4"))
    with pytest.raises(InputError, match="it has float32 of .*, not int32 of"):
        DiskCounts(folder)
    (folder / "indices.npy").write_bytes(b"?" * (folder / "indices.npy").stat().st_size)
    with pytest.raises(InputError, match="indices.npy is damaged"):
        DiskCounts(folder)


def damage(file, values, start=0):
    array = np.load(file, mmap_mode="r+")
    array[start : start + len(values)] = values
    array.flush()


def test_damage_of_the_right_size_is_met_when_read_or_verified(folder):
    stored = DiskCounts(folder)
    stored.verify()
    at = int(np.load(folder / "indptr.npy")[9])
    damage(folder / "indices.npy", [99], at)
    assert stored[:9].shape == (9, 7)
    with pytest.raises(InputError, match=r"indices.npy is damaged.* column 99 of 7"):
        stored[:]
    with pytest.raises(InputError, match=r"indices.npy is damaged: its checksum"):
        stored.verify()
    damage(folder / "indptr.npy", [9000], 4)
    with pytest.raises(InputError, match=r"indptr.npy is damaged: a document has"):
        stored[[3]]
    damage(folder / "labels.npy", [5], 4)
    with pytest.raises(InputError, match=r"labels.npy is damaged: it has label 5 of 1"):
        stored.labels()
    (folder / "data.npy").write_bytes(b"")
    with pytest.raises(InputError, match=r"data.npy is damaged: it has 0 bytes"):
        stored[[22]]
