"""Every topic ID system of the paper: a task in, accuracies and cross-entropies out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score

from docsigma.classifiers import (
    GaussianLinearClassifier,
    UncertainGaussianClassifier,
)
from docsigma.metrics.evaluation import evaluate
from docsigma.models import BayesianSMM
from docsigma.posterior import GaussianPosterior
from docsigma_paper.classifiers.naive_bayes import SelectedNaiveBayes
from docsigma_paper.early_stopping import EarlyStopping
from docsigma_paper.models.smm import SMM
from docsigma_paper.reproduce import _ulmfit, baselines
from docsigma_paper.reproduce._models import (
    algorithm1_parameters,
    make_nvdm,
    nvdm_parameters,
)
from docsigma_paper.topic_id import AUTHORS_STEPS, Task, classify

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from docsigma_paper.reproduce._job import Job, Scores, TaskName
    from docsigma_paper.reproduce._setting import Setting


# K, l1 weight and passes of Algorithm 1. For 20 Newsgroups K and l1 are the best of a
# few pairs judged by cross-validation on training documents, for speech only l1 was
# looked for (benchmarks/results/topic-id-*.json; speech: words 201 to 400); the passes
# were not. SMM and NVDM use the same, but K at most 200. For Fisher nobody has
# searched: as for Switchboard.
SPEECH: dict[str, Any] = {"K": 200, "l1": 0.1, "passes": 500}
CHOSEN: dict[str, dict[str, Any]] = {
    "20newsgroups": {"K": 800, "l1": 0.1, "passes": 300},
    "switchboard": SPEECH,
    "switchboard-asr": SPEECH,
    "fisher": SPEECH,
    "fisher-asr": SPEECH,
}
# What the kept searches results/tune-*.json chose on 20 Newsgroups for the fast solver
# and either classifier.
TUNED: dict[str, dict[str, Any]] = {
    "lr": {"n_components": 800, "l1": 0.03222, "prior_precision": 205.2},
    "glcu": {"n_components": 800, "l1": 1, "prior_precision": 34.58},
}
QUICK: dict[str, Any] = {"K": 5, "l1": 0.1, "passes": 20}
# Classifiers as the table calls them: the name of the printed one, then how.
NAMES = {
    "lr": "LR",
    "glc": "GLC",
    "glcu": "GLCU",
    "glcu-stopped": f"GLCU, {AUTHORS_STEPS} steps of EM",
}
# An upward search ends after this many weights or sizes in a row without gain.
PATIENCE = 2


@dataclass(frozen=True)
class System:
    """One row, or one row per classifier, of a topic ID table.

    Attributes
    ----------
    model : str
        Its name in the table.
    parameters : callable
        From the setting and the task's name to what the row depends on, in JSON types.
    run : callable
        From a :class:`~docsigma_paper.reproduce._job.Job` to scores by classifier.
    extension : bool
        Whether it is ours and not the paper's.
    needs : str or None
        A library that may be missing.
    seeded : bool
        Whether the result depends on the seed.
    corpora : tuple of str or None
        The corpora it has rows for; None for all.
    """

    model: str
    parameters: Callable[[Setting, TaskName], dict[str, Any]]
    run: Callable[[Job], Scores]
    extension: bool = False
    needs: str | None = None
    seeded: bool = True
    corpora: tuple[str, ...] | None = None


def _classify(task: Task, train: Any, test: Any, kinds: tuple[str, ...]) -> Scores:
    labels = task.train_labels, task.test_labels
    scores = classify(train, labels[0], test, labels[1], kinds)
    return {NAMES[kind]: score for kind, score in scores.items()}


def _points(task: Task, train: NDArray[Any], test: NDArray[Any]) -> Scores:
    """Classify embeddings that have no variance."""
    q = [GaussianPosterior(x, np.full_like(x, 1e-12)) for x in (train, test)]
    return _classify(task, q[0], q[1], ("glc", "lr"))


def _first_best(values: list[Any], cost: Callable[[Any], float]) -> Any:
    """Return the value of least cost, going upwards until more does not help."""
    best, least, since = values[0], np.inf, 0
    for value in values:
        found = cost(value)
        since = 0 if found < least else since + 1
        if found < least:
            best, least = value, found
        if since == PATIENCE:
            break
    return best


def tfidf_parameters(setting: Setting, _name: TaskName) -> dict[str, Any]:
    """Inverse l2 weights to choose from, and the folds."""
    most = setting.pick(7, 2)
    return {"Cs": [10.0**power for power in range(most)], "folds": setting.pick(5, 2)}


def tfidf(job: Job) -> Scores:
    """Run TF-IDF and LR, whose weight is chosen by cross-validation."""
    task = job.task
    weights = TfidfTransformer(sublinear_tf=True).fit(task.train)
    train, test = weights.transform(task.train), weights.transform(task.test)
    folds = StratifiedKFold(job.parameters["folds"], shuffle=True, random_state=0)

    def make(c: float) -> LogisticRegression:
        return LogisticRegression(C=c, max_iter=2000)

    def cost(c: float) -> float:
        seen = cross_val_score(
            make(c), train, task.train_labels, scoring="neg_log_loss", cv=folds
        )
        return -float(seen.mean())

    c = _first_best(job.parameters["Cs"], cost)
    model = make(c).fit(train, task.train_labels)
    log_proba = model.predict_log_proba(test)
    scores: dict[str, Any] = evaluate(log_proba, task.test_labels, model.classes_)
    return {"LR": scores | {"C": c}}


def naive_bayes_parameters(setting: Setting, _name: TaskName) -> dict[str, Any]:
    """Grid of words per class, and of the scale."""
    return {
        "words_per_class": setting.pick([30, 100, 300, 1000, 3000, 10_000], [30]),
        "scale": setting.pick("cv", 1.0),
        "normalize": True,
    }


def naive_bayes(job: Job) -> Scores:
    """Run naive Bayes on words selected for their classes, as many as serve best."""
    task, models = job.task, {}

    def cost(words: int) -> float:
        models[words] = SelectedNaiveBayes(
            words_per_class=words,
            scale=job.parameters["scale"],
            normalize=job.parameters["normalize"],
            random_state=job.seed,
        ).fit(task.train, task.train_labels)
        return float(getattr(models[words], "cross_entropy_", 0.0))

    words = _first_best(job.parameters["words_per_class"], cost)
    model = models[words]
    log_proba = model.predict_log_proba(task.test)
    scores: dict[str, Any] = evaluate(log_proba, task.test_labels, model.classes_)
    return {"NB": scores | {"words_per_class": words}}


def _algorithm1(setting: Setting, name: TaskName) -> dict[str, Any]:
    chosen = QUICK if setting.quick else CHOSEN[name.corpus]
    return algorithm1_parameters(chosen["K"], chosen["l1"], chosen["passes"])


def _proposed(setting: Setting, name: TaskName) -> dict[str, Any]:
    # The steps are part of the row: with others it would be computed again.
    return _algorithm1(setting, name) | {"glcu_steps": AUTHORS_STEPS}


def _smaller(setting: Setting, name: TaskName) -> dict[str, Any]:
    parameters = _algorithm1(setting, name)
    return parameters | {"n_components": min(parameters["n_components"], 200)}


def _smaller_l2(setting: Setting, name: TaskName) -> dict[str, Any]:
    parameters = _smaller(setting, name)
    return parameters | {"l1": 0.0, "l2": parameters["l1"]}


def smm(job: Job) -> Scores:
    """Run SMM with the early stopping of the paper."""
    task, setting = job.task, job.setting
    model = SMM(**job.parameters, device=setting.device, random_state=job.seed)
    stop = EarlyStopping(
        task.train,
        task.train_labels,
        GaussianLinearClassifier(),
        every=max(1, job.parameters["max_iter"] // setting.pick(10, 2)),
        variance=False,
    )
    model.fit(task.train, callback=stop)
    best = stop.best_model
    return _points(task, best.transform(task.train), best.transform(task.test))


def _nvdm_parameters(setting: Setting, name: TaskName) -> dict[str, Any]:
    k = _smaller(setting, name)["n_components"]
    return nvdm_parameters(setting, k, name.corpus)


def nvdm(job: Job) -> Scores:
    """Run NVDM with the early stopping of the paper."""
    task, setting = job.task, job.setting
    model = make_nvdm(setting, job.parameters, job.seed)
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


def bayesian(job: Job) -> Scores:
    """Run the Bayesian SMM, without early stopping."""
    parameters = dict(job.parameters)
    stopped = ("glcu-stopped",) if parameters.pop("glcu_steps", None) else ()
    return _gaussians(job, parameters, ("lr", "glc", "glcu", *stopped))


def tuned(job: Job) -> Scores:
    """Run it with what was chosen for either classifier."""
    scores = _gaussians(job, job.parameters["lr"], ("lr",))
    return scores | _gaussians(job, job.parameters["glcu"], ("glc", "glcu"))


def _gaussians(job: Job, parameters: dict[str, Any], kinds: tuple[str, ...]) -> Scores:
    task = job.task
    model = BayesianSMM(
        **parameters, device=job.setting.device, random_state=job.seed
    ).fit(task.train)
    train, test = model.posterior(task.train), model.posterior(task.test)
    return _classify(task, train, test, kinds)


def _first_try(setting: Setting, _name: TaskName) -> dict[str, Any]:
    return {"n_components": setting.pick(100, 5)}


def _searched(setting: Setting, _name: TaskName) -> dict[str, Any]:
    small = {"n_components": 5}
    return setting.pick(TUNED, {"lr": small, "glcu": small})


def _sweeps(
    kind: str, n_topics: int, n_iter: int
) -> Callable[[Setting, TaskName], dict[str, Any]]:
    def parameters(setting: Setting, _name: TaskName) -> dict[str, Any]:
        return {
            "n_components": setting.pick(n_topics, 5),
            "kind": kind,
            "n_iter": setting.pick(n_iter, 10),
            "inference_n_iter": setting.pick(100, 5),
        }

    return parameters


def gibbs(job: Job) -> Scores:
    """Run LDA or CTM."""
    model = baselines.GibbsTopics(**job.parameters, random_state=job.seed)
    return _embed(job, model)


def _vectors(setting: Setting, _name: TaskName) -> dict[str, Any]:
    return {"n_components": setting.pick(100, 5), "n_epochs": setting.pick(20, 2)}


def paragraph_vectors(job: Job) -> Scores:
    """Run paragraph vectors, PV-DBOW."""
    model = baselines.ParagraphVectors(**job.parameters, random_state=job.seed)
    return _embed(job, model)


def _embed(job: Job, model: Any) -> Scores:
    task = job.task
    model.fit(task.train)
    return _points(task, model.transform(task.train), model.transform(task.test))


SYSTEMS: dict[str, System] = {
    "tfidf": System("TF-IDF", tfidf_parameters, tfidf, seeded=False),
    "naive-bayes": System("BoW, selected words", naive_bayes_parameters, naive_bayes),
    "ulmfit": System("ULMFiT", _ulmfit.parameters, _ulmfit.run),
    "smm": System("l1 SMM", _smaller, smm),
    "smm-l2": System("l2 SMM", _smaller_l2, smm),
    "nvdm": System("NVDM", _nvdm_parameters, nvdm),
    "lda": System("LDA", _sweeps("lda", 100, 300), gibbs, needs="tomotopy"),
    # Fewer topics and sweeps than LDA: they take long.
    "ctm": System("CTM", _sweeps("ctm", 50, 100), gibbs, needs="tomotopy"),
    "pv-dbow": System("PV-DBOW", _vectors, paragraph_vectors, needs="gensim"),
    "bayesian-smm": System("Bayesian SMM", _proposed, bayesian),
    "bayesian-smm-fast": System(
        "Bayesian SMM, fast", _first_try, bayesian, extension=True
    ),
    "bayesian-smm-tuned": System(
        "Bayesian SMM, fast, tuned",
        _searched,
        tuned,
        extension=True,
        corpora=("20newsgroups",),
    ),
}
