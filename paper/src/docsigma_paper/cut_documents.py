r"""When uncertainty pays: the same documents, cut shorter and shorter.

    python -m docsigma_paper.cut_documents --corpus switchboard --start 200 \
        --json benchmarks/results/cut-switchboard.json --plot docs/images/cut.png

A model and three classifiers are trained on whole training documents. Test documents
long enough for the largest cut are then cut to 10, 25, 50, 100 and 200 words.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docsigma.classifiers import CountsClassifier
from docsigma.corpora import load_corpus
from docsigma.counts import Vocabulary
from docsigma.exceptions import InputError
from docsigma.metrics.evaluation import evaluate
from docsigma.models import BayesianSMM
from docsigma_paper.corpora import register

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from docsigma.corpora import Documents


LENGTHS = (10, 25, 50, 100, 200)
KINDS = ("glc", "glcu", "lr")


@dataclass(frozen=True)
class Cut:
    """Scores of one kind of classifier on documents cut to `n_words` words.

    Accuracy is in per cent, cross-entropy in nats; `ece` is the expected calibration
    error.
    """

    n_words: int
    kind: str
    accuracy: float
    cross_entropy: float
    ece: float
    n_documents: int


def cut(documents: Documents, start: int, n_words: int) -> Documents:
    """Keep words `start` to ``start + n_words`` of each text.

    Examples
    --------
    >>> from docsigma import Documents
    >>> cut(Documents(["a"], ["one two three four"]), 1, 2).texts
    ['two three']
    """
    if documents.texts is None:
        raise InputError(f"{documents.source} holds counts, and only texts can be cut")
    texts = [" ".join(t.split()[start : start + n_words]) for t in documents.texts]
    return replace(documents, texts=texts)


def run(
    corpus: str = "docstrings",
    *,
    start: int = 0,
    lengths: Sequence[int] = LENGTHS,
    n_components: int = 100,
    l1: float = 0.1,
    max_iter: int = 300,
    verbose: bool = False,
) -> list[Cut]:
    """Train on whole documents, evaluate on cut ones.

    Parameters
    ----------
    corpus : str, default="docstrings"
        A named corpus of texts with labels.
    start : int, default=0
        Word at which a cut begins.
    lengths : sequence of int
        Words to cut to.
    n_components, l1, max_iter
        Of the model.
    verbose : bool, default=False
        Whether a progress bar is shown.
    """
    loaded = load_corpus(corpus)
    train, test = loaded.train, loaded.test
    if train.texts is None or test.texts is None:
        raise InputError(f"{corpus} has no texts to cut")
    train, train_labels = train.labelled()
    assert train.texts is not None
    words, counted = Vocabulary.fit_count(train.texts, min_df=2)
    model = BayesianSMM(
        n_components,
        l1=l1,
        solver="paper",
        max_iter=max_iter,
        learning_rate=0.02,
        random_state=0,
        verbose=verbose,
    )
    model.fit(counted.counts)
    classifiers = {
        kind: CountsClassifier(model, kind).fit(counted.counts, train_labels)
        for kind in KINDS
    }
    needed = start + max(lengths)
    long = [i for i, text in enumerate(test.texts) if len(text.split()) >= needed]
    if not long:
        raise InputError(f"no test document of {corpus} has {needed} words")
    test, test_labels = test[long].labelled()
    results = []
    for n_words in lengths:
        counts = words.count_documents(cut(test, start, n_words)).counts
        # All share the model.
        embedded = classifiers[KINDS[0]].embed(counts)
        for kind, classifier in classifiers.items():
            log_proba = classifier.predict_log_proba(embedded)
            seen = evaluate(log_proba, test_labels, classifier.classes_)
            accuracy, loss = seen["accuracy"], seen["cross_entropy"]
            results.append(Cut(n_words, kind, accuracy, loss, seen["ece"], len(test)))
    return results


def plot_cuts(results: Sequence[Cut], title: str) -> Figure:
    """Draw accuracy and cross-entropy against the length of the cut."""
    from matplotlib.figure import Figure

    from docsigma.metrics.plots import PALETTE

    figure = Figure(figsize=(8.4, 3.6), dpi=150, layout="constrained")
    left, right = figure.subplots(1, 2)
    styles = zip(KINDS, PALETTE, ("o", "s", "^"), strict=False)
    for kind, colour, marker in styles:
        mine = [r for r in results if r.kind == kind]
        lengths = [r.n_words for r in mine]
        options = {"color": colour, "marker": marker, "label": kind.upper()}
        left.plot(lengths, [r.accuracy for r in mine], **options)
        right.plot(lengths, [r.cross_entropy for r in mine], **options)
    for axes, name in ((left, "accuracy (%)"), (right, "cross-entropy (nats)")):
        axes.set_xscale("log")
        ticks = sorted({r.n_words for r in results})
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.minorticks_off()
        axes.set_xlabel("words of the document")
        axes.set_ylabel(name)
        axes.set_ylim(bottom=0)
        axes.spines[["top", "right"]].set_visible(False)
    left.legend(frameon=False)
    figure.suptitle(title)
    return figure


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment, print its table, write its files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", default="docstrings")
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--components", type=int, default=100)
    parser.add_argument("--l1", type=float, default=0.1)
    parser.add_argument("--max-iter", type=int, default=300)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path)
    chosen = parser.parse_args(arguments)
    register()
    results = run(
        chosen.corpus,
        start=chosen.start,
        n_components=chosen.components,
        l1=chosen.l1,
        max_iter=chosen.max_iter,
        verbose=True,
    )
    for r in results:
        print(
            f"{r.n_words:4d} words  {r.kind:5s} {r.accuracy:5.1f} %  "
            f"{r.cross_entropy:6.3f} nats  ECE {r.ece:.3f}  ({r.n_documents} documents)"
        )
    if chosen.json:
        report: dict[str, Any] = {
            "corpus": chosen.corpus,
            "start": chosen.start,
            "n_components": chosen.components,
            "l1": chosen.l1,
            "max_iter": chosen.max_iter,
            "cuts": [r.__dict__ for r in results],
        }
        chosen.json.parent.mkdir(parents=True, exist_ok=True)
        chosen.json.write_text(json.dumps(report, indent=1) + "\n")
    if chosen.plot:
        title = f"{chosen.corpus}: whole documents in training, cut ones in test"
        plot_cuts(results, title).savefig(chosen.plot)


if __name__ == "__main__":
    main()
