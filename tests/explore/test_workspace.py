from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from docsigma import (
    DocumentEmbedder,
    GaussianPosterior,
    GaussianPrior,
    TopicClassifier,
    read_documents,
)
from docsigma.counts import Vocabulary
from docsigma.exceptions import InputError
from docsigma.explore.labels import Labels
from docsigma.explore.packing import pack
from docsigma.explore.projection import Projection
from docsigma.explore.words import mark_words
from docsigma.groups.gaussians import Groups
from docsigma.groups.proposals import propose


def unpack(data):
    size = int.from_bytes(data[:4], "little")
    header = json.loads(data[4 : 4 + size])
    kinds = {"Float32Array": "<f4", "Uint8Array": "u1", "Int16Array": "<i2"}
    arrays = {
        name: np.frombuffer(data, kinds[kind], length, 4 + size + start)
        for name, (kind, start, length) in header["arrays"].items()
    }
    return arrays, header


@pytest.mark.parametrize("full", [False, True])
def test_ellipses_are_the_covariances_of_projected_draws(full):
    random = np.random.default_rng(0)
    mean = random.normal(size=(3, 5))
    if full:
        root = random.normal(size=(3, 5, 5))
        q = GaussianPosterior(mean, covariance=root @ root.transpose(0, 2, 1))
    else:
        q = GaussianPosterior(mean, random.gamma(2, size=(3, 5)))
    projection = Projection.principal(mean)
    n = 40_000
    points = projection.points(q.draws(n, 1).reshape(-1, 5)).reshape(n, 3, 2)
    for row, (xx, xy, yy) in enumerate(projection.covariances(q)):
        found = np.cov(points[:, row].T)
        # A covariance of n draws has a relative error of about sqrt(2 / n) = 0.7 %.
        scale = np.sqrt(xx * yy)
        np.testing.assert_allclose(found, [[xx, xy], [xy, yy]], atol=0.05 * scale)


def test_principal_axes_are_those_of_the_singular_value_decomposition():
    mean = np.random.default_rng(0).normal(size=(50, 6)) * [5, 3, 1, 1, 1, 1]
    found = Projection.principal(mean)
    right = np.linalg.svd(mean - mean.mean(axis=0))[2][:2]
    np.testing.assert_allclose(np.abs(found.axes.T @ right.T), np.eye(2), atol=1e-9)


def test_one_dimension_is_drawn_on_a_line():
    q = GaussianPosterior([[1.0], [2.0]], [[0.1], [0.2]])
    projection = Projection.principal(q.mean)
    assert projection.points(q.mean)[:, 1].tolist() == [0, 0]
    np.testing.assert_allclose(projection.covariances(q)[:, 0], [0.1, 0.2])


def test_packed_arrays_come_out_as_they_went_in():
    given = {
        "a": np.arange(3, dtype=np.uint8),
        "b": np.linspace(0, 1, 5, dtype=np.float32),
        "c": np.array([-1, 300], dtype=np.int16),
    }
    found, header = unpack(pack(given, names=["ü", "<b>"]))
    assert header["names"] == ["ü", "<b>"]
    for name, array in given.items():
        np.testing.assert_array_equal(found[name], array)


def test_words_are_known_unknown_or_neither_and_the_text_stays_whole():
    words = Vocabulary.from_texts(["the rain", "the rain"], stop_words="english")
    text = "The RAIN, the snow & a <b>"
    pieces = mark_words(words, text)
    assert "".join(piece for piece, _ in pieces) == text
    assert [piece for piece, kind in pieces if kind == 1] == ["RAIN"]
    assert [piece for piece, kind in pieces if kind == 2] == ["snow"]


def test_points_and_state_have_one_entry_per_document(workspace):
    points, _ = unpack(workspace.points())
    assert {len(array) for array in points.values()} == {len(workspace)}
    workspace.labels.set([0, 1], "weather")
    workspace.labels.set([2], "food")
    state, header = unpack(workspace.state())
    assert header["names"] == ["weather", "food"]
    assert state["label"][:4].tolist() == [0, 0, 1, -1]
    assert "predicted" not in state


def test_learning_from_labels_predicts_the_topics(workspace):
    truth = [("weather", "food", "music")[row % 3] for row in range(len(workspace))]
    workspace.labels.set([0], "weather")
    with pytest.raises(InputError, match="2 labels or more, there are 1"):
        workspace.learn()
    for row in range(6, 24):
        workspace.labels.set([row], truth[row])
    workspace.learn()
    p = workspace.predictions
    predicted = [p.classes[c] for c in p.best]
    right = np.mean([a == b for a, b in zip(predicted[24:], truth[24:], strict=True)])
    assert right > 0.8
    shown = workspace.document(30)
    assert sum(c["probability"] for c in shown["classes"]) == pytest.approx(1, abs=1e-5)
    assert 0 <= shown["entropy"] <= np.log(shown["n_classes"]) + 1e-6
    rows = list(csv.DictReader(io.StringIO(workspace.predictions_csv())))
    assert [row["predicted"] for row in rows] == predicted
    assert rows[6]["label"] == truth[6]


def test_a_given_classifier_counts_pairs_of_words(corpus, make_workspace):
    model, texts = corpus
    labels = [("weather", "food", "music")[row % 3] for row in range(len(texts))]
    topics = TopicClassifier(DocumentEmbedder._of(model, None)).fit(texts, labels)
    assert topics.classifier_.pairs_ is not None
    found = make_workspace(classifier=topics.classifier_).predictions
    np.testing.assert_allclose(found.proba, topics.predict_proba(texts), atol=1e-6)


