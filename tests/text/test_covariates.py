"""Texts with a table of covariates: who wrote them, and when."""

from __future__ import annotations

import numpy as np
import pytest

from docsigma import BayesianSMM, DocumentEmbedder, InputError

OLD, NEW = "plough horse barley meadow", "rocket laser robot orbit"
FILLER = "with then over under near from most some"


@pytest.fixture(scope="module")
def corpus():
    """Texts whose words depend on the year, and not on who wrote them."""
    random = np.random.default_rng(0)
    years = random.integers(1900, 2000, 400)
    writers = random.choice(["Ann", "Bob"], 400)
    texts = []
    for year in years:
        new = random.random(12) < (year - 1900) / 100
        own = [random.choice((NEW if one else OLD).split()) for one in new]
        texts.append(" ".join([*own, *random.choice(FILLER.split(), 12)]))
    return texts, {"year": years.tolist(), "writer": writers.tolist()}


@pytest.fixture(scope="module")
def fitted(corpus):
    texts, table = corpus
    embedder = DocumentEmbedder(3, random_state=0)
    return embedder.fit(texts, covariates=table, formula="writer + spline(year)")


def test_the_prior_of_a_document_depends_on_its_covariates(fitted, corpus):
    texts, table = corpus
    q = fitted.posterior(texts[:9], {k: v[:9] for k, v in table.items()})
    assert q.prior.n_documents == 9
    assert fitted.posterior(texts[:9]).prior.n_documents is None


def test_a_document_without_words_is_embedded_where_its_like_are(fitted):
    then = fitted.posterior(["", ""], {"year": [1900, 1999], "writer": ["Ann", "Ann"]})
    words = fitted.model_.vocabulary_.words
    loadings = dict(zip(words, fitted.model_.components_.T, strict=True))
    change = (loadings["rocket"] - loadings["plough"]) @ (then.mean[1] - then.mean[0])
    assert change > 1


def test_it_is_saved_with_the_model(fitted, corpus, tmp_path):
    texts, table = corpus
    fitted.save(tmp_path / "model")
    loaded = DocumentEmbedder.load(tmp_path / "model")
    assert loaded.design_.names == fitted.design_.names
    ours, theirs = (e.posterior(texts[:5], first(table, 5)) for e in (fitted, loaded))
    np.testing.assert_array_equal(ours.mean, theirs.mean)
    assert ours.prior == theirs.prior


def first(table, n):
    return {name: column[:n] for name, column in table.items()}


def test_bad_input_gets_one_sentence(fitted, corpus):
    texts, table = corpus
    with pytest.raises(InputError, match=r"\(400, 3\), got \(399, 3\)"):
        DocumentEmbedder(3).fit(texts, covariates=first(table, 399))
    with pytest.raises(InputError, match="`formula` needs a table"):
        DocumentEmbedder(3).fit(texts, formula="year")
    with pytest.raises(InputError, match=r"takes no `covariates`"):
        DocumentEmbedder(model=BayesianSMM(3, prior="full")).fit(
            texts, covariates=table
        )
    with pytest.raises(InputError, match="need a column `writer`"):
        fitted.posterior(texts[:2], {"year": [1900, 1901]})
    plain = DocumentEmbedder(3, random_state=0).fit(texts)
    with pytest.raises(InputError, match="the model knows no covariates"):
        plain.posterior(texts[:2], first(table, 2))
