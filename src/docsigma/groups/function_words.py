"""English function words, which say how a text is put and not what it is about."""

from __future__ import annotations

# Closed classes of words, so that no name of a thing is among them. Contractions are
# as the default tokens leave them: don't is "don".
_ARTICLES = "a an the this that these those each every either neither both all any some"
_PRONOUNS = (
    "i me my mine myself we us our ours ourselves you your yours yourself yourselves "
    "he him his himself she her hers herself it its itself they them their theirs "
    "themselves one ones someone something anyone anything everyone everything nothing"
)
_QUESTIONS = "what which who whom whose when where why how whether"
_VERBS = (
    "be am is are was were been being do does did doing done have has had having can "
    "could may might must shall should will would ll ve re don doesn didn isn aren "
    "wasn weren won wouldn couldn shouldn hasn haven hadn cannot"
)
_PREPOSITIONS = (
    "about above across after against along among around as at before behind below "
    "beneath beside between beyond by down during except for from in inside into like "
    "near of off on onto out outside over past per since through throughout till to "
    "toward towards under until up upon via with within without"
)
_CONNECTIVES = (
    "and or nor but if then else than because although though while so yet not no only "
    "just also too very much many more most less least few such same other others "
    "another there here now again ever never always often once"
)
FUNCTION_WORDS = frozenset(
    " ".join(
        (_ARTICLES, _PRONOUNS, _QUESTIONS, _VERBS, _PREPOSITIONS, _CONNECTIVES)
    ).split()
)


def is_function_word(term: str) -> bool:
    """Whether a word, or each word of an n-gram, is an English function word.

    Examples
    --------
    >>> is_function_word("What"), is_function_word("of the"), is_function_word("bill")
    (True, True, False)
    """
    return all(word in FUNCTION_WORDS for word in term.lower().split())
