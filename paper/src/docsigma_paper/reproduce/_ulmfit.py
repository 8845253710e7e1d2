"""ULMFiT as the experiments run it."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import weakref
from typing import TYPE_CHECKING, Any

import torch

from docsigma.exceptions import InputError
from docsigma.metrics.evaluation import evaluate
from docsigma_paper.classifiers.ulmfit import ULMFiTClassifier

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from docsigma_paper.reproduce._job import Job, Scores, TaskName
    from docsigma_paper.reproduce._setting import Setting


# Without published weights, the language model has already learned from the very texts
# that it would be fine-tuned on: one phase instead of two. The speech corpora are small
# and need small batches to make enough steps. On 20 Newsgroups a quarter of all
# words, many of them attached files, follow word 1400 of their document and are left
# out.
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
# Drop-out of language model and classifier, and the classifier's epochs: the least
# cross-entropy of results/ulmfit-dropout.json, for speech.
CHOSEN: dict[str, tuple[float, float, int]] = {
    "20newsgroups": (0.4, 0.4, 12),
    "sides": (0.4, 0.4, 20),
    "windows": (0.4, 0.6, 12),
}


def language_parameters(setting: Setting, corpus: str) -> dict[str, Any]:
    """Return what a language model trained on the corpus itself depends on."""
    return dict(setting.pick(_LANGUAGE.get(corpus, _SPEECH), _SMALL))


def parameters(setting: Setting, name: TaskName) -> dict[str, Any]:
    """Return the parameters of a row; with published weights the paper's epochs."""
    lm_dropout, dropout, n_epochs = CHOSEN[name.kind]
    rates = {"lm_dropout": lm_dropout, "classifier_dropout": dropout}
    weights = setting.options.get("ulmfit_weights")
    if weights is not None:
        epochs = {"lm_epochs": 15, "classifier_epochs": 50}
        few = {"lm_epochs": 1, "classifier_epochs": 1}
        return {"weights": str(weights), **rates, **setting.pick(epochs, few)}
    language = language_parameters(setting, name.corpus)
    return {**language, **rates, "classifier_epochs": setting.pick(n_epochs, 2)}


class LearnedLanguage:
    """A language model trained on the texts of a corpus, for any classifier on it.

    Parameters
    ----------
    texts : list of str
        To learn from.
    parameters : dict
        Of :class:`~docsigma_paper.classifiers.ulmfit.classifier.ULMFiTClassifier`.
    """

    def __init__(self, texts: Sequence[str], parameters: dict[str, Any]) -> None:
        self._shared = parameters
        model = ULMFiTClassifier(**parameters)
        with _tf32():
            model.fit_language_model(texts)
        self.history = model.history_
        self._folder = tempfile.mkdtemp()
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        model.save_language_model(self._folder)

    def classifier(self, **parameters: Any) -> ULMFiTClassifier:
        """Make a classifier that starts from it."""
        start = {"weights": self._folder, "lm_epochs": 0}
        return ULMFiTClassifier(**self._shared | start | parameters)


# The last corpus's, by seed: whole documents and windows share them.
_LEARNED: dict[tuple[Any, ...], LearnedLanguage] = {}


def run(job: Job) -> Scores:
    """Fine-tune a language model for classification, on the texts themselves.

    Without published weights the language model is trained on the whole training
    documents, also where the task is windows.
    """
    task, corpus = job.task, job.name.corpus
    texts, whole = task.train_texts, job.setting.task(corpus).train_texts
    if texts is None or whole is None or task.test_texts is None:
        raise InputError(f"the corpus {corpus} has no texts, ULMFiT needs them")
    parts = texts, task.train_labels, task.test_texts, task.test_labels
    given = {
        **job.parameters,
        "device": job.setting.device,
        "random_state": job.seed,
    }
    if "weights" in given:
        model = ULMFiTClassifier(**given)
        scores = fit_and_evaluate(model, *parts)
        return {"MLP": scores | {"note": f"pre-trained on {model.pretrained_on_}"}}
    late = {"classifier_dropout", "classifier_epochs"}
    classifier = {name: given.pop(name) for name in late}
    key = corpus, *given.values()
    if key not in _LEARNED:
        for other in [other for other in _LEARNED if other[0] != corpus]:
            del _LEARNED[other]
        _LEARNED[key] = LearnedLanguage(whole, given)
    learned = _LEARNED[key]
    scores = fit_and_evaluate(learned.classifier(**classifier), *parts)
    scores["history"] = learned.history + scores["history"]
    windows = "" if texts is whole else ", whole"
    note = f"pre-trained on the {len(whole)} texts of the training set{windows}"
    return {"MLP": scores | {"note": note}}


def fit_and_evaluate(
    model: ULMFiTClassifier,
    train: Sequence[str],
    train_labels: Sequence[str],
    test: Sequence[str],
    test_labels: Sequence[str],
) -> dict[str, Any]:
    """Train on some texts and evaluate on others."""
    with _tf32():
        model.fit(train, train_labels)
        log_proba = model.predict_log_proba(test)
    scores: dict[str, Any] = evaluate(log_proba, list(test_labels), model.classes_)
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
