from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from sklearn.base import clone

from docsigma import BayesianSMM, InputError, load_corpus


@pytest.fixture(scope="module")
def counts():
    return load_corpus("synthetic", n_train=100).train.counts


@pytest.fixture
def model(counts):
    fitted = BayesianSMM(3, max_iter=5, random_state=0).fit(counts)
    return fitted.set_vocabulary([f"w{i}" for i in range(counts.shape[1])])


@pytest.fixture
def folder(model, tmp_path):
    model.save(tmp_path / "model")
    return tmp_path / "model"


def test_loading_gives_the_same_model(model, folder, counts):
    back = BayesianSMM.load(folder)
    assert back.get_params() == model.get_params()
    assert back.vocabulary_ == model.vocabulary_
    assert back.history_ == model.history_
    np.testing.assert_array_equal(back.transform(counts), model.transform(counts))
    ours, theirs = (m.perplexity(counts).to_dict() for m in (model, back))
    assert ours == theirs


def test_a_model_is_saved_over_another_only_if_told(model, folder, counts):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    other = clone(model).set_params(max_iter=1).fit(counts)
    with pytest.raises(InputError, match="model exists already: pass `overwrite=True`"):
        other.save(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    other.save(folder, overwrite=True)
    assert BayesianSMM.load(folder).digest == other.digest
    model.save(folder, overwrite=True)
    names = sorted(path.name for path in folder.iterdir())
    assert names == [
        *("README.md", "config.json", "model.safetensors", "vocabulary.json")
    ]
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_a_folder_of_something_else_is_not_replaced(model, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("precious")
    with pytest.raises(InputError, match="not a docsigma folder"):
        model.save(tmp_path / "thesis")
    assert (tmp_path / "thesis" / "chapter1.tex").read_text() == "precious"


def test_a_random_state_object_does_not_stop_saving(counts, tmp_path):
    model = BayesianSMM(2, max_iter=2, random_state=np.random.RandomState(3))
    model.fit(counts).save(tmp_path / "model")
    back = BayesianSMM.load(tmp_path / "model")
    np.testing.assert_array_equal(back.transform(counts), model.transform(counts))


@pytest.mark.parametrize(
    "name", ["config.json", "model.safetensors", "vocabulary.json"]
)
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(InputError, match=f"has no {name}"):
        BayesianSMM.load(folder)


def test_damage_is_told_in_one_sentence(folder):
    tensors = folder / "model.safetensors"
    data = bytearray(tensors.read_bytes())
    tensors.write_bytes(data[: len(data) // 2])
    with pytest.raises(InputError, match="damaged or not safetensors"):
        BayesianSMM.load(folder)
    data[-3] ^= 255
    tensors.write_bytes(data)
    with pytest.raises(InputError, match="its checksum is not the one in config.json"):
        BayesianSMM.load(folder)


def test_foreign_files_are_refused(folder):
    from safetensors.numpy import save_file

    save_file({"weight": np.zeros(3)}, folder / "model.safetensors")
    with pytest.raises(InputError, match="docsigma did not write"):
        BayesianSMM.load(folder)
    (folder / "model.safetensors").write_bytes(b"PK\x03\x04 not tensors")
    with pytest.raises(InputError, match="damaged or not safetensors"):
        BayesianSMM.load(folder)


def edit(folder, **changes):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


def test_unknown_schema_versions_are_refused(folder):
    edit(folder, schema_version=99)
    with pytest.raises(InputError, match="schema version 99.*reads version 1"):
        BayesianSMM.load(folder)


def test_other_kinds_and_formats_are_refused(folder):
    edit(folder, kind="NVDM")
    with pytest.raises(InputError, match="holds a NVDM, not a BayesianSMM"):
        BayesianSMM.load(folder)
    edit(folder, format="sentence-transformer")
    with pytest.raises(InputError, match="does not describe a docsigma model"):
        BayesianSMM.load(folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(InputError, match="config.json is damaged"):
        BayesianSMM.load(folder)
    with pytest.raises(InputError, match="there is no model folder"):
        BayesianSMM.load(folder / "nowhere")


def test_damaged_parameters_and_words_are_refused(folder):
    edit(folder, parameters={"n_topics": 3})
    with pytest.raises(InputError, match="config.json is damaged.*n_topics"):
        BayesianSMM.load(folder)


def test_a_full_disk_leaves_the_old_model(model, folder, monkeypatch):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def full(path, parts):
        path.write_bytes(parts[0])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("docsigma._tensors._write", full)
    with pytest.raises(InputError, match=r"cannot write .*: No space left on device"):
        model.save(folder, overwrite=True)
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert after == before
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_resuming_ends_bit_for_bit_where_an_uninterrupted_run_ends(counts, tmp_path):
    file = tmp_path / "checkpoint.safetensors"
    settings = {"n_components": 3, "l1": 0.5, "solver": "paper", "random_state": 2}
    whole = BayesianSMM(max_iter=20, **settings).fit(counts)
    BayesianSMM(max_iter=7, **settings).fit(counts, checkpoint=file, checkpoint_every=3)
    resumed = BayesianSMM(max_iter=20, **settings)
    resumed.fit(counts, checkpoint=file, resume=True)
    np.testing.assert_array_equal(resumed.components_, whole.components_)
    np.testing.assert_array_equal(resumed.log_unigram_, whole.log_unigram_)
    bounds = [[row["bound"] for row in m.history_] for m in (whole, resumed)]
    assert bounds[0] == bounds[1]


def test_resuming_after_kill_9_ends_bit_for_bit_the_same(counts, tmp_path):
    file = tmp_path / "checkpoint.safetensors"
    script = textwrap.dedent(
        """
        import sys
        from docsigma import BayesianSMM, load_corpus
        counts = load_corpus("synthetic", n_train=100).train.counts
        settings = {"solver": "paper", "tol": 0, "random_state": 0}
        model = BayesianSMM(3, max_iter=100_000, **settings)
        model.fit(counts, checkpoint=sys.argv[1], checkpoint_every=2)
        """
    )
    process = subprocess.Popen([sys.executable, "-c", script, str(file)])
    deadline = time.monotonic() + 60
    while not file.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    from docsigma.persistence import read_checkpoint

    done = len(read_checkpoint(file)[0]["history"])
    assert done >= 2
    settings = {"solver": "paper", "max_iter": done + 5, "tol": 0, "random_state": 0}
    resumed = BayesianSMM(3, **settings).fit(counts, checkpoint=file, resume=True)
    whole = BayesianSMM(3, **settings).fit(counts)
    np.testing.assert_array_equal(resumed.components_, whole.components_)


def test_a_checkpoint_of_another_training_is_refused(counts, tmp_path):
    file = tmp_path / "checkpoint.safetensors"
    BayesianSMM(3, max_iter=2, random_state=0).fit(counts, checkpoint=file)
    with pytest.raises(InputError, match="written with n_components=3, not 4"):
        BayesianSMM(4, max_iter=2).fit(counts, checkpoint=file, resume=True)
    with pytest.raises(InputError, match="written with solver='fast', not 'paper'"):
        BayesianSMM(3, solver="paper").fit(counts, checkpoint=file, resume=True)
    with pytest.raises(InputError, match="other documents"):
        BayesianSMM(3).fit(counts[:50], checkpoint=file, resume=True)
    with pytest.raises(InputError, match="does not exist"):
        BayesianSMM(3).fit(counts, checkpoint=tmp_path / "none", resume=True)
    with pytest.raises(InputError, match="`resume` needs a `checkpoint`"):
        BayesianSMM(3).fit(counts, resume=True)


def test_resuming_removes_what_a_killed_run_left_of_its_checkpoint(counts, tmp_path):
    file = tmp_path / "checkpoint.safetensors"
    script = textwrap.dedent(
        """
        import os, signal, sys
        from docsigma import BayesianSMM, _tensors, load_corpus
        write = _tensors._write

        def half(path, parts):
            write(path, parts[: len(parts) // 2])
            os.kill(os.getpid(), signal.SIGKILL)

        def second_time(now):
            if now.epoch == 2:
                _tensors._write = half

        counts = load_corpus("synthetic", n_train=100).train.counts
        model = BayesianSMM(3, max_iter=4, random_state=0)
        model.fit(counts, checkpoint=sys.argv[1], callback=second_time)
        """
    )
    done = subprocess.run([sys.executable, "-c", script, str(file)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(list(tmp_path.glob(".checkpoint.*.tmp.safetensors"))) == 1
    other = tmp_path / ".other.01234567.tmp.safetensors"
    other.write_bytes(b"of another run")
    BayesianSMM(3, max_iter=4, random_state=0).fit(counts, checkpoint=file, resume=True)
    assert sorted(tmp_path.iterdir()) == [other, file]


def test_digest_is_that_of_what_was_learned(tmp_path):
    counts = load_corpus("synthetic").train.counts
    smm = BayesianSMM(3, max_iter=5, random_state=0).fit(counts)
    digest = smm.digest
    assert smm.posterior(counts[:2]).model_digest == digest
    smm.save(tmp_path / "model")
    assert BayesianSMM.load(tmp_path / "model").digest == digest
    assert BayesianSMM(3, max_iter=5, random_state=1).fit(counts).digest != digest
    assert smm.partial_fit(counts).digest != digest
