"""ULMFiT as the experiments run it."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import weakref
from typing import TYPE_CHECKING, Any

import torch

from docsigma.classifiers.ulmfit import ULMFiTClassifier
from docsigma.experiments.topic_id import judge

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from docsigma.experiments.reproduce._setting import Setting
    from docsigma.experiments.topic_id import Task

__all__ = ["LearnedLanguage", "fit_and_judge", "run"]

# Without published weights, the language model has already learned from the very texts
# that it would be fine-tuned on: one phase instead of two. The speech corpora are small
# and need small batches to make enough steps. On 20 Newsgroups attached files are a
# third of all words; what follows word 1400 is left out.
_SPEECH: dict[str, Any] = {"pretrain_epochs": 20, "lm_epochs": 0, "batch_size": 64}
_LANGUAGE: dict[str, dict[str, Any]] = {
    "20newsgroups": {
        "pretrain_epochs": 12,
        "lm_epochs": 0,
        "batch_size": 128,
        "max_words": 30_000,
        "max_length": 1400,
    }
}
_SMALL: dict[str, Any] = {
    "embedding_size": 8,
    "hidden_units": 8,
    "n_layers": 2,
    "pretrain_epochs": 1,
    "lm_epochs": 1,
}
# Drop-out rate of the language model; that of the classifier, and its epochs.
_CHOSEN: dict[str, tuple[float, float, int]] = {"20newsgroups": (0.4, 0.4, 12)}
_CHOSEN_SPEECH = (0.4, 0.4, 30)


class LearnedLanguage:
    """A language model trained on the texts of a corpus, for any classifier on it.

    Parameters
    ----------
    setting : Setting
        Device, and whether the model is a small one.
    corpus : str
        Whose parameters to take.
    texts : list of str
        To learn from.
    dropout : float
        Of the language model.
    seed : int
        Decides everything.
    """

    def __init__(
        self,
        setting: Setting,
        corpus: str,
        texts: Sequence[str],
        dropout: float,
        seed: int,
    ) -> None:
        full = _LANGUAGE.get(corpus, _SPEECH)
        self._shared = {
            **setting.pick(full, _SMALL),
            "lm_dropout": dropout,
            "device": setting.device,
            "random_state": seed,
        }
        model = ULMFiTClassifier(**self._shared)
        with _tf32():
            model.fit_language_model(texts)
        self.history = model.history_
        self._folder = tempfile.mkdtemp()
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        model.save_language_model(self._folder)

    def classifier(self, dropout: float, n_epochs: int) -> ULMFiTClassifier:
        """Make a classifier that starts from it."""
        start = {"weights": self._folder, "lm_epochs": 0}
        return ULMFiTClassifier(
            **self._shared | start,
            classifier_dropout=dropout,
            classifier_epochs=n_epochs,
        )


# Those of one corpus, by seed: whole documents and windows share them.
_LEARNED: dict[tuple[Any, ...], LearnedLanguage] = {}


def run(setting: Setting, task: Task, corpus: str, seed: int) -> dict[str, Any]:
    """Fine-tune a language model for classification, on the texts themselves.

    With published weights it takes the epochs of the paper. Without, the language
    model is trained on the whole training documents, also where the task is windows.
    """
    texts, test = task.train_texts, task.test_texts
    if texts is None or test is None:
        return {}
    parts = texts, task.train_labels, test, task.test_labels
    lm_dropout, dropout, n_epochs = _CHOSEN.get(corpus, _CHOSEN_SPEECH)
    weights = setting.options.get("ulmfit_weights")
    if weights is not None:
        model = ULMFiTClassifier(
            weights,
            lm_dropout=lm_dropout,
            classifier_dropout=dropout,
            device=setting.device,
            random_state=seed,
        )
        scores = fit_and_judge(model, *parts)
        return {"MLP": scores | {"note": f"pre-trained on {model.pretrained_on_}"}}
    whole = setting.task(corpus).train_texts
    assert whole is not None
    key = corpus, setting.quick, setting.device, seed
    if key not in _LEARNED:
        for other in [other for other in _LEARNED if other[0] != corpus]:
            del _LEARNED[other]
        _LEARNED[key] = LearnedLanguage(setting, corpus, whole, lm_dropout, seed)
    learned = _LEARNED[key]
    model = learned.classifier(dropout, setting.pick(n_epochs, 2))
    scores = fit_and_judge(model, *parts)
    scores["history"] = learned.history + scores["history"]
    windows = "" if texts is whole else ", whole"
    note = f"pre-trained on the {len(whole)} texts of the training set{windows}"
    return {"MLP": scores | {"note": note}}


def fit_and_judge(
    model: ULMFiTClassifier,
    train: Sequence[str],
    train_labels: Sequence[str],
    test: Sequence[str],
    test_labels: Sequence[str],
) -> dict[str, Any]:
    """Train on some texts and judge on others."""
    with _tf32():
        model.fit(train, train_labels)
        log_proba = model.predict_log_proba(test)
    scores: dict[str, Any] = judge(log_proba, list(test_labels), model.classes_)
    return scores | {"history": model.history_}


@contextlib.contextmanager
def _tf32() -> Iterator[None]:
    """Let products round their factors to TF32, where the device can."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
