"""Seeds: words that a prior holds on the first dimensions."""

from __future__ import annotations

import numpy as np
import pytest

from docsigma import BayesianSMM, DocumentEmbedder, InputError, load_corpus, load_model
from docsigma.loadings import GaussianLoadings

WEATHER, FOOD = (
    ["sun", "rain", "wind", "hail", "fog"],
    ["bread", "salt", "butter", "cheese", "oil"],
)
FILLER = ["with", "then", "over", "under", "near", "from", "most", "some"]


@pytest.fixture(scope="module")
def texts():
    random = np.random.default_rng(0)
    found = []
    for row in range(400):
        own = WEATHER if row % 2 else FOOD
        words = [*random.choice(own, 6), *random.choice(FILLER, 6)]
        found.append(" ".join(words))
    return found


def loadings_of(model):
    unigram = np.exp(model.training_log_unigram_)
    centred = model.components_ - (model.components_ @ unigram)[:, None]
    return dict(zip(model.vocabulary_.words, centred.T, strict=True))


@pytest.mark.parametrize("names", [("weather", "food"), ("food", "weather")])
def test_seeds_choose_their_dimension_and_attract_their_like(texts, names):
    words = {"weather": ["rain", "sun"], "food": ["bread"]}
    embedder = DocumentEmbedder(3, seeds={n: words[n] for n in names}, random_state=0)
    loadings = loadings_of(embedder.fit(texts).model_)
    for dimension, name in enumerate(names):
        own, other = (WEATHER, FOOD) if name == "weather" else (FOOD, WEATHER)
        inside = [loadings[word][dimension] for word in own]
        outside = [loadings[word][dimension] for word in other]
        # Also those words that are no seeds.
        assert min(inside) > max(outside)


def test_a_stronger_prior_comes_nearer_to_its_mean(texts):
    """The prior mean is the root of the precision, here of two unrelated words."""
    seeds, away = {"odd": ["rain", "cheese"]}, []
    for strength in (1.0, 100.0, 1e5):
        embedder = DocumentEmbedder(
            2, seeds=seeds, seed_strength=strength, random_state=0
        )
        model = embedder.fit(texts).model_
        rows = [model.vocabulary_.words.index(word) for word in seeds["odd"]]
        away.append(np.abs(model.components_[0, rows] - np.sqrt(10)).max())
    assert away[0] > away[1] > away[2]
    assert away[2] < 0.3


def test_a_prior_of_no_strength_changes_nothing():
    counts = load_corpus("synthetic", n_train=100).train.counts
    settings = {"max_iter": 5, "random_state": 0, "tol": 0}
    plain = BayesianSMM(3, loadings=GaussianLoadings(), **settings).fit(counts)
    none = GaussianLoadings(seeds=[], seed_strength=1.0)
    same = BayesianSMM(3, loadings=none, **settings).fit(counts)
    np.testing.assert_array_equal(plain.components_, same.components_)


def test_seeds_are_saved_and_resumed(texts, tmp_path):
    embedder = DocumentEmbedder(3, seeds={"weather": ["rain"]}, random_state=0)
    embedder.fit(texts).save(tmp_path / "model")
    loaded = DocumentEmbedder.load(tmp_path / "model")
    assert loaded.seeds == embedder.seeds
    assert load_model(tmp_path / "model").parts_.loadings.seeds == [
        [embedder.model_.vocabulary_.words.index("rain")]
    ]
    counts = embedder.learn_words(texts)[1]
    settings = embedder.model_.get_params(deep=False)
    settings |= {"max_iter": 8, "tol": 0}
    whole = BayesianSMM(**settings).fit(counts)
    file = tmp_path / "checkpoint.safetensors"
    stop = {"callback": lambda now: now.epoch == 4, "checkpoint": file}
    BayesianSMM(**settings).fit(counts, **stop)
    resumed = BayesianSMM(**settings).fit(counts, checkpoint=file, resume=True)
    np.testing.assert_array_equal(resumed.components_, whole.components_)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"seeds": {"a": ["zebra"]}},
            "the seed 'zebra' of 'a' is not among the 18",
        ),
        ({"seeds": {w: [w] for w in FOOD}}, "5 lists of seeds and only 2 components"),
        (
            {"seeds": {"a": ["rain"]}, "model": BayesianSMM(l1=1.0)},
            "`seeds` need a model with Gaussian loadings",
        ),
    ],
)
def test_bad_seeds_get_one_sentence(texts, options, sentence):
    with pytest.raises(InputError, match=sentence):
        DocumentEmbedder(2, **options).fit(texts)


def test_seeds_without_names_are_refused():
    embedder = DocumentEmbedder(2, seeds=[["rain"], ["bread"]], random_state=0)
    with pytest.raises(InputError, match="must map a name to each list.*got list"):
        embedder.fit(["sun and rain", "bread and salt"] * 10)
