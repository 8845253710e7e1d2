from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from docsigma import DocumentEmbedder, InputError, TopicClassifier
from docsigma.counts import Vocabulary
from docsigma.workers import (
    ClassifyBatches,
    CountBatches,
    EmbedBatches,
    FrequencyBatches,
    write_counts,
)
from docsigma.workers.text_batches import granted_threads

TEXTS = ["sun and rain", "rain and wind", "bread and salt", "salt and butter", None, ""]
LABELS = ["weather", "weather", "food", "food", "food", "weather"]
TABLE = pa.table({"name": list("abcdef"), "text": TEXTS, "kind": LABELS})
PLAIN = [text or "" for text in TEXTS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    embedder = DocumentEmbedder(2, min_df=1, random_state=0).fit(PLAIN)
    embedder.save(folder / "model")
    TopicClassifier(embedder=embedder).fit(PLAIN, LABELS).save(folder / "clf")
    return folder


def batches(table, size=2):
    return table.to_batches(max_chunksize=size)


def test_embeddings_are_the_librarys(folder):
    embed = pickle.loads(pickle.dumps(EmbedBatches(folder / "model", device="cpu")))
    assert len(pickle.dumps(embed)) < 1000
    found = pa.Table.from_batches(embed.each(batches(TABLE)))
    assert found.schema == embed.schema(TABLE.schema)
    assert found.column_names[:2] == ["name", "kind"]
    assert found["name"].to_pylist() == list("abcdef")
    q = DocumentEmbedder.load(folder / "model").posterior(PLAIN)
    for name in ("mean", "variance", "total_variance", "n_tokens"):
        expected = getattr(q, name)
        np.testing.assert_allclose(found[name].to_pylist(), expected, atol=1e-4)


def test_predictions_are_the_librarys(folder):
    classify = pickle.loads(
        pickle.dumps(ClassifyBatches(folder / "clf", keep=["name"], probabilities=True))
    )
    found = pa.Table.from_batches(classify.each(batches(TABLE)))
    assert found.schema == classify.schema(TABLE.schema)
    known = TopicClassifier.load(folder / "clf")
    proba = known.predict_proba(PLAIN)
    for number, name in enumerate(known.classes_):
        column = found[f"probability[{name}]"].to_numpy()
        np.testing.assert_allclose(column, proba[:, number], atol=1e-4)
    assert found["predicted"].to_pylist() == list(known.predict(PLAIN))


def test_pairs_of_words_are_counted_too(folder, tmp_path):
    embedder = DocumentEmbedder.load(folder / "model")
    texts = [*PLAIN, *(f"{text} and more" for text in PLAIN)]
    clf = TopicClassifier(embedder).fit(texts, LABELS * 2)
    assert clf.classifier_.pairs_ is not None
    clf.save(tmp_path / "clf")
    (found,) = ClassifyBatches(tmp_path / "clf", probabilities=True).each(
        batches(TABLE, 6)
    )
    first = found[f"probability[{clf.classes_[0]}]"].to_numpy()
    np.testing.assert_allclose(first, clf.predict_proba(PLAIN)[:, 0], rtol=1e-5)


def test_a_file_becomes_a_file_of_its_name(folder, tmp_path):
    pq.write_table(TABLE, tmp_path / "part-7.parquet")
    (tmp_path / "out").mkdir()
    embed = EmbedBatches(folder / "model", device="cpu")
    done = embed.file(tmp_path / "part-7.parquet", tmp_path / "out")
    assert done == str(tmp_path / "out" / "part-7.parquet")
    assert pq.read_table(done) == embed(TABLE)
    before = (tmp_path / "out" / "part-7.parquet").stat()
    assert embed.file(tmp_path / "part-7.parquet", tmp_path / "out") == done
    assert (tmp_path / "out" / "part-7.parquet").stat() == before


def test_raw_texts_become_counts(tmp_path):
    job = pickle.loads(pickle.dumps(FrequencyBatches(min_df=2)))
    tables = [job(batch) for batch in batches(TABLE)]
    vocabulary = job.vocabulary(tables)
    assert vocabulary == Vocabulary.from_texts(PLAIN, min_df=2)
    # An engine may add rows up first.
    summed = (
        pa.concat_tables(tables)
        .group_by("word")
        .aggregate([("documents", "sum"), ("tokens", "sum")])
    )
    summed = summed.rename_columns(["word", "documents", "tokens"])
    assert job.vocabulary([summed]) == vocabulary
    count = pickle.loads(pickle.dumps(CountBatches(vocabulary)))
    counted = pa.Table.from_batches(count.each(batches(TABLE)))
    columns = {"id_column": "name", "label_column": "kind"}
    for number, parts in enumerate(([counted], batches(counted, 4))):
        folder = tmp_path / str(number)
        stored = write_counts(parts, folder, vocabulary, **columns)
        expected = vocabulary.count(PLAIN)
        np.testing.assert_array_equal(stored[:].toarray(), expected.counts.toarray())
        np.testing.assert_array_equal(stored.n_unknown, expected.n_unknown)
        assert stored.ids() == list("abcdef")
        assert stored.labels() == LABELS
        assert stored.vocabulary == vocabulary


def test_wrong_input_is_told_in_one_sentence(folder):
    with pytest.raises(
        InputError, match=r"no column 'body' of texts.* name, text, kind"
    ):
        EmbedBatches(folder / "model", "body")(TABLE)
    with pytest.raises(InputError, match="limits are not valid"):
        FrequencyBatches(min_df="many")


def test_threads_are_those_that_were_granted(folder, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert granted_threads() == 3
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert granted_threads() >= 1
    before = torch.get_num_threads()
    try:
        EmbedBatches(folder / "model", threads=1)(TABLE)
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)
