from __future__ import annotations

import json

import numpy as np
import pytest

from docsigma import DocumentEmbedder, DocumentIndex, GaussianIndex, InputError
from docsigma.classifiers import CountsClassifier
from running import refuse, succeed

WEATHER = ["sun rain wind cloud", "storm rain wind snow", "cloud snow sun storm"]
FOOD = ["bread salt butter milk", "cheese milk salt soup", "soup bread butter cheese"]
TEXTS = (WEATHER + FOOD) * 8
LABELS = (["weather"] * 3 + ["food"] * 3) * 8


@pytest.fixture(scope="module")
def model():
    return DocumentEmbedder(2, random_state=0).fit(TEXTS).model_


@pytest.fixture(scope="module", params=["evidence", "hybrid"])
def classifier(model, request):
    counts = model.vocabulary_.count(TEXTS).counts
    return CountsClassifier(model, request.param).fit(counts, LABELS)


def test_texts_are_found_with_the_words_that_made_the_match(model, tmp_path):
    index = DocumentIndex(model)
    index.add(WEATHER + FOOD, labels=LABELS[:6])
    (matches,) = index.search(["rain and storm and bread"], n=3)
    assert {match.label for match in matches} == {"weather"}
    for match in matches:
        # Words of both, and "storm" is as rare as "rain".
        words = {word for word, _ in match.words}
        assert words == {"rain", "storm"} & set(match.excerpt.split())
        assert sum(share for _, share in match.words) == pytest.approx(1)
        assert match.excerpt in WEATHER
        assert match.probability is None
    index.save(tmp_path / "index")
    assert DocumentIndex.load(tmp_path / "index").search(
        ["rain and storm and bread"], n=3
    ) == [matches]


def test_a_classifier_gives_probabilities(classifier, tmp_path):
    index = DocumentIndex(classifier)
    index.add(TEXTS, labels=LABELS)
    index.index.calibrate()
    index.save(tmp_path / "index")
    loaded = DocumentIndex.load(tmp_path / "index")
    (matches,) = loaded.search(["rain storm wind"], n=5)
    assert {match.label for match in matches} == {"weather"}
    assert all(match.probability > 0.5 for match in matches)
    assert index.search(["rain storm wind"], n=5) == [matches]


def test_a_text_without_known_words_finds_nothing(model):
    index = DocumentIndex(model)
    index.add(TEXTS)
    assert index.search(["xyzzy", ""]) == [[], []]


def test_every_document_finds_itself_or_its_equal_first(model, classifier):
    texts = list(
        dict.fromkeys(" ".join(text.split()[:n]) for text in TEXTS for n in (1, 2, 4))
    )
    for embedder in (model, classifier):
        for metric in ("joint", "words", "cosine", "wasserstein2"):
            index = DocumentIndex(embedder, metric=metric)
            index.add(texts, texts)
            for text, matches in zip(texts, index.search(texts, n=1), strict=True):
                assert sorted(matches[0].id.split()) == sorted(text.split())


def test_removed_documents_are_not_found(model):
    index = DocumentIndex(model)
    index.add(WEATHER, ["a", "b", "c"])
    with pytest.raises(InputError, match="`ids` must be a list of ids"):
        index.remove("b")
    with pytest.raises(InputError, match="`labels` must be a list of labels"):
        index.search(WEATHER, labels="weather")
    index.remove(["b"])
    index.add([])
    assert len(index) == 2
    (matches,) = index.search([WEATHER[1]])
    assert {match.id for match in matches} == {"a", "c"}


def test_an_index_without_a_model_takes_no_texts(model, tmp_path):
    index = GaussianIndex()
    index.add(model.posterior(model.vocabulary_.count(TEXTS).counts))
    index.save(tmp_path / "index")
    with pytest.raises(InputError, match="index exists already: pass `overwrite=True`"):
        DocumentIndex(model).save(tmp_path / "index")
    with pytest.raises(InputError, match="has no model"):
        DocumentIndex.load(tmp_path / "index")


@pytest.fixture(scope="module")
def folders(tmp_path_factory, model, classifier):
    root = tmp_path_factory.mktemp("folders")
    model.save(root / "model")
    classifier.save(root / "classifier")
    lines = [
        json.dumps({"id": f"d{i}", "text": text, "label": label})
        for i, (text, label) in enumerate(zip(TEXTS, LABELS, strict=True))
    ]
    (root / "docs.jsonl").write_text("\n".join(lines))
    return root


