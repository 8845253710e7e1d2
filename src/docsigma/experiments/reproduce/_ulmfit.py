"""ULMFiT as the experiments run it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from docsigma.classifiers.ulmfit import ULMFiTClassifier
from docsigma.experiments.topic_id import judge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from docsigma.experiments.reproduce._setting import Setting
    from docsigma.experiments.topic_id import Task

__all__ = ["fit_and_judge", "run", "trained_from_scratch"]

# Without published weights, the language model has already learned from the very texts
# that it would be fine-tuned on: one phase instead of two. The speech corpora are small
# and need small batches to make enough steps. On 20 Newsgroups attached files are a
# third of all words; what follows word 1400 is left out.
_SPEECH: dict[str, Any] = {
    "pretrain_epochs": 20,
    "lm_epochs": 0,
    "classifier_epochs": 30,
    "batch_size": 64,
}
_NEWSGROUPS: dict[str, Any] = {
    "pretrain_epochs": 12,
    "lm_epochs": 0,
    "classifier_epochs": 12,
    "batch_size": 128,
    "max_words": 30_000,
    "max_length": 1400,
}
_SMALL: dict[str, Any] = {
    "embedding_size": 8,
    "hidden_units": 8,
    "n_layers": 2,
    "pretrain_epochs": 1,
    "lm_epochs": 1,
    "classifier_epochs": 2,
}
_DROPOUT = {"20newsgroups": (0.4, 0.4)}
_SPEECH_DROPOUT = (0.4, 0.4)


def trained_from_scratch(setting: Setting, corpus: str) -> dict[str, Any]:
    """Give the parameters of a classifier without published weights."""
    full = _NEWSGROUPS if corpus == "20newsgroups" else _SPEECH
    return {**setting.pick(full, _SMALL), "device": setting.device}


def run(setting: Setting, task: Task, corpus: str, seed: int) -> dict[str, Any]:
    """Fine-tune a language model for classification, on the texts themselves.

    With published weights it takes the epochs of the paper.
    """
    train, test = task.train_texts, task.test_texts
    if train is None or test is None:
        return {}
    weights = setting.options.get("ulmfit_weights")
    parameters = trained_from_scratch(setting, corpus)
    if weights is not None and not setting.quick:
        parameters = {"device": setting.device}
    lm_dropout, classifier_dropout = _DROPOUT.get(corpus, _SPEECH_DROPOUT)
    model = ULMFiTClassifier(
        weights=weights,
        lm_dropout=lm_dropout,
        classifier_dropout=classifier_dropout,
        **parameters,
        random_state=seed,
    )
    parts = train, task.train_labels, test, task.test_labels
    scores = fit_and_judge(model, *parts)
    return {"MLP": scores}


def fit_and_judge(
    model: ULMFiTClassifier,
    train: Sequence[str],
    train_labels: Sequence[str],
    test: Sequence[str],
    test_labels: Sequence[str],
) -> dict[str, Any]:
    """Train on some texts, judge on others; products may be of TF32 where there is."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        model.fit(train, train_labels)
        log_proba = model.predict_log_proba(test)
    finally:
        torch.set_float32_matmul_precision(before)
    scores: dict[str, Any] = judge(log_proba, list(test_labels), model.classes_)
    note = f"pre-trained on {model.pretrained_on_}"
    return scores | {"note": note, "history": model.history_}
