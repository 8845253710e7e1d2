"""Names of groups are made of words that say what documents are about."""

from __future__ import annotations

import numpy as np

from docsigma import DocumentEmbedder
from docsigma.groups.function_words import FUNCTION_WORDS, is_function_word
from docsigma.groups.gaussians import Groups

ASKED = ["what is the {} of the {}", "what is the {} in the {}"]
WISHED = ["can you please {} my {}", "could you {} my {} for me"]
THINGS = ["price", "size", "colour", "weight"], ["door", "lamp", "chair", "table"]
DEEDS = ["cancel", "send", "confirm", "renew"], ["order", "card", "ticket", "visa"]


def test_function_words_come_after_all_others():
    texts = [
        frame.format(first, second)
        for frames, (firsts, seconds) in ((ASKED, THINGS), (WISHED, DEEDS))
        for frame in frames
        for first in firsts
        for second in seconds
    ]
    model = DocumentEmbedder(2, random_state=0).fit(texts).model_
    counts = model.vocabulary_.count(texts).counts
    groups = Groups.fit(model, model.posterior(counts), 2, counts=counts)
    content = {*np.ravel(THINGS), *np.ravel(DEEDS), "please"}
    for group in groups.found:
        assert set(group.words[:3]) <= content
        is_last = [is_function_word(word) for word in group.words]
        assert is_last == sorted(is_last)


def test_no_name_of_a_thing_is_a_function_word():
    # Words that longer lists of stop words have.
    things = {"bill", "call", "fire", "system", "computer", "interest", "name", "move"}
    assert not things & FUNCTION_WORDS
    assert not is_function_word("the bill")
