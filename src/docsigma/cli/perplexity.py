"""`docsigma perplexity`: how well a model predicts documents."""

from __future__ import annotations

from typing import Annotated

import typer

from docsigma.cli import _common

__all__ = ["perplexity"]


def perplexity(
    model: _common.ModelFolder,
    docs: _common.DocumentsArgument,
    estimator: Annotated[
        str, typer.Option(help="monte_carlo, jensen, authors or importance.")
    ] = "monte_carlo",
    draws: Annotated[int, typer.Option(help="Draws a document.")] = 32,
    split: _common.SplitOption = _common.Split.test,
    text_column: _common.TextColumn = "text",
    label_column: _common.LabelColumn = "label",
    id_column: _common.IdColumn = "id",
    vocabulary: _common.VocabularyFile = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda or auto.")] = None,
    as_json: _common.JsonFlag = False,
) -> None:
    """Print the perplexity of documents, and the lines to read it against.

    The counts of a folder that `count` wrote are read into memory, all at once.
    """
    smm = _common.load_model(model, device)
    reader = _common.DocumentOptions(
        text_column, label_column, id_column, vocabulary, split
    )
    stored = reader.open_counts(docs)
    if stored is None:
        counted = _common.count_for(smm, reader.load(docs))
    else:
        _common.check_same_words(smm, stored)
        counted = _common.stored_counts(stored, slice(None))
    result = smm.perplexity(counted.counts, estimator=estimator, n_draws=draws)
    n_unknown = int(counted.n_unknown.sum())
    if as_json:
        _common.print_json(result.to_dict() | {"n_unknown": n_unknown})
        return
    rows = _common.table(
        f"Perplexity of {docs} ({_common.number(result.n_documents, 0)} documents, "
        f"{_common.number(result.n_tokens, 0)} tokens)",
        "model",
        ">corpus",
        ">per document",
    )
    name = f"{model}, {estimator}"
    if result.n_draws:
        name += f" with {result.n_draws} draws"
    corpus = f"{_common.number(result.corpus)} ± {result.standard_error:.1f}"
    rows.add_row(name, corpus, _common.number(result.per_document))
    rows.add_row(
        "uni-gram of the training corpus",
        _common.number(result.unigram_corpus),
        _common.number(result.unigram_per_document),
    )
    rows.add_row(
        "each document's own frequencies",
        _common.number(result.maximum_likelihood_corpus),
        _common.number(result.maximum_likelihood_per_document),
    )
    _common.show(rows)
    if result.n_empty or n_unknown:
        _common.show(
            f"left out: {_common.number(n_unknown, 0)} unknown tokens, "
            f"{_common.number(result.n_empty, 0)} documents with no known word"
        )
    if estimator == "authors":
        _common.show("`authors` is no bound: it flatters the model, see the docs.")
