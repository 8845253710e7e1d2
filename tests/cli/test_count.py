"""`docsigma count`: counts on disk from whatever `fit` takes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.sparse as sp

from counting import TEXTS, counted
from docsigma import BayesianSMM, Vocabulary, load_corpus, read_documents
from docsigma.corpora import files
from running import refuse, succeed


def assert_same(stored, words, expected):
    assert stored.vocabulary == words
    np.testing.assert_array_equal(stored[:].toarray(), expected.counts.toarray())
    np.testing.assert_array_equal(stored.n_tokens, expected.n_tokens)
    np.testing.assert_array_equal(stored.n_unknown, expected.n_unknown)


@pytest.mark.parametrize("size", [3, 4096])
def test_counts_are_those_of_a_fit(tmp_path, documents, capsys, monkeypatch, size):
    monkeypatch.setattr(files, "BLOCK", size)
    out = tmp_path / "counts"
    more = ("--min-df", 6, "--max-features", 5)
    stored, report = counted(capsys, documents, "--out", out, *more)
    texts = [text for text, _ in TEXTS]
    words, expected = Vocabulary.fit_count(texts, min_df=6, max_features=5)
    assert_same(stored, words, expected)
    assert stored.labels() == [label for _, label in TEXTS]
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
        "bytes": stored.nbytes,
        "digest": stored.digest,
        "seconds": report["seconds"],
    }
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["counts", "documents.jsonl"]
    again = succeed(capsys, "count", documents, "--out", out, "--force")
    assert "documents" in again


def test_texts_are_never_all_in_memory(tmp_path, documents, capsys, monkeypatch):
    monkeypatch.setattr(files, "BLOCK", 5)
    sizes = []
    plain = Vocabulary.count
    monkeypatch.setattr(
        Vocabulary,
        "count",
        lambda self, texts, **_: (sizes.append(len(texts)), plain(self, texts))[1],
    )
    counted(capsys, documents, "--out", tmp_path / "counts")
    assert sizes == [5] * 5


def test_settings_come_from_a_file_and_flags_win(tmp_path, documents, capsys):
    config = tmp_path / "settings.toml"
    config.write_text("components = 3\nmin_df = 9\nmax_df = 0.5\nlowercase = false\n")
    arguments = (documents, "--out", tmp_path / "counts", "--config", config)
    arguments = (*arguments, "--force")
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
    assert stored.labels() is None


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
    arguments = (tmp_path / "counts.npz", "--out", tmp_path / "out", "--force")
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
    assert stored.labels() == ["a", "b"]
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
    from docsigma.counts import WordFrequencies

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
    assert stored.labels() == documents.labels
