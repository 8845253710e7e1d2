"""Marks the words of a text that a model knows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from docsigma.counts._analysis import build_analyzer

if TYPE_CHECKING:
    from docsigma.counts import Vocabulary

# Kinds of pieces.
PLAIN, KNOWN, UNKNOWN = 0, 1, 2


def mark_words(vocabulary: Vocabulary, text: str) -> list[tuple[str, int]]:
    """Divide a text into pieces: known words, unknown words, and the rest.

    Successive known words are one piece; stop words and words that are too short are
    plain. With an analyzer of characters or a tokenizer, the text is one plain piece.

    Examples
    --------
    >>> from docsigma.counts import Vocabulary
    >>> mark_words(Vocabulary.from_words(["rain"]), "Rain, snow.")
    [('Rain, ', 1), ('snow', 2), ('.', 0)]
    """
    settings = vocabulary.settings
    if settings["analyzer"] != "word" or vocabulary.tokenizer is not None:
        return [(text, PLAIN)]
    known = vocabulary._columns
    analyze = build_analyzer({**settings, "ngram_range": (1, 1)})
    # In n-grams, a word is known if some n-gram has it.
    if settings["ngram_range"] != (1, 1):
        known = {part: 0 for words in known for part in words.split(" ")}
    pieces: list[tuple[str, int]] = []
    end = 0

    def add(piece: str, kind: int) -> None:
        # Spaces and punctuation belong to the known word before them.
        if kind == PLAIN and not re.search(r"\w", piece):
            kind = KNOWN if pieces and pieces[-1][1] == KNOWN else PLAIN
        if kind == KNOWN and pieces and pieces[-1][1] == KNOWN:
            piece = pieces.pop()[0] + piece
        pieces.append((piece, kind))

    for match in re.finditer(settings["token_pattern"], text):
        tokens = analyze(match[0])
        if not tokens:
            continue
        if match.start() > end:
            add(text[end : match.start()], PLAIN)
        is_known = any(token in known for token in tokens)
        add(match[0], KNOWN if is_known else UNKNOWN)
        end = match.end()
    if end < len(text):
        add(text[end:], PLAIN)
    return pieces
