"""The six corpora on which quality is measured: raw texts with labels."""

from __future__ import annotations

import functools
import json
import lzma
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from docsigma import load_corpus

# Smallest first; a name with a slash is a folder of $DOCSIGMA_DATA.
CORPORA = (
    "switchboard",
    "docstrings",
    "short-texts/searchsnippets",
    "short-texts/stackoverflow",
    "open-intents/clinc150",
    "20newsgroups",
)
CUTS = (10, 25, 50)


@dataclass(frozen=True)
class Corpus:
    """Training and test texts, with their labels."""

    name: str
    texts: list[str]
    labels: np.ndarray
    test_texts: list[str]
    test_labels: np.ndarray

    def cuts(self) -> list[int]:
        """Return the lengths of test texts in words, 0 for whole ones.

        Cuts are shorter than twice the mean length of the training texts.
        """
        mean = np.mean([len(text.split()) for text in self.texts])
        return [0, *(n for n in CUTS if n < 2 * mean)]

    def test(self, n_words: int) -> list[str]:
        """Return the test texts, cut to their first `n_words` words.

        Everything is cut from the first word on, telephone calls too. That is what the
        goals for Switchboard are about: plain EM at K 100 has 2.47 nats at 10 words and
        0.88 at 50 from word 0 on, and 3.01 and 1.80 from word 200 on.
        """
        return cut(self.test_texts, [n_words] * len(self.test_texts))


@functools.cache
def load(name: str) -> Corpus:
    """Load a corpus; test texts of labels that training texts lack are left out."""
    data = Path(os.environ["DOCSIGMA_DATA"])
    # Docstrings are those of the packages here, unless they were exported.
    if name == "docstrings" and not (data / name).exists():
        corpus = load_corpus(name)
        (train, labels), (test, truth) = corpus.train.labelled(), corpus.test.labelled()
        texts, test_texts = list(train.texts), list(test.texts)
    else:
        texts, labels = _read(data / name / "train.jsonl.xz")
        test_texts, truth = _read(data / name / "test.jsonl.xz")
    known = np.flatnonzero(np.isin(truth, np.unique(labels)))
    return Corpus(
        name,
        texts,
        np.array(labels),
        [test_texts[row] for row in known],
        np.array(truth)[known],
    )


def cut(texts: list[str], lengths: list[int]) -> list[str]:
    """Return the first words of texts, as many as `lengths` says; 0 means all."""
    return [
        " ".join(text.split()[:n]) if n else text
        for text, n in zip(texts, lengths, strict=True)
    ]


def draw_labels(labels: np.ndarray, per_class: int, draw: int) -> np.ndarray:
    """Return the labels of a few random documents of each class, None for the rest."""
    random = np.random.default_rng(draw)
    few = np.full(len(labels), None, dtype=object)
    for label in np.unique(labels):
        rows = random.permutation(np.flatnonzero(labels == label))[:per_class]
        few[rows] = label
    return few


def _read(path: Path) -> tuple[list[str], list[str]]:
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [row["text"] for row in rows], [row["label"] for row in rows]
