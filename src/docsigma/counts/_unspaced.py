"""Detecting texts in scripts without spaces between words."""

from __future__ import annotations

import re
import warnings

from docsigma.counts._tokenizers import TOKENIZERS

# Han and kana, with the marks used in words.
_EAST = "\u3005\u3007\u3041-\u309f\u30a0-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_EAST += "\uf900-\ufaff\U00020000-\U0003ffff"
_KANA = re.compile("[\u3041-\u3096\u30a1-\u30fa]")
_THAI = re.compile("[\u0e00-\u0e7f]")
# Thai, Lao, Myanmar and Khmer, vowel signs included.
_SOUTH = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_RUNS = re.compile(f"([{_EAST}]+)|([{_SOUTH}]+)")


class UnspacedTexts:
    """Counts the texts that are written without spaces between their words.

    Examples
    --------
    >>> seen = UnspacedTexts()
    >>> for text in ["今天天气非常好我们去公园", "今天 天气 非常 好", "fine weather"]:
    ...     seen.add(text)
    >>> seen.n_texts, seen.found
    (3, {'Chinese': 1})
    """

    def __init__(self) -> None:
        self.n_texts = 0
        self.found: dict[str, int] = {}

    def add(self, text: str) -> None:
        """Classify one more text."""
        self.n_texts += 1
        if text.isascii():
            return
        east: list[int] = []
        south: list[int] = []
        for match in _RUNS.finditer(text):
            (east if match[1] else south).append(len(match[0]))
        letters = sum(map(str.isalpha, text))
        # Longer runs are not words: on average, words of Chinese and Japanese have two
        # or three characters and those of Thai five; clauses have twice as many.
        if 2 * sum(east) > letters and sum(east) > 4.5 * len(east):
            language = "Japanese" if _KANA.search(text) else "Chinese"
        elif 2 * sum(south) > letters and sum(south) > 9 * len(south):
            language = "Thai" if _THAI.search(text) else "Lao, Khmer or Burmese"
        else:
            return
        self.found[language] = self.found.get(language, 0) + 1

    def warn(self) -> None:
        """Warn if at least a tenth of the texts have no spaces."""
        total = sum(self.found.values())
        if not total or total < 0.1 * self.n_texts:
            return
        language = max(self.found, key=self.found.__getitem__)
        advice = "pass a function that splits them into words as `tokenizer` in Python"
        for name, (spoken, *_) in TOKENIZERS.items():
            if spoken == language:
                advice = f"set the tokenizer to {name} (pip install {name})"
        warnings.warn(
            f"{total} of {self.n_texts} texts have no spaces between their words "
            f"({language}), so whole sentences count as words and little can be "
            f"learned: {advice}",
            stacklevel=2,
        )
