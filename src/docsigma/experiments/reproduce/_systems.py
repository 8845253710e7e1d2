"""Every topic ID system of the paper: a task in, accuracies and cross-entropies out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from docsigma.classifiers import (
    GaussianLinearClassifier,
    SelectedNaiveBayes,
    UncertainGaussianClassifier,
)
from docsigma.experiments.early_stopping import EarlyStopping
from docsigma.experiments.reproduce import _ulmfit, related
from docsigma.experiments.reproduce.perplexity_table import make_nvdm
from docsigma.experiments.topic_id import Task, classify, judge
from docsigma.models import SMM, BayesianSMM
from docsigma.posterior import GaussianPosterior
from docsigma.token_weights import TokenWeights

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from docsigma.experiments.reproduce._setting import Setting

__all__ = ["CHOSEN", "SYSTEMS", "System"]

Scores = dict[str, dict[str, Any]]

# Size and l1 weight of the Bayesian SMM, chosen on the training part by the kept
# searches benchmarks/results/topic-id-*.json (speech: on words 201 to 400); the passes
# are not. SMM and NVDM take the same, but K 200 at the most.
# For Fisher nobody has searched: as for Switchboard.
SPEECH: dict[str, Any] = {"K": 200, "l1": 0.1, "passes": 500}
CHOSEN: dict[str, dict[str, Any]] = {
    "20newsgroups": {"K": 800, "l1": 0.1, "passes": 300},
    "switchboard": SPEECH,
    "switchboard-asr": SPEECH,
    "fisher": SPEECH,
    "fisher-asr": SPEECH,
}
# What the kept searches results/tune-*.json chose for the fast solver, by counts and
# classifier.
TUNED: dict[str, dict[str, dict[str, Any]]] = {
    "plain": {
        "lr": {"n_components": 800, "l1": 0.1676, "prior_precision": 28.2},
        "glcu": {"n_components": 800, "l1": 0.05885, "prior_precision": 27.15},
    },
    "weighted": {
        "lr": {"n_components": 1200, "l1": 0.2014, "prior_precision": 51.49},
        "glcu": {"n_components": 800, "l1": 0.1016, "prior_precision": 207.6},
    },
}
QUICK = {"K": 5, "l1": 0.1, "passes": 20}


@dataclass(frozen=True)
class System:
    """One row, or one row a classifier, of a topic ID table.

    Attributes
    ----------
    model : str
        As the table calls it.
    run : callable
        Takes setting, task, corpus and seed; gives scores by classifier.
    extension : bool
        Whether it is ours and not the paper's.
    needs : str or None
        A library that may be missing.
    seeded : bool
        Whether another seed gives another result.
    corpora : tuple of str or None
        The corpora it has rows for; None for all.
    """

    model: str
    run: Callable[[Setting, Task, str, int], Scores]
    extension: bool = False
    needs: str | None = None
    seeded: bool = True
    corpora: tuple[str, ...] | None = None


def _chosen(setting: Setting, corpus: str) -> dict[str, Any]:
    return QUICK if setting.quick else CHOSEN[corpus]


def _classify(task: Task, train: Any, test: Any, kinds: tuple[str, ...]) -> Scores:
    labels = task.train_labels, task.test_labels
    scores = classify(train, labels[0], test, labels[1], kinds)
    return {kind.upper(): score for kind, score in scores.items()}


def _points(task: Task, train: NDArray[Any], test: NDArray[Any]) -> Scores:
    """Classify embeddings that have no variance."""
    q = [GaussianPosterior(x, np.full_like(x, 1e-12)) for x in (train, test)]
    return _classify(task, q[0], q[1], ("glc", "lr"))


def tfidf(setting: Setting, task: Task, corpus: str, seed: int) -> Scores:
    """Run TF-IDF and LR, whose weight is chosen by 5-fold cross-validation."""
    del corpus
    weights = TfidfTransformer(sublinear_tf=True).fit(task.train)
    folds = StratifiedKFold(setting.pick(5, 2), shuffle=True, random_state=seed)
    model = GridSearchCV(
        LogisticRegression(max_iter=1000),
        {"C": [1.0, 10.0, 100.0]},
        scoring="neg_log_loss",
        cv=folds,
    )
    model.fit(weights.transform(task.train), task.train_labels)
    log_proba = model.predict_log_proba(weights.transform(task.test))
    scores: dict[str, Any] = judge(log_proba, task.test_labels, model.classes_)
    return {"LR": scores | {"C": model.best_params_["C"]}}


def naive_bayes(setting: Setting, task: Task, corpus: str, seed: int) -> Scores:
    """Run naive Bayes on a bag of words that were selected for their classes."""
    del corpus
    scale: float | str = 1.0 if setting.quick else "cv"
    model = SelectedNaiveBayes(scale=scale, normalize=True, random_state=seed).fit(
        task.train, task.train_labels
    )
    log_proba = model.predict_log_proba(task.test)
    return {"NB": judge(log_proba, task.test_labels, model.classes_)}


def smm(setting: Setting, task: Task, corpus: str, seed: int) -> Scores:
    """Run the l1 SMM with the early stopping of the paper."""
    chosen = _chosen(setting, corpus)
    model = SMM(
        setting.pick(min(chosen["K"], 200), chosen["K"]),
        l1=chosen["l1"],
        solver="paper",
        max_iter=chosen["passes"],
        tol=0,
        device=setting.device,
        random_state=seed,
    )
    stop = EarlyStopping(
        task.train,
        task.train_labels,
        GaussianLinearClassifier(),
        every=max(1, chosen["passes"] // setting.pick(10, 2)),
        variance=False,
    )
    model.fit(task.train, callback=stop)
    best = stop.best_model
    return _points(task, best.transform(task.train), best.transform(task.test))


def nvdm(setting: Setting, task: Task, corpus: str, seed: int) -> Scores:
    """Run NVDM with the early stopping of the paper."""
    chosen = _chosen(setting, corpus)
    k = setting.pick(min(chosen["K"], 200), chosen["K"])
    model = make_nvdm(setting, k, seed, task.train.shape[0])
    stop = EarlyStopping(
        task.train,
        task.train_labels,
        UncertainGaussianClassifier(tol=1e-3),
        every=max(1, model.max_iter // setting.pick(5, 2)),
    )
    model.fit(task.train, callback=stop)
    best = stop.best_model
    train, test = best.posterior(task.train), best.posterior(task.test)
    return _classify(task, train, test, ("lr", "glc", "glcu"))


def bayesian(setting: Setting, task: Task, corpus: str, seed: int) -> Scores:
    """Run the paper's model by its own algorithm, without early stopping."""
    chosen = _chosen(setting, corpus)
    model = BayesianSMM(
        chosen["K"],
        l1=chosen["l1"],
        solver="paper",
        max_iter=chosen["passes"],
        tol=0,
        device=setting.device,
        random_state=seed,
    ).fit(task.train)
    return _gaussians(model, task)


