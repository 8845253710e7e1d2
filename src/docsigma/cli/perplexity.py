"""`docsigma perplexity`: how well a model predicts documents."""

from __future__ import annotations

from typing import Annotated

from docsigma.cli import _common
from docsigma.cli._common import number, option
from docsigma.exceptions import InputError


@_common.with_options()
def perplexity(
    model: _common.ModelFolder,
    docs: _common.DocumentsArgument,
    *,
    estimator: Annotated[
        str,
        option(
            "monte_carlo (a valid bound), jensen (looser, no draws), importance "
            "(tighter, slower), or authors (the paper's code, not a bound)."
        ),
    ] = "monte_carlo",
    draws: Annotated[
        int | None, option("Draws per document.", "32; 20 for NVDM")
    ] = None,
    reader: _common.DocumentOptions,
    device: _common.Device = None,
    as_json: _common.JsonFlag = False,
) -> None:
    """Print the perplexity of documents: lower is better.

    Counts that `count` wrote are read in blocks. A model that gives points, such as
    SMM, has no perplexity.
    """
    from docsigma.models._gaussian_model import GaussianModel

    smm = _common.load_model(model, device, reader.language)
    if smm.gives_points or not isinstance(smm, GaussianModel):
        raise InputError(
            f"{model} holds a model of the kind {type(smm).__name__}, which gives "
            "points, not Gaussians, and so has no perplexity"
        )
    source = reader.count(docs, smm)
    result = smm.perplexity(source.counts, estimator=estimator, n_draws=draws)
    n_unknown = int(source.n_unknown.sum())
    if as_json:
        _common.print_json(result.to_dict() | {"n_unknown": n_unknown})
        return
    documents, tokens = number(result.n_documents, 0), number(result.n_tokens, 0)
    title = f"Perplexity of {docs} ({documents} documents, {tokens} tokens)"
    rows = _common.table(title, "model", ">corpus", ">per document")
    name = f"{model}, {estimator}"
    if result.n_draws:
        name += f" with {result.n_draws} draws"
    corpus = f"{number(result.corpus)} ± {result.standard_error:.1f}"
    rows.add_row(name, corpus, number(result.per_document))
    rows.add_row(
        "uni-gram of the training corpus",
        number(result.unigram_corpus),
        number(result.unigram_per_document),
    )
    rows.add_row(
        "each document's own frequencies",
        number(result.maximum_likelihood_corpus),
        number(result.maximum_likelihood_per_document),
    )
    _common.show(rows)
    if result.n_empty or n_unknown:
        _common.show(
            f"left out: {number(n_unknown, 0)} unknown tokens, "
            f"{number(result.n_empty, 0)} documents with no known word"
        )
    if estimator == "authors":
        _common.show("`authors` is not a bound: it is too optimistic, see the docs.")
