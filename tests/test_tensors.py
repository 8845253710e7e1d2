"""Safetensors files: read by the library, and the same bytes each time."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from safetensors import safe_open

from docsigma._tensors import read_tensors, write_tensors

METADATA = """
import sys
from docsigma._tensors import write_tensors
import numpy as np
arrays = {name: np.arange(3.0) for name in "zyx"}
write_tensors(sys.argv[1], arrays, {f"key {n}": str(n) for n in range(30)})
"""
FIT = """
import sys
from docsigma import BayesianSMM, load_corpus
counts = load_corpus("synthetic", n_train=100).train.counts
BayesianSMM(3, max_iter=3, random_state=0).fit(counts).save(sys.argv[1])
"""
TYPES = ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?")


def written(path, arrays, **metadata):
    write_tensors(path, arrays, metadata)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("script", "file"),
    [(METADATA, ""), (FIT, "model.safetensors")],
    ids=["metadata of many keys", "fit"],
)
def test_every_process_writes_the_same_bytes(tmp_path, script, file):
    seen = set()
    for number in range(3):
        path = tmp_path / str(number)
        subprocess.run([sys.executable, "-c", script, path], check=True)
        seen.add((path / file).read_bytes())
    assert len(seen) == 1


def test_the_order_that_things_are_given_in_does_not_matter(tmp_path):
    arrays = {"b": np.zeros(2), "a": np.ones(3, dtype=np.float32), "c": np.ones(1)}
    there = written(tmp_path / "there", arrays, one="1", two="2")
    back = written(tmp_path / "back", dict(reversed(arrays.items())), two="2", one="1")
    assert there == back


@pytest.mark.parametrize("order", ["<", ">"])
def test_the_library_reads_every_type_and_shape(tmp_path, order):
    source = np.random.default_rng(0)
    shapes = [(), (0,), (5,), (3, 0), (3, 4), (2, 3, 4)]
    arrays = {
        f"{code} {shape}": (100 * source.random(shape)).astype(order + code)
        for code in TYPES
        for shape in shapes
    }
    arrays["transposed"] = source.random((3, 4)).T
    arrays["every other"] = source.random(10)[::2]
    file = tmp_path / "file.safetensors"
    write_tensors(file, arrays, {"naïve key": 'naïve "value"\n\t\x01'})
    with safe_open(file, framework="numpy") as handle:
        assert handle.metadata()["naïve key"] == 'naïve "value"\n\t\x01'
    back, _ = read_tensors(file)
    assert set(back) == set(arrays)
    for name, array in arrays.items():
        assert back[name].dtype == array.dtype.newbyteorder("=")
        assert back[name].shape == array.shape
        np.testing.assert_array_equal(back[name], array)


def test_arrays_start_at_multiples_of_their_width(tmp_path):
    arrays = {f"{code} {n}": np.ones(n, code) for code in TYPES for n in (1, 3)}
    data = written(tmp_path / "file", arrays)
    length = int.from_bytes(data[:8], "little")
    assert length % 8 == 0
    header = json.loads(data[8 : 8 + length])
    del header["__metadata__"]
    for name, entry in header.items():
        assert entry["data_offsets"][0] % arrays[name].itemsize == 0
    assert max(e["data_offsets"][1] for e in header.values()) == len(data) - 8 - length


@pytest.mark.parametrize("array", [np.array(["word"]), np.array([1j])])
def test_other_types_are_refused(tmp_path, array):
    with pytest.raises(TypeError, match="does not fit into a safetensors file"):
        write_tensors(tmp_path / "file", {"array": array})
    assert list(tmp_path.iterdir()) == []
