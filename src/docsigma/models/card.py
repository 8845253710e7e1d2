"""The card of a model: the README that people and model hubs read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from docsigma.models.components import describe_dimensions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from docsigma.models._count_model import CountModel

# Metadata for model hubs: YAML between two lines of dashes.
_FRONT = """---
library_name: docsigma
pipeline_tag: {task}
tags:
- document-embeddings
- topic-modeling
- uncertainty
- {kind}
---
"""


def model_card(model: CountModel, classes: Sequence[object] | None = None) -> str:
    """Return a README for a fitted model, or for a classifier with these `classes`.

    Examples
    --------
    >>> from docsigma import BayesianSMM, load_corpus
    >>> smm = BayesianSMM(2, max_iter=2).fit(load_corpus("synthetic").train.counts)
    >>> print(model_card(smm).splitlines()[1])
    library_name: docsigma
    """
    kind, n_words = type(model).__name__, int(model.n_features_in_)
    task = "feature-extraction" if classes is None else "text-classification"
    known = model.vocabulary_ is not None
    views = list(getattr(model, "vocabularies_", {}))
    what = f"a {'point' if model.gives_points else 'Gaussian'} in {model.n_components}"
    about = f"Word counts of a document go in, {what} dimensions comes out"
    if not model.gives_points:
        about += ": a mean, where the document lies, and a variance, how uncertain "
        about += "that is"
    parts = [_FRONT.format(task=task, kind=kind), f"# {kind}", f"{about}."]
    if classes is not None:
        named = ", ".join(_escape(str(name)) for name in list(classes)[:20])
        more = ", ..." if len(classes) > 20 else ""
        parts.append(f"With a classifier of {len(classes)} classes: {named}{more}.")
    loading = _loading(classes is not None, known, views)
    parts += [loading, "## Trained on", _training(model)]
    if known:
        parts += ["## Words of the ten heaviest dimensions", _words(model)]
    settings = {k: v for k, v in model.get_params(deep=False).items() if k != "verbose"}
    parts += ["## Settings", _table(settings)]
    named = "known by name" if known or views else "not known"
    parts.append(f"Words: {n_words}, {named}.")
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _loading(classifies: bool, known: bool, views: Sequence[str]) -> str:
    name, use = "DocumentEmbedder", "posterior(texts)"
    if classifies:
        name, use = "TopicClassifier", "predict_proba(texts)"
        if views:
            use = f"in_language({views[0]!r}).{use}"
    elif views:
        name, use = "ParallelEmbedder", f"posterior(texts, language={views[0]!r})"
    elif not known:
        name, use = "load_model", "posterior(counts)"
    load = name if name == "load_model" else f"{name}.load"
    program = f"from docsigma import {name}\n\nmodel = {load}(folder)\nmodel.{use}"
    return f"```python\n{program}\n```"


def _training(model: CountModel) -> str:
    trained = model.trained_on_
    last = model.history_[-1] if model.history_ else {}
    ended = "the bound had settled" if model.converged_ else "all were done"
    zeros = float((model.components_ == 0).mean())
    rows = {
        "corpus": trained.get("corpus", "not recorded"),
        "documents": trained.get("n_documents"),
        "tokens": trained.get("n_tokens"),
        "languages": ", ".join(getattr(model, "views_", None) or ()) or None,
        "words in the vocabulary": int(model.n_features_in_),
        "covariates": _covariates(trained),
        "passes": f"{model.n_iter_} ({ended})",
        "bound": _number(last.get("bound")),
        "KL to the prior per document (nats)": _number(last.get("kl")),
        "loadings that are zero": f"{100 * zeros:.1f} %",
        "seconds": _number(last.get("seconds")),
    }
    return _table({name: value for name, value in rows.items() if value is not None})


def _covariates(trained: Mapping[str, Any]) -> str | None:
    """Return the covariates of a training: their formula, or all columns."""
    design = trained.get("design")
    if design is None:
        return None
    columns = dict.fromkeys(factor["column"] for factor in design["factors"])
    return design["formula"] or " + ".join(columns)


def _words(model: CountModel) -> str:
    lines = []
    for d in describe_dimensions(model, n_words=8)[:10]:
        ends = (" ".join(map(_escape, end)) for end in (d.top, d.bottom))
        lines.append(f"- {d.index}: " + " — ".join(ends))
    return "\n".join(lines)


def _table(rows: Mapping[str, Any]) -> str:
    lines = [f"| {name} | {_escape(str(value))} |" for name, value in rows.items()]
    return "\n".join(["| what | value |", "| --- | --- |", *lines])


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:.6g}"


def _escape(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", " ".join(text.split()))