def test_cells_that_spreadsheets_would_run_are_quoted(workspace):
    workspace.labels.set([0], "=1+1")
    workspace.labels.set([1], "-7")
    rows = list(csv.DictReader(io.StringIO(workspace.predictions_csv())))
    assert [rows[0]["label"], rows[1]["label"]] == ["'=1+1", "-7"]


def test_the_table_has_rows_and_texts(make_workspace, tmp_path):
    workspace = make_workspace(numbers=range(2, 308))
    rows = list(csv.DictReader(io.StringIO(workspace.predictions_csv())))
    assert [row["row"] for row in rows[:3]] == ["2", "3", "4"]
    assert rows[50]["text"] == workspace.texts[50]
    assert workspace.document(4)["number"] == 6
    # A classifier can be trained on it.
    workspace.labels.set([5], "wet")
    file = tmp_path / "predictions.csv"
    file.write_text(workspace.predictions_csv(), "utf-8")
    documents = read_documents(file)
    assert documents.texts[50] == workspace.texts[50]
    assert [row for row, label in enumerate(documents.labels) if label] == [5]
    assert "text" not in workspace.predictions_csv(with_text=False).split("\n")[0]


def test_search_finds_the_topic_and_says_how_sure(workspace):
    found = workspace.search("rain and snow and hail", n=10)
    texts = " ".join(workspace.texts[match["row"]] for match in found)
    assert "bread" not in texts
    assert all(0 <= match["sure"] <= 1 for match in found)
    assert workspace.search("xyzzy") == []


def test_neighbours_are_by_wasserstein_distance(workspace):
    from docsigma.distances import wasserstein2

    shown = workspace.document(20)
    distances = wasserstein2(workspace.posterior[20], workspace.posterior)[0]
    expected = np.sort(np.delete(distances, 20))[:8]
    found = [other["distance"] for other in shown["neighbours"]]
    # Float32 squares of about 1: differences of their roots stay below 1e-3.
    np.testing.assert_allclose(found, expected, atol=2e-3)


def test_a_document_that_fits_no_topic_is_odd_and_an_empty_one_is_not(corpus):
    model, _ = corpus
    random = np.random.default_rng(0)
    mean = np.repeat([[2.0, 0, 0, 0], [-2.0, 0, 0, 0]], 100, axis=0)
    mean = np.vstack([mean + 0.1 * random.normal(size=mean.shape), [[0, 5, 0, 0]] * 2])
    variance = np.full(mean.shape, 0.01)
    variance[-1] = 100.0
    prior = GaussianPrior.isotropic(0.01, 4)
    q = GaussianPosterior(mean, variance, prior=prior)
    distances = Groups.fit(model, q, 2).distances(q)
    assert distances.argmax() == len(q) - 2
    assert distances[-1] < np.median(distances)


def test_proposals_cover_groups_without_a_label_by_certain_documents():
    random = np.random.default_rng(0)
    centres = np.repeat([[9.0, 0], [0, 9.0], [-9.0, 0]], 40, axis=0)
    mean = centres + random.normal(size=centres.shape)
    variance = np.full(mean.shape, 0.1)
    # The middle of a group, but its place is not known.
    mean[79], variance[79] = [0, 9], 50.0
    q = GaussianPosterior(mean, variance, n_tokens=np.arange(120))
    found = propose(q, np.array([0, 81]), n=1)
    assert 40 <= found[0] < 79
    assert 0 not in propose(q, np.empty(0, dtype=int), n=120)
    assert len(propose(q, np.arange(120), n=5)) == 0


def test_labels_are_kept_in_a_file_and_read_again(tmp_path):
    file = tmp_path / "labels.jsonl"
    labels = Labels(["a", "b", "c"], [None, "x", None], file)
    labels.set([0, 2], " ü ")
    again = Labels(["a", "b", "c"], None, file)
    assert again.of == {0: "ü", 1: "x", 2: "ü"}
    again.set([1], None)
    assert Labels(["a", "b", "c"], None, file).of == {0: "ü", 2: "ü"}


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("{", "line 2 of the labels is not a JSON object"),
        ('{"id": "a"}', "line 2 of the labels is not a JSON object"),
        ('{"id": "z", "label": "x"}', "names an unknown document: 'z'"),
        ('{"id": "a", "label": 3}', "has the label 3, not a string"),
        ('{"id": "a", "label": " "}', "from 1 to 200 characters, got 0"),
    ],
)
def test_wrong_labels_change_nothing(line, sentence):
    labels = Labels(["a", "b"])
    with pytest.raises(InputError, match=sentence):
        labels.load('{"id": "b", "label": "x"}\n' + line)
    assert labels.of == {}


def test_documents_of_unknown_words_are_listed_by_themselves(workspace):
    found = workspace.about()["unknown"]
    assert {row["row"] for row in found} <= set(range(6))
    shares = [row["unknown"] for row in found]
    assert shares == sorted(shares, reverse=True)
    for row in found:
        shown = workspace.document(row["row"])
        # Every unknown word of these texts is marked once.
        n_unknown = sum(kind == 2 for _, kind in shown["pieces"])
        assert row["unknown"] == n_unknown / (n_unknown + shown["n_tokens"])