def test_commands_index_and_search(folders, tmp_path, capsys):
    pytest.importorskip("typer")
    out = tmp_path / "index"
    arguments = ["index", folders / "model", folders / "docs.jsonl", "--out", out]
    report = json.loads(succeed(capsys, *arguments, "--json"))
    assert report["n_documents"] == len(TEXTS)
    assert report["probabilities"] is False
    found = json.loads(
        succeed(capsys, "search", out, "rain and wind", "-n", "3", "--json")
    )
    assert [match["label"] for match in found["matches"]] == ["weather"] * 3
    query = tmp_path / "query.txt"
    query.write_text("salt and soup")
    only = json.loads(
        succeed(capsys, "search", out, query, "--label", "weather", "--json")
    )
    assert {match["label"] for match in only["matches"]} == {"weather"}
    assert "nothing is found" in succeed(capsys, "search", out, "xyzzy")
    assert "no document of the index" in succeed(
        capsys, "search", out, "rain", "--label", "nosuch"
    )
    for path in ("nosuch/rain.txt", "rain.txt"):
        assert f"there is no file {path}" in refuse(capsys, "search", out, path)
    # A second time only by force, and with a classifier.
    assert "exists already" in refuse(capsys, *arguments)
    with_classifier = [*arguments, "--classifier", folders / "classifier", "--force"]
    assert (
        json.loads(succeed(capsys, *with_classifier, "--json"))["probabilities"] is True
    )
    shown = succeed(capsys, "search", out, "rain and wind", "-n", "3")
    assert "%" in shown
    assert "rain" in shown


def test_a_classifier_of_another_model_is_refused(folders, tmp_path, capsys):
    pytest.importorskip("typer")
    other = DocumentEmbedder(2, random_state=5).fit(TEXTS).model_
    other.save(tmp_path / "other")
    out = tmp_path / "index"
    error = refuse(
        capsys,
        *("index", tmp_path / "other", folders / "docs.jsonl", "--out", out),
        *("--classifier", folders / "classifier"),
    )
    assert "of another model" in error
    assert not out.exists()


def test_a_query_of_a_known_class_finds_that_class_surest_first(model):
    counts = model.vocabulary_.count(TEXTS).counts
    labels = [None if i % 12 == 3 else label for i, label in enumerate(LABELS)]
    known = CountsClassifier(model, "hybrid", missing_label=None).fit(counts, labels)
    index = DocumentIndex(known)
    index.add(TEXTS, labels=labels)
    (matches,) = index.search(["rain and storm"], n=24)
    assert {match.label for match in matches} == {"weather"}
    chances = [match.probability for match in matches]
    assert chances == sorted(chances, reverse=True)
    assert chances[0] > 0.5


def test_a_text_like_nothing_in_the_index_has_a_small_p_value(model, tmp_path):
    random = np.random.default_rng(0)
    words = [text.split() for text in WEATHER + FOOD]
    texts = [" ".join(random.permutation(words[i % 6])) for i in range(240)]
    index = DocumentIndex(model)
    index.add(texts)
    with pytest.raises(InputError, match="p-values need `learn_typical`"):
        index.p_values(texts)
    with pytest.raises(InputError, match="there are 1 `texts` but 240 documents"):
        index.learn_typical(texts[:1])
    index.learn_typical(texts).save(tmp_path / "index")
    loaded = DocumentIndex.load(tmp_path / "index")
    strange = ["piano of an unknown composer", "", "sun drum violin opera"]
    found = loaded.p_values(strange)
    assert (found <= 0.05).tolist() == [True, False, True]
    # Every word is in other documents of the same kind.
    assert (loaded.p_values(texts[:20]) > 0.05).all()
    np.testing.assert_array_equal(found, index.p_values(strange))


def test_p_values_hold_their_level_for_texts_that_nothing_has_seen():
    # Words as frequent as in texts; short documents of one kind.
    random = np.random.default_rng(0)
    chances = 1 / np.arange(1, 2001)
    words = np.array([f"word{rank}" for rank in range(2000)])

    def draw(n):
        sizes = random.integers(4, 30, n)
        return [
            " ".join(random.choice(words, size, p=chances / chances.sum()))
            for size in sizes
        ]

    known, new = draw(400), draw(400)
    index = DocumentIndex(DocumentEmbedder(2, random_state=0).fit(known).model_)
    index.add(known)
    index.learn_typical(known)
    p_values = index.p_values(new)
    for level in (0.05, 0.2, 0.5):
        # Five standard errors: of a share of 400, and of the 99 compared per length.
        error = np.sqrt(level * (1 - level) * (1 / 400 + 1 / 99))
        assert (p_values <= level).mean() < level + 5 * error
    assert (index.p_values(["piano of an unknown composer"]) <= 0.05).all()
