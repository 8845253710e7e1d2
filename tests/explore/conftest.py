from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from docsigma import DocumentEmbedder
from docsigma.explore.workspace import Workspace

WEATHER = [
    "sun",
    "rain",
    "wind",
    "cloud",
    "storm",
    "snow",
    "hail",
    "frost",
    "fog",
    "thaw",
]
FOOD = [
    "bread",
    "salt",
    "butter",
    "milk",
    "cheese",
    "soup",
    "rice",
    "beans",
    "oil",
    "egg",
]
MUSIC = [
    "song",
    "piano",
    "drum",
    "choir",
    "tune",
    "violin",
    "opera",
    "band",
    "chord",
    "flute",
]
# What a page that trusts its documents would run or show wrongly.
HOSTILE = [
    "<script>window.hacked = 1</script> sun rain wind",
    '"><img src=x onerror="window.hacked = 1"> bread salt butter',
    "</script><script>window.hacked = 1</script> song piano drum",
    "<style>body { display: none }</style> cloud storm snow",
    "javascript:window.hacked=1 <a href='javascript:window.hacked=1'>milk</a> cheese",
    "{{constructor.constructor('window.hacked=1')()}} ${window.hacked=1} opera band",
]


def draw_texts(n_documents, seed=0):
    random = np.random.default_rng(seed)
    topics = (WEATHER, FOOD, MUSIC)
    found = []
    for row in range(n_documents):
        words = random.choice(topics[row % 3], random.integers(3, 20))
        found.append(" ".join(words))
    return found


@pytest.fixture(scope="session")
def corpus():
    texts = HOSTILE + draw_texts(300)
    model = DocumentEmbedder(4, random_state=0).fit(texts).model_
    return model, texts


@pytest.fixture
def make_workspace(corpus):
    model, texts = corpus
    counted = model.vocabulary_.count(texts)
    posterior, n_unknown = model.posterior(counted.counts), counted.n_unknown

    def make(**options):
        ids = [f"d{row}" for row in range(len(texts))]
        ids[3] = "<b>d3</b>"
        options = {"n_topics": 3, "n_unknown": n_unknown, **options}
        return Workspace(model, posterior, ids, texts, **options)

    return make


@pytest.fixture
def workspace(make_workspace):
    return make_workspace()
