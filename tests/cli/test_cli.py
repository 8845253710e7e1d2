"""The command line as a person meets it: output, files, exit codes, sentences."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from sklearn.base import clone

from counting import write_documents
from docsigma import BayesianSMM, DocumentEmbedder, GaussianPosterior, GaussianPrior
from running import refuse, succeed

FORMS = ("isotropic", "diagonal", "full")
TEXTS = [
    ("cats purr and dogs bark at cats", "pets"),
    ("dogs chase cats and cats chase mice", "pets"),
    ("stocks rise and bonds fall as stocks rise", "money"),
    ("bonds pay interest and stocks pay dividends", "money"),
] * 6


@pytest.fixture
def documents(tmp_path):
    return write_documents(tmp_path / "documents.jsonl", TEXTS)


@pytest.fixture
def model(tmp_path, documents, capsys):
    folder = tmp_path / "model"
    succeed(
        capsys, "fit", documents, "--out", folder, "--components", 2, "--max-iter", 30
    )
    return folder


def test_fit_embed_perplexity_topics_info_one_after_the_other(
    tmp_path, documents, capsys
):
    folder = tmp_path / "model"
    report = json.loads(
        succeed(
            capsys,
            *("fit", documents, "--out", folder, "--components", 3, "--max-iter", 40),
            *("--l1", 0.01, "--prior-precision", 1, "--seed", 7, "--json"),
        )
    )
    assert report["n_documents"] == 24
    assert report["n_components"] == 3
    assert sorted(p.name for p in tmp_path.iterdir()) == ["documents.jsonl", "model"]
    loaded = BayesianSMM.load(folder)
    assert loaded.random_state == 7
    assert loaded.l1 == 0.01
    assert loaded.vocabulary_ is not None

    got = json.loads(succeed(capsys, "perplexity", folder, documents, "--json"))
    fields = {"corpus", "per_document", "standard_error", "estimator", "n_draws"}
    fields |= {"n_documents", "n_tokens", "unigram_corpus"}
    assert fields <= set(got)
    assert got["n_documents"] == 24
    assert "uni-gram" in succeed(capsys, "perplexity", folder, documents)

    dimensions = json.loads(succeed(capsys, "topics", folder, "--json"))["dimensions"]
    assert len(dimensions) == 3
    arguments = ("topics", folder, documents, "--clusters", 2)
    groups = json.loads(succeed(capsys, *arguments, "--json"))["clusters"]
    assert sum(group["size"] for group in groups) == 24
    assert "Groups of" in succeed(capsys, *arguments)
    assert json.loads(succeed(capsys, "info", folder, "--json"))["n_features"] == len(
        loaded.vocabulary_
    )
    assert "prior_precision" in succeed(capsys, "info", folder)


@pytest.mark.parametrize("suffix", ["parquet", "npz", "jsonl"])
def test_embed_writes_every_column(tmp_path, documents, model, capsys, suffix):
    out = tmp_path / f"embeddings.{suffix}"
    with documents.open("a") as handle:
        handle.write(json.dumps({"id": "odd", "text": "zzz qqq", "label": "?"}) + "\n")
    succeed(capsys, "embed", model, documents, "--out", out)
    if suffix == "parquet":
        import pyarrow.parquet as pq

        columns = pq.read_table(out).to_pydict()
    elif suffix == "npz":
        with np.load(out) as arrays:
            columns = {name: arrays[name].tolist() for name in arrays.files}
    else:
        rows = [json.loads(line) for line in out.read_text().splitlines()]
        columns = {name: [row[name] for row in rows] for name in rows[0]}
    # Arrays of strings are as long as the longest text.
    assert ("text" in columns) == (suffix != "npz")
    more = {"prior_mean", "prior_precision", "model_digest", "text"}
    assert set(columns) - more == {
        *(
            "row",
            "id",
            "label",
            "mean",
            "variance",
            "total_variance",
            "n_tokens",
            "n_unknown",
        )
    }
    assert columns["id"][:2] == ["d0", "d1"]
    assert np.asarray(columns["mean"]).shape == (25, 2)
    np.testing.assert_allclose(
        np.asarray(columns["variance"]).sum(axis=1),
        columns["total_variance"],
        rtol=1e-5,
    )
    # "zzz qqq": no known word, so the prior.
    assert columns["n_tokens"][-1] == 0
    assert columns["n_unknown"][-1] == 2
    np.testing.assert_allclose(columns["mean"][-1], 0)
    np.testing.assert_allclose(columns["variance"][-1], 0.1, rtol=1e-5)


@pytest.mark.parametrize(
    "precision", [10.0, [1.0, 2.0], [[2.0, 0.5], [0.5, 1.0]]], ids=FORMS
)
def test_tables_of_embeddings_hold_the_prior(
    tmp_path, documents, model, capsys, monkeypatch, precision
):
    prior = GaussianPrior([0.0, 1 / 3], precision)
    plain = BayesianSMM.posterior
    monkeypatch.setattr(
        BayesianSMM, "posterior", lambda self, X: plain(self, X).replace(prior=prior)
    )
    for suffix in ("npz", "parquet", "jsonl"):
        out = tmp_path / f"embeddings.{suffix}"
        succeed(capsys, "embed", model, documents, "--out", out)
    with np.load(tmp_path / "embeddings.npz") as arrays:
        q = GaussianPosterior.from_arrays(arrays)
        np.testing.assert_array_equal(q.n_tokens, arrays["n_tokens"])
    assert len(q) == len(TEXTS)
    assert q.prior == prior
    assert q.prior.form == prior.form
    pq = pytest.importorskip("pyarrow.parquet")
    metadata = pq.read_schema(tmp_path / "embeddings.parquet").metadata
    names = (b"prior_mean", b"prior_precision")
    assert GaussianPrior(*(json.loads(metadata[name]) for name in names)) == prior
    first = json.loads((tmp_path / "embeddings.jsonl").read_text().splitlines()[0])
    assert "prior_mean" not in first


def test_named_corpora_and_splits_work(tmp_path, capsys):
    folder = tmp_path / "model"
    succeed(capsys, "fit", "synthetic", "--out", folder, "--max-iter", 5)
    sizes = [
        json.loads(
            succeed(capsys, "perplexity", folder, "synthetic", "--split", s, "--json")
        )["n_documents"]
        for s in ("train", "test")
    ]
    assert sizes == [400, 100]


def test_count_matrices_work_with_and_without_words(tmp_path, capsys):
    counts = np.random.default_rng(0).poisson(1.0, (20, 6))
    scipy.io.mmwrite(tmp_path / "counts.mtx", sp.csr_matrix(counts))
    arguments = ("fit", tmp_path / "counts.mtx", "--components", 2, "--max-iter", 3)
    succeed(capsys, *arguments, "--out", tmp_path / "bare")
    out = tmp_path / "e.npz"
    succeed(capsys, "embed", tmp_path / "bare", tmp_path / "counts.mtx", "--out", out)
    words = tmp_path / "words.txt"
    words.write_text("\n".join("abcdef") + "\n")
    succeed(capsys, *arguments, "--vocabulary", words, "--out", tmp_path / "named")
    assert BayesianSMM.load(tmp_path / "named").vocabulary_.words == tuple("abcdef")
    sentence = refuse(capsys, "topics", tmp_path / "bare")
    assert "does not know its words" in sentence


def test_config_file_gives_settings_and_flags_win(tmp_path, documents, capsys):
    config = tmp_path / "settings.toml"
    config.write_text("components = 2\nl1 = 0.5\nmax-iter = 3\nmin_df = 7\nseed = 3\n")
    folder = tmp_path / "model"
    arguments = ("fit", documents, "--out", folder, "--config", config, "--l1", 0.25)
    succeed(capsys, *arguments)
    loaded = BayesianSMM.load(folder)
    assert (loaded.n_components, loaded.l1, loaded.max_iter) == (2, 0.25, 3)
    assert loaded.random_state == 3
    assert "mice" not in loaded.vocabulary_.words
    config.write_text("topics = 3\n")
    assert "unknown key 'topics'" in refuse(capsys, *arguments)
    config.write_text("topics = \n")
    assert "is not a TOML file" in refuse(capsys, *arguments)
    config.unlink()
    assert "there is no file" in refuse(capsys, *arguments)


def test_a_model_of_the_command_line_has_the_settings_of_its_words(
    tmp_path, documents, capsys
):
    config = tmp_path / "settings.toml"
    config.write_text("ngram-range = [1, 2]\nlowercase = false\nmax_iter = 3\n")
    flags = ("--components", 2, "--min-df", 5, "--stop-words", "english", "--seed", 3)
    folder = tmp_path / "model"
    succeed(capsys, "fit", documents, "--out", folder, "--config", config, *flags)
    loaded = DocumentEmbedder.load(folder)
    assert (loaded.min_df, loaded.ngram_range, loaded.lowercase) == (5, (1, 2), False)
    fitted = clone(loaded).fit([text for text, _ in TEXTS]).model_
    assert fitted.vocabulary_ == loaded.model_.vocabulary_
    assert fitted.digest == loaded.model_.digest


def test_corpora_lists_every_name(capsys):
    names = {
        entry["name"] for entry in json.loads(succeed(capsys, "corpora", "--json"))
    }
    assert {"20newsgroups", "20newsgroups-2k", "docstrings", "synthetic"} <= names
    assert "docstrings" in succeed(capsys, "corpora")


def test_version_and_help(capsys):
    from docsigma import __version__

    assert __version__ in succeed(capsys, "--version")
    for command in ("fit", "embed", "perplexity", "topics", "info", "corpora", "demo"):
        assert "--help" in succeed(capsys, command, "--help")


def fit(tmp_path, source, *more):
    return ("fit", source, "--out", tmp_path / "new", "--max-iter", 2, *more)


@pytest.mark.parametrize(
    ("name", "content", "facts"),
    [
        ("empty.jsonl", b"", ["empty.jsonl"]),
        ("empty.csv", b"", ["empty.csv"]),
        ("columns.csv", b"body,label\nhello,x\n", ["columns.csv", "text", "body"]),
        ("broken.jsonl", b'{"text": "a b"}\n' * 6 + b'{"text": \n', ["line 7"]),
        ("latin.jsonl", '{"text": "caf\xe9"}\n'.encode("latin-1"), ["latin.jsonl"]),
        ("cut.csv.gz", b"\x1f\x8b\x08\x00nonsense", ["cut.csv.gz"]),
        ("what.docx", b"PK", [".docx"]),
    ],
)
def test_bad_document_files_get_one_sentence(tmp_path, capsys, name, content, facts):
    (tmp_path / name).write_bytes(content)
    sentence = refuse(capsys, *fit(tmp_path, tmp_path / name))
    for fact in facts:
        assert fact in sentence
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("value", [-1.0, np.nan, 0.5, np.inf])
def test_bad_counts_get_one_sentence(tmp_path, capsys, value):
    counts = np.ones((3, 4))
    counts[1, 2] = value
    sp.save_npz(tmp_path / "counts.npz", sp.csr_matrix(counts))
    sentence = refuse(capsys, *fit(tmp_path, tmp_path / "counts.npz"))
    assert "counts.npz" in sentence
    assert f"{value:g}" in sentence
    assert [p.name for p in tmp_path.iterdir()] == ["counts.npz"]


def test_vocabulary_of_the_wrong_length_names_both_numbers(tmp_path, capsys):
    sp.save_npz(tmp_path / "counts.npz", sp.csr_matrix(np.ones((3, 4))))
    (tmp_path / "words.txt").write_text("a\nb\nc\n")
    sentence = refuse(
        capsys,
        *fit(tmp_path, tmp_path / "counts.npz", "--vocabulary", tmp_path / "words.txt"),
    )
    assert "3" in sentence
    assert "4" in sentence


@pytest.mark.parametrize(
    "name", ["config.json", "model.safetensors", "vocabulary.json"]
)
def test_a_model_folder_without_a_file_names_it(documents, model, capsys, name):
    (model / name).unlink()
    assert name in refuse(capsys, "perplexity", model, documents)


def test_damaged_and_foreign_tensors_get_one_sentence(documents, model, capsys):
    from safetensors.numpy import save_file

    (model / "model.safetensors").write_bytes(b"\0" * 100)
    assert "model.safetensors is damaged" in refuse(capsys, "info", model)
    save_file({"x": np.zeros(2)}, model / "model.safetensors")
    assert "docsigma did not write" in refuse(capsys, "info", model)


def test_unwritable_outputs_are_refused_before_any_work(
    tmp_path, documents, model, capsys
):
    nowhere = tmp_path / "no" / "where"
    sentence = refuse(capsys, "fit", documents, "--out", nowhere)
    assert f"there is no folder {nowhere.parent}" in sentence
    sentence = refuse(capsys, "embed", model, documents, "--out", nowhere / "e.npz")
    assert "there is no folder" in sentence
    (tmp_path / "a-file").touch()
    assert "a file has that name" in refuse(
        capsys, "fit", documents, "--out", tmp_path / "a-file"
    )
    (tmp_path / "a-file").unlink()
    assert "it is a folder" in refuse(
        capsys, "embed", model, documents, "--out", _folder(tmp_path / "e.npz")
    )
    _folder(tmp_path / "thesis")
    (tmp_path / "thesis" / "a.tex").write_text("precious")
    sentence = refuse(capsys, "fit", documents, "--out", tmp_path / "thesis")
    assert "not a docsigma folder" in sentence
    sentence = refuse(capsys, "embed", model, documents, "--out", tmp_path / "e.xlsx")
    assert ".parquet, .csv, .npz, .jsonl" in sentence


def _folder(path):
    path.mkdir()
    return path


def test_bad_parameters_and_names_get_one_sentence(tmp_path, documents, capsys):
    sentence = refuse(capsys, *fit(tmp_path, documents, "--components", 0))
    assert "`components` must be a whole number of 1 or more, got 0" in sentence
    sentence = refuse(capsys, *fit(tmp_path, "no-such-corpus"))
    assert "no-such-corpus" in sentence
    assert "20newsgroups" in sentence
    assert "solver" in refuse(capsys, *fit(tmp_path, documents, "--solver", "magic"))
    assert "cannot be used" in refuse(
        capsys, *fit(tmp_path, documents, "--device", "tpu")
    )
    assert [p.name for p in tmp_path.iterdir()] == ["documents.jsonl"]


def test_bad_estimators_and_clusters_get_one_sentence(documents, model, capsys):
    sentence = refuse(capsys, "perplexity", model, documents, "--estimator", "elbo")
    assert "monte_carlo" in sentence
    sentence = refuse(capsys, "topics", model, documents, "--clusters", 100)
    assert "24" in sentence
    assert "100" in sentence


def test_a_disk_that_fills_up_loses_nothing(
    tmp_path, documents, model, capsys, monkeypatch
):
    """A real full disk: a quota on file size, which the kernel enforces."""
    before = {p.name: p.read_bytes() for p in model.iterdir()}
    script = (
        "import resource, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))\n"
        "from docsigma.cli.__main__ import main\n"
        "main(sys.argv[1:])\n"
    )
    command = [sys.executable, "-c", script, *map(str, fit(tmp_path, documents))]
    command[command.index(str(tmp_path / "new"))] = str(model)
    command += ["--force", "--components", "3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert "cannot write" in done.stderr
    assert {p.name: p.read_bytes() for p in model.iterdir()} == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["documents.jsonl", "model"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_a_checkpoint_to_resume_from(tmp_path, documents, capsys, number):
    folder = tmp_path / "model"
    checkpoint = tmp_path / "model.checkpoint.safetensors"
    arguments = ["fit", str(documents), "--out", str(folder), "--components", "2"]
    # Only Algorithm 1 may go on with another number of passes: the fast solver's
    # learning rate falls over them.
    arguments += ["--tol", "0", "--checkpoint-every", "5", "--solver", "paper"]
    process = subprocess.Popen(
        [sys.executable, "-m", "docsigma.cli", *arguments, "--max-iter", "1000000"],
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not checkpoint.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(process.pid, number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "--resume" in err
    assert "Traceback" not in err
    assert not folder.exists()
    from docsigma.persistence import read_checkpoint

    total = len(read_checkpoint(checkpoint)[0]["history"]) + 4
    succeed(capsys, *arguments, "--max-iter", total, "--resume")
    assert not checkpoint.exists()
    whole = tmp_path / "whole"
    arguments[3] = str(whole)
    succeed(capsys, *arguments, "--max-iter", total)
    np.testing.assert_array_equal(
        BayesianSMM.load(folder).components_, BayesianSMM.load(whole).components_
    )


def test_resume_without_a_checkpoint_is_refused(tmp_path, documents, capsys):
    sentence = refuse(capsys, *fit(tmp_path, documents, "--resume"))
    assert "there is no checkpoint" in sentence


def test_json_output_is_json_alone(documents, model, capsys):
    out = succeed(capsys, "perplexity", model, documents, "--json")
    assert json.loads(out)["estimator"] == "monte_carlo"
