"""The demo: one corpus from text to Gaussians, in about three minutes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from docsigma.classifiers.counts_classifier import KINDS
from docsigma.corpora import load_corpus
from docsigma.explore.page import write_page
from docsigma.explore.workspace import Workspace
from docsigma.metrics.evaluation import evaluate, tfidf_baseline
from docsigma.metrics.plots import (
    bound_over_time,
    document_map,
    plot_reliability,
    save_figures,
    variance_against_length,
)
from docsigma.models import BayesianSMM
from docsigma.text import DocumentEmbedder, TopicClassifier

if TYPE_CHECKING:
    from docsigma.corpora import Documents
    from docsigma.metrics import Perplexity
    from docsigma.posterior import GaussianPosterior


@dataclass(frozen=True)
class DemoResult:
    """Results of the demo."""

    test: Documents
    n_tokens: np.ndarray[Any, Any]
    posterior: GaussianPosterior
    perplexity: Perplexity
    topic_id: dict[str, dict[str, float]]


def run_demo(
    folder: Path,
    *,
    n_components: int = 50,
    max_iter: int | None = None,
    verbose: bool = False,
    log: Callable[[str], object] = print,
) -> DemoResult:
    """Fit on the training half of the docstrings, embed and label the other half.

    `folder` gets the model, a classifier, plots and the page ``explore.html``.
    """
    corpus = load_corpus("docstrings")
    train, train_labels = corpus.train.labelled()
    test, test_labels = corpus.test.labelled()
    assert train.texts is not None
    assert test.texts is not None
    embedder = DocumentEmbedder(
        n_components,
        min_df=3,
        model=BayesianSMM(max_iter=max_iter),
        random_state=0,
        verbose=verbose,
    )
    words, counts = embedder.learn_words(train.texts)
    log(
        f"docstrings: {len(train)} training and {len(test)} held-out documents, "
        f"{len(words)} words"
    )
    model: Any = embedder.fit_counts(counts, vocabulary=words).model_
    model.save(folder / "model", overwrite=True)
    log(f"fitted in {model.history_[-1]['seconds']:.0f} s, saved to {folder / 'model'}")
    log(f"topic identification: {', '.join(KINDS)}, TF-IDF + LR")
    fitted = {}
    for kind in KINDS:
        topics = TopicClassifier(embedder, kind=kind, verbose=verbose)
        fitted[kind] = topics.fit(train.texts, train_labels).classifier_
    hybrid = fitted["hybrid"]
    hybrid.save(folder / "classifier", overwrite=True)
    held_out = hybrid.count(test.texts)
    documents = hybrid.embed(held_out.counts)
    q = documents.posterior
    assert q is not None
    topic_id = {
        kind: evaluate(found.predict_log_proba(documents), test_labels, found.classes_)
        for kind, found in fitted.items()
    }
    figures = {
        "bound.png": bound_over_time(model.history_, int(counts.sum())),
        "uncertainty.png": variance_against_length(
            q, held_out.n_tokens, 1 / model.prior_precision
        ),
        "map.png": document_map(q, test_labels),
        "reliability.png": plot_reliability(
            hybrid.predict_proba(documents), test_labels, classes=hybrid.classes_
        ),
    }
    workspace = Workspace(
        model,
        q,
        test.ids,
        test.texts,
        test_labels,
        n_unknown=held_out.n_unknown,
        classifier=hybrid,
        title="docstrings",
    )
    write_page(workspace, folder / "explore.html")
    perplexity = model.perplexity(documents.counts, posterior=q)
    topic_id["TF-IDF + LR"] = tfidf_baseline(
        counts, train_labels, documents.counts, test_labels
    )
    log(f"plots: {', '.join(save_figures(figures, folder))}")
    log(f"a page of the documents: {folder / 'explore.html'}")
    return DemoResult(test, held_out.n_tokens, q, perplexity, topic_id)