def _weigh(task: Task) -> Task:
    """Make bursts and common words weigh less."""
    weights = TokenWeights().fit(task.train)
    train, test = weights.transform(task.train), weights.transform(task.test)
    return Task(train, test, task.train_labels, task.test_labels)


def weighted(setting: Setting, task: Task, corpus: str, seed: int) -> Scores:
    """Run the fast solver on weighted counts."""
    return fast(setting, _weigh(task), corpus, seed)


def fast(setting: Setting, task: Task, corpus: str, seed: int) -> Scores:
    """Run the same model by the fast solver, at the size of a first try."""
    del corpus
    model = BayesianSMM(
        setting.pick(100, 5), device=setting.device, random_state=seed
    ).fit(task.train)
    return _gaussians(model, task)


def tuned(setting: Setting, task: Task, corpus: str, seed: int) -> Scores:
    """Run the fast solver, with what was chosen for either classifier."""
    del corpus
    return _tuned(setting, task, seed, "plain")


def tuned_weighted(setting: Setting, task: Task, corpus: str, seed: int) -> Scores:
    """Run the fast solver on weighted counts, likewise."""
    del corpus
    return _tuned(setting, _weigh(task), seed, "weighted")


def _tuned(setting: Setting, task: Task, seed: int, counts: str) -> Scores:
    scores: Scores = {}
    for objective, kinds in {"lr": ("lr",), "glcu": ("glc", "glcu")}.items():
        chosen = setting.pick(TUNED[counts][objective], {"n_components": 5})
        model = BayesianSMM(**chosen, device=setting.device, random_state=seed)
        scores |= _gaussians(model.fit(task.train), task, kinds)
    return scores


def _gaussians(
    model: BayesianSMM, task: Task, kinds: tuple[str, ...] = ("lr", "glc", "glcu")
) -> Scores:
    train, test = model.posterior(task.train), model.posterior(task.test)
    return _classify(task, train, test, kinds)


def lda(setting: Setting, task: Task, corpus: str, seed: int) -> Scores:
    """Run latent Dirichlet allocation."""
    return _gibbs(setting, task, corpus, seed, "lda", 300, 100)


def ctm(setting: Setting, task: Task, corpus: str, seed: int) -> Scores:
    """Run the correlated topic model; fewer topics and sweeps, for they take long."""
    return _gibbs(setting, task, corpus, seed, "ctm", 100, 50)


def _gibbs(
    setting: Setting,
    task: Task,
    corpus: str,
    seed: int,
    kind: str,
    n_iter: int,
    n_topics: int,
) -> Scores:
    del corpus
    model = related.GibbsTopics(
        setting.pick(n_topics, 5),
        kind=kind,
        n_iter=setting.pick(n_iter, 10),
        inference_n_iter=setting.pick(100, 5),
        random_state=seed,
    ).fit(task.train)
    return _points(task, model.transform(task.train), model.transform(task.test))


def paragraph_vectors(setting: Setting, task: Task, corpus: str, seed: int) -> Scores:
    """Run paragraph vectors, PV-DBOW."""
    del corpus
    model = related.ParagraphVectors(
        setting.pick(100, 5), n_epochs=setting.pick(20, 2), random_state=seed
    ).fit(task.train)
    return _points(task, model.transform(task.train), model.transform(task.test))


SYSTEMS: dict[str, System] = {
    "tfidf": System("TF-IDF", tfidf, seeded=False),
    "naive-bayes": System("BoW, selected words", naive_bayes, seeded=False),
    "ulmfit": System("ULMFiT", _ulmfit.run),
    "smm": System("l1 SMM", smm),
    "nvdm": System("NVDM", nvdm),
    "lda": System("LDA", lda, needs="tomotopy"),
    "ctm": System("CTM", ctm, needs="tomotopy"),
    "pv-dbow": System("PV-DBOW", paragraph_vectors, needs="gensim"),
    "bayesian-smm": System("Bayesian SMM", bayesian),
    "bayesian-smm-fast": System("Bayesian SMM, fast, K 100", fast, extension=True),
    "bayesian-smm-weighted": System(
        "Bayesian SMM, fast, K 100, weighted", weighted, extension=True
    ),
    "bayesian-smm-tuned": System(
        "Bayesian SMM, fast, tuned", tuned, extension=True, corpora=("20newsgroups",)
    ),
    "bayesian-smm-weighted-tuned": System(
        "Bayesian SMM, fast, weighted, tuned",
        tuned_weighted,
        extension=True,
        corpora=("20newsgroups",),
    ),
}
