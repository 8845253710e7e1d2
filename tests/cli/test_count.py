"""`docsigma count`: counts on disk from whatever `fit` takes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.sparse as sp

from docsigma import BayesianSMM, Vocabulary, load_corpus, read_documents
from docsigma.corpora import ShardedCounts, ShardWriter, blocks
from running import refuse, run, succeed

TEXTS = [
    ("cats purr and dogs bark at cats", "pets"),
    ("dogs chase cats and cats chase mice", "pets"),
    ("", "none"),
    ("stocks rise and bonds fall as stocks rise", "money"),
    ("bonds pay interest and stocks pay dividends", "money"),
] * 5


@pytest.fixture
def documents(tmp_path):
    path = tmp_path / "documents.jsonl"
    rows = [
        {"id": f"d{i}", "text": text, "label": label}
        for i, (text, label) in enumerate(TEXTS)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def counted(capsys, *arguments):
    """Count, and open what was written; give it and the report."""
    report = json.loads(succeed(capsys, "count", *arguments, "--json"))
    return ShardedCounts.open(report["folder"]), report


def assert_same(stored, words, expected):
    assert stored.vocabulary == words
    np.testing.assert_array_equal(stored[:].toarray(), expected.counts.toarray())
    np.testing.assert_array_equal(stored.n_tokens, expected.n_tokens)
    np.testing.assert_array_equal(stored.n_unknown, expected.n_unknown)


@pytest.mark.parametrize("size", [3, 4096])
def test_counts_are_those_of_a_fit(tmp_path, documents, capsys, monkeypatch, size):
    monkeypatch.setattr(blocks, "BLOCK_DOCUMENTS", size)
    out = tmp_path / "counts"
    more = ("--min-df", 6, "--max-features", 5, "--shard-rows", 4)
    stored, report = counted(capsys, documents, "--out", out, *more)
    texts = [text for text, _ in TEXTS]
    words, expected = Vocabulary.fit_count(texts, min_df=6, max_features=5)
    assert_same(stored, words, expected)
    assert stored.labels == [label for _, label in TEXTS]
    assert stored.ids() == [f"d{i}" for i in range(25)]
    assert report == {
        "folder": str(out),
        "corpus": str(documents),
        "n_documents": 25,
        "n_tokens": int(expected.n_tokens.sum()),
        "n_unknown": int(expected.n_unknown.sum()),
        "n_empty": int((expected.n_tokens == 0).sum()),
        "n_features": 5,
        "nnz": expected.counts.nnz,
        "n_shards": 7,
        "bytes": stored.nbytes,
        "digest": stored.digest,
        "seconds": report["seconds"],
    }
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["counts", "documents.jsonl"]
    assert "documents" in succeed(capsys, "count", documents, "--out", out)


def test_texts_are_never_all_in_memory(tmp_path, documents, capsys, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_DOCUMENTS", 5)
    sizes = []
    plain = Vocabulary.count
    monkeypatch.setattr(
        Vocabulary,
        "count",
        lambda self, texts: (sizes.append(len(texts)), plain(self, texts))[1],
    )
    counted(capsys, documents, "--out", tmp_path / "counts")
    assert sizes == [5] * 5


def test_settings_come_from_a_file_and_flags_win(tmp_path, documents, capsys):
    config = tmp_path / "settings.toml"
    config.write_text("components = 3\nmin_df = 9\nmax_df = 0.5\nlowercase = false\n")
    arguments = (documents, "--out", tmp_path / "counts", "--config", config)
    stored, _ = counted(capsys, *arguments, "--min-df", 1)
    texts = [text for text, _ in TEXTS]
    settings = {"min_df": 1, "max_df": 0.5, "lowercase": False}
    assert_same(stored, *Vocabulary.fit_count(texts, **settings))
    config.write_text("min_df = -2\n")
    assert "min_df" in refuse(capsys, "count", *arguments)
    config.write_text("topics = 3\n")
    assert "unknown key 'topics'" in refuse(capsys, "count", *arguments)


@pytest.mark.parametrize("source", ["model", "counts", "file"])
def test_words_may_be_given(tmp_path, documents, capsys, source):
    words = Vocabulary.from_texts([text for text, _ in TEXTS], min_df=6)
    given = tmp_path / "given"
    if source == "model":
        model = BayesianSMM(2, max_iter=1).fit(words.count(["cats", "dogs"]).counts)
        model.set_vocabulary(words).save(given)
    elif source == "counts":
        counted(capsys, documents, "--out", given, "--min-df", 6)
    else:
        given.write_text("\n".join(words.words) + "\n")
    new = tmp_path / "new.txt"
    new.write_text("cats and zebras\nbonds\n")
    stored, report = counted(
        capsys, new, "--out", tmp_path / "counts", "--vocabulary", given
    )
    assert_same(stored, words, words.count(["cats and zebras", "bonds"]))
    assert report["n_unknown"] == 1
    assert stored.labels is None


def test_named_corpora_and_their_halves_are_counted(tmp_path, capsys):
    corpus = load_corpus("synthetic")
    stored, _ = counted(capsys, "synthetic", "--out", tmp_path / "train")
    np.testing.assert_array_equal(stored[:].toarray(), corpus.train.counts.toarray())
    assert list(stored.vocabulary.words) == corpus.train.words
    stored, _ = counted(
        capsys,
        *("synthetic", "--out", tmp_path / "test", "--split", "test"),
        *("--vocabulary", tmp_path / "train"),
    )
    np.testing.assert_array_equal(stored[:].toarray(), corpus.test.counts.toarray())
    assert stored.ids(slice(0, 2)) == ["test-1", "test-2"]


def test_matrices_are_counted_with_and_without_words(tmp_path, capsys):
    matrix = sp.csr_matrix(np.random.default_rng(0).poisson(1.0, (20, 6)))
    sp.save_npz(tmp_path / "counts.npz", matrix)
    arguments = (tmp_path / "counts.npz", "--out", tmp_path / "out")
    stored, _ = counted(capsys, *arguments)
    assert stored.vocabulary is None
    np.testing.assert_array_equal(stored[:].toarray(), matrix.toarray())
    words = tmp_path / "words.txt"
    words.write_text("\n".join("abcdef") + "\n")
    stored, _ = counted(capsys, *arguments, "--vocabulary", words)
    assert stored.vocabulary.words == tuple("abcdef")
    words.write_text("\n".join("abc") + "\n")
    sentence = refuse(capsys, "count", *arguments, "--vocabulary", words)
    assert "3 words" in sentence
    assert "6 columns" in sentence


def test_a_folder_of_files_is_counted_in_its_order(tmp_path, capsys):
    for label, text in (("b", "rain rain"), ("a", "sun rain")):
        (tmp_path / "texts" / label).mkdir(parents=True)
        (tmp_path / "texts" / label / "1.txt").write_text(text)
    stored, _ = counted(
        capsys, tmp_path / "texts", "--out", tmp_path / "counts", "--min-df", 1
    )
    assert stored.labels == ["a", "b"]
    assert stored.ids() == ["a/1.txt", "b/1.txt"]
    assert stored[:].toarray().tolist() == [[1, 1], [2, 0]]


@pytest.mark.parametrize(
    ("name", "content", "facts"),
    [
        ("empty.jsonl", b"", ["empty.jsonl", "no documents"]),
        ("columns.csv", b"body,label\nhello,x\n", ["columns.csv", "text", "body"]),
        ("broken.jsonl", b'{"text": "a b"}\n' * 6 + b'{"text": \n', ["line 7"]),
        ("latin.txt", b"caf\xe9\n", ["latin.txt", "byte 4"]),
        ("rare.txt", b"sun\nrain\n", ["2 texts", "`min_df`=2"]),
        ("none.txt", b"! !\n?\n", ["none of the 2 texts"]),
        ("what.docx", b"PK", [".docx"]),
    ],
)
def test_bad_documents_get_one_sentence(tmp_path, capsys, name, content, facts):
    (tmp_path / name).write_bytes(content)
    sentence = refuse(capsys, "count", tmp_path / name, "--out", tmp_path / "counts")
    for fact in facts:
        assert fact in sentence
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_other_bad_input_gets_one_sentence(tmp_path, documents, capsys):
    out = ("--out", tmp_path / "counts")
    assert "unknown corpus" in refuse(capsys, "count", "no-such-corpus", *out)
    assert "`shard_rows`" in refuse(capsys, "count", documents, *out, "--shard-rows", 0)
    words = tmp_path / "words.txt"
    words.write_text("zebra\n")
    given = ("count", documents, *out, "--vocabulary", words)
    assert "holds no word" in refuse(capsys, *given)
    assert f"`min_df` is 3, but {words}" in refuse(capsys, *given, "--min-df", 3)
    words.unlink()
    assert "there is no such file" in refuse(capsys, *given)
    assert [path.name for path in tmp_path.iterdir()] == ["documents.jsonl"]
    nowhere = tmp_path / "no" / "where"
    sentence = refuse(capsys, "count", documents, "--out", nowhere)
    assert f"there is no folder {nowhere.parent}" in sentence
    succeed(capsys, "count", documents, *out)
    again = ("count", tmp_path / "counts", "--out", tmp_path / "again")
    assert "is a folder of counts" in refuse(capsys, *again)


def test_words_of_a_source_that_has_none_are_refused(tmp_path, documents, capsys):
    sp.save_npz(tmp_path / "counts.npz", sp.csr_matrix(np.ones((3, 4))))
    succeed(capsys, "count", tmp_path / "counts.npz", "--out", tmp_path / "bare")
    out = ("--out", tmp_path / "counts")
    given = ("count", documents, *out, "--vocabulary", tmp_path / "bare")
    assert "does not know its words" in refuse(capsys, *given)
    (tmp_path / "empty").mkdir()
    given = ("count", documents, *out, "--vocabulary", tmp_path / "empty")
    assert "config.json" in refuse(capsys, *given)


def test_documents_that_change_between_the_passes_are_told(
    tmp_path, documents, capsys, monkeypatch
):
    from docsigma._word_frequencies import WordFrequencies

    plain = WordFrequencies.vocabulary

    def vocabulary(self):
        with documents.open("a") as handle:
            handle.write('{"text": "one more", "label": "x"}\n')
        return plain(self)

    monkeypatch.setattr(WordFrequencies, "vocabulary", vocabulary)
    sentence = refuse(capsys, "count", documents, "--out", tmp_path / "counts")
    assert "had 25 documents, now it has 26" in sentence
    assert [path.name for path in tmp_path.iterdir()] == ["documents.jsonl"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_leaves_nothing(tmp_path, number):
    path = tmp_path / "long.txt"
    path.write_text("cats chase mice and dogs\n" * 500_000)
    words = tmp_path / "words.txt"
    words.write_text("cats\nmice\n")
    arguments = ["count", str(path), "--out", str(tmp_path / "counts")]
    command = [sys.executable, "-m", "docsigma.cli", *arguments]
    # Tests that a shell started in the background ignore Ctrl-C, and so would it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(
            [*command, "--vocabulary", str(words)], stderr=subprocess.PIPE, text=True
        )
    finally:
        signal.signal(signal.SIGINT, before)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".counts.*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(process.pid, number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert err == "docsigma: stopped; nothing was written\n"
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["long.txt", "words.txt"]


def test_counts_of_the_example_are_those_of_its_texts(tmp_path, capsys):
    from pathlib import Path

    example = Path(__file__).parents[2] / "docs" / "examples" / "tickets.csv"
    documents = read_documents(example)
    stored, _ = counted(capsys, example, "--out", tmp_path / "counts")
    assert_same(stored, *Vocabulary.fit_count(documents.texts))
    assert stored.labels == documents.labels


QUICK = ("--components", 2, "--max-iter", 3)


@pytest.fixture
def stored(tmp_path, documents, capsys):
    out = tmp_path / "counts"
    counted(capsys, documents, "--out", out, "--min-df", 6, "--shard-rows", 4)
    return out


@pytest.fixture
def model(tmp_path, documents, capsys):
    out = tmp_path / "model"
    succeed(capsys, "fit", documents, "--out", out, "--min-df", 6, *QUICK)
    return out


def test_fit_on_shards_is_the_fit_in_memory(
    tmp_path, stored, documents, capsys, monkeypatch
):
    given = []
    plain = BayesianSMM.fit
    monkeypatch.setattr(
        BayesianSMM,
        "fit",
        lambda self, X, **more: (given.append(type(X)), plain(self, X, **more))[1],
    )
    reports, models = [], []
    for name, source in (("memory", documents), ("disk", stored)):
        fit = ("fit", source, "--out", tmp_path / name, "--min-df", 6, *QUICK)
        reports.append(json.loads(succeed(capsys, *fit, "--seed", 3, "--json")))
        models.append(BayesianSMM.load(tmp_path / name))
    assert given == [sp.csr_matrix, ShardedCounts]
    for name in ("components_", "log_unigram_", "training_log_unigram_"):
        np.testing.assert_array_equal(*(getattr(model, name) for model in models))
    assert models[0].vocabulary_ == models[1].vocabulary_
    for report in reports:
        for name in ("model", "corpus", "seconds"):
            del report[name]
    assert reports[0] == reports[1]


def test_fit_on_shards_agrees_over_many_batches(tmp_path, capsys):
    config = tmp_path / "settings.toml"
    config.write_text("batch_size = 32\n")
    folder = tmp_path / "counts"
    counted(capsys, "synthetic", "--out", folder, "--shard-rows", 50)
    models = []
    for name, source in (("memory", "synthetic"), ("disk", folder)):
        fit = ("fit", source, "--out", tmp_path / name, "--config", config, *QUICK)
        succeed(capsys, *fit)
        models.append(BayesianSMM.load(tmp_path / name))
    # Sums are in another order, so the last digits may differ.
    for name in ("components_", "log_unigram_"):
        found, expected = (getattr(model, name) for model in models)
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def test_a_stopped_fit_on_shards_goes_on(tmp_path, stored, capsys, monkeypatch):
    fit = ("fit", stored, "--out", tmp_path / "model", *QUICK)
    monkeypatch.setattr("docsigma.cli.fit._Interrupt.__call__", lambda *_: True)
    monkeypatch.setattr("docsigma.cli.fit._Interrupt.asked", True, raising=False)
    monkeypatch.setattr("docsigma.cli.fit._Interrupt.__init__", lambda _: None)
    code, _, err = run(capsys, *fit)
    assert code == 130
    assert "stopped after pass 1 of 3" in err
    monkeypatch.undo()
    succeed(capsys, *fit, "--resume")
    succeed(capsys, "fit", stored, "--out", tmp_path / "whole", *QUICK)
    resumed, whole = (BayesianSMM.load(tmp_path / n) for n in ("model", "whole"))
    np.testing.assert_array_equal(resumed.components_, whole.components_)


@pytest.mark.parametrize("suffix", [".jsonl", ".npz", ".parquet"])
@pytest.mark.parametrize("size", [7, 8192])
def test_embeddings_of_shards_are_those_of_the_texts(
    tmp_path, stored, documents, model, capsys, monkeypatch, suffix, size
):
    monkeypatch.setattr("docsigma.cli.embed.BLOCK", size)
    sizes = []
    plain = BayesianSMM.posterior
    monkeypatch.setattr(
        BayesianSMM,
        "posterior",
        lambda self, X: (sizes.append(X.shape[0]), plain(self, X))[1],
    )
    tables, reports = [], []
    for name, source in (("disk", stored), ("memory", documents)):
        out = tmp_path / f"{name}{suffix}"
        shown = succeed(capsys, "embed", model, source, "--out", out, "--json")
        reports.append(json.loads(shown) | {"file": None})
        tables.append(read_table(out))
    assert sizes == ([7, 7, 7, 4, 25] if size == 7 else [25, 25])
    assert reports[0].pop("mean_total_variance") == pytest.approx(
        reports[1].pop("mean_total_variance"), rel=1e-6
    )
    assert reports[0] == reports[1]
    assert list(tables[0]) == list(tables[1])
    for name, found in tables[0].items():
        if size == 8192 or found.dtype.kind != "f":
            np.testing.assert_array_equal(found, tables[1][name])
        else:  # products of other sizes may round otherwise
            np.testing.assert_allclose(found, tables[1][name], rtol=1e-5, atol=1e-6)
    assert tables[0]["id"][24] == "d24"
    assert tables[0]["label"][3] == "money"
    assert tables[0]["n_unknown"].sum() > 0
    assert not list(tmp_path.glob(".*"))


def read_table(path):
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return dict(arrays)
    if path.suffix == ".parquet":
        from pyarrow import parquet

        rows = parquet.read_table(path).to_pylist()
    else:
        rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {name: np.asarray([row[name] for row in rows]) for name in rows[0]}


def test_perplexity_of_shards_is_that_of_the_texts(stored, documents, model, capsys):
    on_disk, in_memory = (
        json.loads(succeed(capsys, "perplexity", model, source, "--json"))
        for source in (stored, documents)
    )
    assert on_disk == in_memory


def test_an_embedding_that_fails_half_way_leaves_nothing(
    tmp_path, stored, model, capsys, monkeypatch
):
    monkeypatch.setattr("docsigma.cli.embed.BLOCK", 4)
    damaged = stored / "00003.indices"
    damaged.write_bytes(b"\xff" * damaged.stat().st_size)
    for suffix in (".jsonl", ".npz", ".parquet"):
        out = tmp_path / f"out{suffix}"
        sentence = refuse(capsys, "embed", model, stored, "--out", out)
        assert "00003.indices is damaged" in sentence
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        *("counts", "documents.jsonl", "model")
    ]


def test_shards_of_other_words_are_refused(tmp_path, documents, model, capsys):
    more = tmp_path / "more"
    counted(capsys, documents, "--out", more)
    words = BayesianSMM.load(model).vocabulary_.words
    turned = tmp_path / "turned"
    with ShardWriter(turned, len(words), words[::-1]) as writer:
        writer.add(sp.csr_matrix(np.ones((2, len(words)))))
    bare = tmp_path / "bare"
    with ShardWriter(bare, 3) as writer:
        writer.add(sp.csr_matrix(np.ones((2, 3))))
    commands = (("embed", ("--out", tmp_path / "out.npz")), ("perplexity", ()))
    for command, options in commands:
        for folder in (more, turned):
            n_words = ShardedCounts.open(folder).n_features
            sentence = refuse(capsys, command, model, folder, *options)
            assert f"has {n_words} words and the model {len(words)}" in sentence
        sentence = refuse(capsys, command, model, bare, *options)
        assert f"3 columns, the model was fitted on {len(words)}" in sentence
    assert not (tmp_path / "out.npz").exists()


def test_shards_without_words_are_fitted_and_embedded(tmp_path, capsys):
    folder = tmp_path / "bare"
    with ShardWriter(folder, 3) as writer:
        writer.add(sp.csr_matrix(np.random.default_rng(0).poisson(2.0, (20, 3))))
    succeed(capsys, "fit", folder, "--out", tmp_path / "model", *QUICK)
    assert BayesianSMM.load(tmp_path / "model").vocabulary_ is None
    out = tmp_path / "out.npz"
    succeed(capsys, "embed", tmp_path / "model", folder, "--out", out)
    table = read_table(out)
    assert "label" not in table
    assert table["id"].tolist() == [str(i) for i in range(1, 21)]
    assert table["n_unknown"].tolist() == [0] * 20


def test_what_shards_cannot_do_gets_one_sentence(
    tmp_path, stored, documents, model, capsys
):
    fit = ("fit", stored, "--out", tmp_path / "other")
    sentence = refuse(capsys, *fit, *QUICK, "--solver", "paper")
    assert 'solver="paper" needs the counts in memory' in sentence
    words = tmp_path / "words.txt"
    words.write_text("zebra\n")
    out = ("--out", tmp_path / "out.npz")
    for command in (
        fit,
        ("embed", model, stored, *out),
        ("perplexity", model, stored),
    ):
        sentence = refuse(capsys, *command, "--vocabulary", words)
        assert f"{stored} is a folder of counts" in sentence
    assert "only `fit`, `embed`" in refuse(capsys, "topics", model, stored)
    with ShardWriter(tmp_path / "zeros", 3) as writer:
        writer.add(sp.csr_matrix((4, 3)))
    empty = ("fit", tmp_path / "zeros", "--out", tmp_path / "other")
    assert "holds no word" in refuse(capsys, *empty)
    (stored / "n_tokens").unlink()
    assert "n_tokens" in refuse(capsys, *fit)
    assert not (tmp_path / "other").exists()
