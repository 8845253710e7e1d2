from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from docsigma.exceptions import InputError
from docsigma.metrics.perplexity import (
    maximum_likelihood,
    perplexity,
    unigram_likelihood,
)

COUNTS = sp.csr_matrix(np.array([[3.0, 1.0, 0.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]]))
UNIGRAM = np.log([0.5, 0.25, 0.25])


def result(evidence=None):
    evidence = unigram_likelihood(COUNTS, UNIGRAM) if evidence is None else evidence
    return perplexity(COUNTS, evidence, UNIGRAM, estimator="exact", n_draws=0)


def test_unigram_evidence_gives_the_unigram_perplexity():
    got = result()
    log_corpus = -(3 * np.log(0.5) + np.log(0.25) + 2 * np.log(0.25)) / 6
    assert got.corpus == pytest.approx(np.exp(log_corpus))
    log_document = -((3 * np.log(0.5) + np.log(0.25)) / 4 + np.log(0.25)) / 2
    assert got.per_document == pytest.approx(np.exp(log_document))
    assert got.unigram_corpus == pytest.approx(got.corpus)
    assert got.unigram_per_document == pytest.approx(got.per_document)


def test_documents_without_a_word_are_counted_apart():
    got = result()
    assert (got.n_documents, got.n_tokens, got.n_empty) == (2, 6, 1)


def test_maximum_likelihood_is_each_documents_own_distribution():
    expected = [3 * np.log(0.75) + np.log(0.25), 0.0, 0.0]
    np.testing.assert_allclose(maximum_likelihood(COUNTS), expected)
    assert result().maximum_likelihood_corpus < result().unigram_corpus


def test_standard_error_is_that_of_resampled_documents():
    # Against the bootstrap: 2000 resamples know it to 1.6 %; tolerance 10 %.
    random = np.random.default_rng(0)
    counts = sp.csr_matrix(random.poisson(2.0, (500, 10)).astype(float))
    tokens = np.asarray(counts.sum(axis=1)).ravel()
    evidence = -tokens * random.normal(2.0, 0.3, 500)
    unigram = np.log(np.full(10, 0.1))
    got = perplexity(counts, evidence, unigram, estimator="exact", n_draws=0)
    rows = random.integers(0, 500, (2000, 500))
    resampled = np.exp(-evidence[rows].sum(1) / tokens[rows].sum(1))
    assert got.standard_error == pytest.approx(resampled.std(), rel=0.1)


def test_one_document_has_no_spread():
    one = COUNTS[:1]
    evidence = unigram_likelihood(one, UNIGRAM)
    got = perplexity(one, evidence, UNIGRAM, estimator="exact", n_draws=0)
    assert got.standard_error == pytest.approx(0.0, abs=1e-12)


def test_no_known_word_at_all_is_refused():
    with pytest.raises(InputError, match="none of the 1 documents has one"):
        perplexity(COUNTS[2:], np.zeros(1), UNIGRAM, estimator="exact", n_draws=0)


def test_dictionary_is_json_safe():
    import json

    assert "log_evidence" not in json.loads(json.dumps(result().to_dict()))


@pytest.mark.data
def test_maximum_likelihood_line_of_the_paper(data_folder):
    # The paper's table prints 90 / 42 for the 2000-word test set.
    from docsigma import load_corpus

    test = load_corpus("20newsgroups-2k").test
    values = maximum_likelihood(test.counts)
    tokens = np.asarray(test.counts.sum(axis=1)).ravel()
    assert np.exp(-values.sum() / tokens.sum()) == pytest.approx(90, abs=1)
    assert np.exp(-(values / tokens).mean()) == pytest.approx(42, abs=1)
