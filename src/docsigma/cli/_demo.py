"""The demo: one corpus from text to Gaussians, in about three minutes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from docsigma.classifiers.counts_classifier import KINDS
from docsigma.corpora import load_corpus
from docsigma.distances import wasserstein2
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

    model: BayesianSMM
    test: Documents
    n_tokens: np.ndarray[Any, Any]
    posterior: GaussianPosterior
    perplexity: Perplexity
    topic_id: dict[str, dict[str, float]]

    def by_certainty(self) -> np.ndarray[Any, Any]:
        """Return the rows of the documents, the most certain first."""
        return np.argsort(self.posterior.total_variance, kind="stable")

    def neighbours(self, row: int, n: int = 5) -> list[tuple[int, float]]:
        """Return the rows nearest in Wasserstein-2 distance, and their distances."""
        (distance,) = wasserstein2(self.posterior[row : row + 1], self.posterior)
        order = [i for i in np.argsort(distance, kind="stable") if i != row][:n]
        return [(int(i), float(distance[i])) for i in order]


def run_demo(
    folder: Path,
    *,
    corpus: str = "docstrings",
    n_components: int = 50,
    max_iter: int | None = None,
    verbose: bool = False,
    log: Callable[[str], object] = print,
) -> DemoResult:
    """Fit on the training half of a labelled corpus, embed and label the other half.

    `folder` gets the model, a classifier, plots and the page ``explore.html``.
    """
    loaded = load_corpus(corpus)
    train, train_labels = loaded.train.labelled()
    test, test_labels = loaded.test.labelled()
    loaded = replace(loaded, train=train, test=test)
    assert loaded.train.texts is not None
    assert loaded.test.texts is not None
    embedder = DocumentEmbedder(
        n_components,
        min_df=3,
        model=BayesianSMM(max_iter=max_iter),
        random_state=0,
        verbose=verbose,
    )
    words, counts = embedder.learn_words(loaded.train.texts)
    log(
        f"{corpus}: {len(loaded.train)} training and {len(loaded.test)} held-out "
        f"documents, {len(words)} words"
    )
    model: Any = embedder.fit_counts(counts, vocabulary=words).model_
    model.save(folder / "model", overwrite=True)
    log(f"fitted in {model.history_[-1]['seconds']:.0f} s, saved to {folder / 'model'}")
    log(f"topic identification: {', '.join(KINDS)}, TF-IDF + LR")
    fitted = {}
    for kind in KINDS:
        topics = TopicClassifier(embedder, kind=kind, verbose=verbose)
        fitted[kind] = topics.fit(loaded.train.texts, train_labels).classifier_
    hybrid = fitted["hybrid"]
    hybrid.save(folder / "classifier", overwrite=True)
    held_out = hybrid.count(loaded.test.texts)
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
        loaded.test.ids,
        loaded.test.texts,
        test_labels,
        n_unknown=held_out.n_unknown,
        classifier=hybrid,
        title=corpus,
    )
    write_page(workspace, folder / "explore.html")
    perplexity = model.perplexity(documents.counts, posterior=q)
    topic_id["TF-IDF + LR"] = tfidf_baseline(
        counts, train_labels, documents.counts, test_labels
    )
    log(f"plots: {', '.join(save_figures(figures, folder))}")
    log(f"a page of the documents: {folder / 'explore.html'}")
    return DemoResult(model, loaded.test, held_out.n_tokens, q, perplexity, topic_id)
