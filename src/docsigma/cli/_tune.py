"""Hyper-parameters chosen on training documents alone, by a resumable search."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from docsigma._array_checks import check_choice
from docsigma._devices import choose_device
from docsigma._files import atomic_file
from docsigma.classifiers import (
    CrossValidatedLogisticRegression,
    UncertainGaussianClassifier,
)
from docsigma.exceptions import InputError
from docsigma.metrics import cross_entropy
from docsigma.models import BayesianSMM

if TYPE_CHECKING:
    import scipy.sparse as sp


OBJECTIVES = ("glcu", "lr", "perplexity")
HOLD_OUT = ("random", "latest")
SOLVERS = ("fast", "paper")


@dataclass(frozen=True)
class Space:
    """Ranges and choices of a search; those of two numbers have a log scale."""

    n_components: tuple[int, ...] = (50, 100, 200)
    l1: tuple[float, float] = (0.01, 10.0)
    prior_precision: tuple[float, float] = (1.0, 100.0)


@dataclass(frozen=True)
class Tuned:
    """The best parameters, their value on held-out documents, and all trials."""

    parameters: dict[str, Any]
    value: float
    trials: list[dict[str, Any]]


def tune(
    counts: sp.csr_matrix,
    labels: Sequence[str] | None,
    *,
    objective: str = "glcu",
    space: Space | None = None,
    n_trials: int = 20,
    held_out: float = 0.2,
    hold_out: str = "random",
    solver: str = "fast",
    device: str = "auto",
    random_state: int = 0,
    journal: Path | None = None,
    log: Callable[[str], object] | None = None,
) -> Tuned:
    """Search K, the l1 weight and the precision of the prior.

    The model, and the classifier, are trained on a part of the training documents and
    evaluated on the rest, the share `held_out` of each class: "random" documents, or
    the "latest". Messages of one discussion are alike, so that random ones are too easy
    where the test documents come later.

    `random_state` decides the division, the search and the models, however often the
    search was stopped and continued from its `journal`.
    """
    try:
        import optuna
    except ImportError as error:
        raise InputError("tuning needs: pip install docsigma[tune]") from error
    # It would print a failure with its traceback; the caller raises one sentence.
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    check_choice("objective", objective, OBJECTIVES)
    check_choice("hold_out", hold_out, HOLD_OUT)
    check_choice("solver", solver, SOLVERS)
    space = Space() if space is None else space
    if not space.n_components or min(space.n_components) < 1:
        given = ", ".join(map(str, space.n_components))
        raise InputError(f"sizes must be 1 or more, got {given!r}")
    choose_device(device)
    if labels is None and objective != "perplexity":
        raise InputError(f"objective {objective!r} needs labels, the corpus has none")
    train, test = divide(counts.shape[0], labels, held_out, hold_out, random_state)
    seen, unseen = counts[train], counts[test]

    def evaluate(trial: Any) -> float:
        sizes = list(space.n_components)
        parameters = {"n_components": trial.suggest_categorical("n_components", sizes)}
        for name in ("l1", "prior_precision"):
            limits = getattr(space, name)
            parameters[name] = trial.suggest_float(name, *limits, log=True)
        model = BayesianSMM(
            **parameters, solver=solver, device=device, random_state=random_state
        ).fit(seen)
        if labels is None or objective == "perplexity":
            value = model.perplexity(unseen).corpus
        else:
            kept = np.asarray(labels)
            value = _cross_entropy(
                model, seen, kept[train], unseen, kept[test], objective
            )
        if log is not None:
            log(f"trial {trial.number}: {show_parameters(parameters)}: {value:.4f}")
        return float(value)

    settings = {
        "n_documents": counts.shape[0],
        "n_tokens": float(counts.sum()),
        "space": asdict(space),
        "held_out": held_out,
        "hold_out": hold_out,
        "solver": solver,
        "random_state": random_state,
    }
    try:
        study = _open_study(f"docsigma-{objective}", journal, settings)
        complete = [optuna.trial.TrialState.COMPLETE]
        while (n_done := len(study.get_trials(states=complete))) < n_trials:
            # One seed per trial: a stopped search continues as if it had not stopped.
            study.sampler = optuna.samplers.TPESampler(seed=random_state + n_done)
            study.optimize(evaluate, n_trials=1)
    except OSError as error:
        # A trial touches no other file.
        raise InputError(f"cannot write {journal}: {error.strerror}") from error
    done = study.get_trials(states=complete)
    trials = [{**trial.params, "value": trial.value} for trial in done]
    return Tuned(dict(study.best_params), float(study.best_value), trials)


def _open_study(name: str, journal: Path | None, settings: dict[str, Any]) -> Any:
    """Begin a search, or continue that in the journal if its settings are the same."""
    import optuna
    from optuna.storages.journal import JournalFileBackend

    storage = None
    if journal is not None:
        _check_journal(journal)
        backend = JournalFileBackend(str(journal))
        storage = optuna.storages.JournalStorage(backend)
    study = optuna.create_study(study_name=name, storage=storage, load_if_exists=True)
    # The journal returns tuples as lists.
    settings = json.loads(json.dumps(settings))
    if study.user_attrs.get("settings", settings) != settings:
        raise InputError(
            f"{journal} holds another search: other documents or settings; "
            "move it away to start again"
        )
    study.set_user_attr("settings", settings)
    return study


def _check_journal(journal: Path) -> None:
    """Refuse a damaged journal: Optuna would write after the damage."""
    if not journal.exists():
        return
    with journal.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                whole = isinstance(json.loads(line), dict) and line.endswith(b"\n")
            except ValueError:
                whole = False
            if not whole:
                raise InputError(
                    f"{journal}, line {number} is damaged: the search cannot "
                    "continue; move the file away to start again"
                )


def show_parameters(parameters: dict[str, float]) -> str:
    """Return parameters in one line."""
    return ", ".join(f"{name} {x:.4g}" for name, x in parameters.items())


def write_tuned(path: Path, found: Tuned, settings: dict[str, Any]) -> None:
    """Write what was found as JSON."""
    text = json.dumps(settings | asdict(found), indent=1)
    with atomic_file(path) as temporary:
        temporary.write_text(text + "\n", "utf-8")


def divide(
    n_documents: int,
    labels: Sequence[str] | None,
    part: float,
    hold_out: str,
    random_state: int,
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows of two parts, the second with the share `part` of each class.

    Without `labels` there is one class; a class that a part would lack is refused.
    """
    codes = np.zeros(n_documents, int)
    if labels is not None:
        _, codes = np.unique(np.asarray(labels), return_inverse=True)
    sizes = np.bincount(codes, minlength=1)
    n_classes, least = len(sizes), sizes.min()
    n_held = int(np.ceil(part * n_documents))
    if least < 2 or not n_classes <= n_held <= n_documents - n_classes:
        raise InputError(
            f"{n_held} of {n_documents} documents cannot be held out: there are "
            f"{n_classes} classes, the smallest of {least}, and each must be in "
            "both parts"
        )
    if hold_out == "latest":
        last = np.zeros(n_documents, bool)
        for code, size in enumerate(sizes):
            n_last = min(max(round(part * size), 1), size - 1)
            last[np.flatnonzero(codes == code)[-n_last:]] = True
        return np.flatnonzero(~last), np.flatnonzero(last)
    train, test = train_test_split(
        np.arange(n_documents),
        test_size=n_held,
        random_state=random_state,
        stratify=labels,
    )
    return train, test


def _cross_entropy(
    model: BayesianSMM,
    train: sp.csr_matrix,
    train_labels: Any,
    test: sp.csr_matrix,
    test_labels: Any,
    objective: str,
) -> float:
    classifier: Any = CrossValidatedLogisticRegression()
    seen: Any = model.posterior(train)
    unseen: Any = model.posterior(test)
    if objective == "glcu":
        classifier = UncertainGaussianClassifier(tol=1e-3)
    else:
        seen, unseen = seen.mean, unseen.mean
    log_proba = classifier.fit(seen, train_labels).predict_log_proba(unseen)
    return cross_entropy(log_proba, test_labels, classes=classifier.classes_, log=True)
