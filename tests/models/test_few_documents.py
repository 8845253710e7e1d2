"""A dozen short tickets: the default learns something, or says that it does not."""

from __future__ import annotations

import pytest
from sklearn.feature_extraction.text import CountVectorizer

from docsigma import BayesianSMM

TICKETS = [
    "the printer does not print",
    "printer out of paper",
    "paper stuck in the printer",
    "cannot print the invoice, printer offline",
    "password reset please",
    "cannot log in, password wrong",
    "my password expired, cannot log in",
    "log in fails after password reset",
    "the laptop screen is black",
    "screen flickers on my laptop",
    "laptop does not start",
    "broken laptop screen",
]
HELD_OUT = [
    "printer prints black pages",
    "please reset my password",
    "screen of the laptop broken",
    "printer has no toner",
    "I forgot my password",
    "the screen stays black",
]


@pytest.fixture(scope="module")
def counts():
    vectorizer = CountVectorizer().fit(TICKETS)
    return vectorizer.transform(TICKETS), vectorizer.transform(HELD_OUT)


@pytest.mark.parametrize("k", [2, 5, 10])
def test_the_default_beats_the_unigram_on_held_out_tickets(counts, k):
    train, held_out = counts
    found = BayesianSMM(k, random_state=0).fit(train).perplexity(held_out)
    assert found.corpus < 0.99 * found.unigram_corpus


def test_a_model_that_learned_nothing_says_so(counts):
    with pytest.warns(UserWarning, match="nothing was learned beyond how frequent"):
        BayesianSMM(5, l1=3.0, random_state=0).fit(counts[0])
