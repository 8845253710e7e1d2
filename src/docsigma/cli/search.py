"""`docsigma search`: the documents most like a text."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from docsigma.cli import _common
from docsigma.cli._common import option

if TYPE_CHECKING:
    from docsigma.search import DocumentIndex, Match

# Head of the column of scores, by what ranks.
SCORES = {
    "joint": "score",
    "words": "BM25",
    "same_topic": "log ratio",
    "same_text": "log ratio",
    "cosine": "cosine",
    "wasserstein2": "distance",
    "kl": "divergence",
}
# A query with this p-value or less is said to be like nothing in the index.
UNLIKE = 0.05
# Suffixes of text files.
TEXT_FILES = (".txt", ".md", ".json", ".jsonl", ".csv", ".html", ".xml", ".eml")


def search(
    index: Annotated[Path, typer.Argument(help="Folder made by `index`.")],
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help="A text, or a file of text.")
    ],
    *,
    n: Annotated[int, typer.Option("-n", "--n", help="Documents to find.")] = 10,
    label: Annotated[
        list[str] | None, option("Only documents with this label; repeatable.", "all")
    ] = None,
    max_variance: Annotated[
        float | None,
        option("Only documents whose total variance is at most this.", "all"),
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Compare every document.")
    ] = False,
    language: Annotated[
        str | None, option("Language of the query.", "that of the documents")
    ] = None,
    as_json: _common.JsonFlag = False,
) -> None:
    """Print the documents most like a text, and the words that matched.

    A file is one query, however many lines it has.

    Example: docsigma search tickets-index "the printer is on fire"
    """
    from docsigma.search import DocumentIndex

    _common.check_positive("--n", n)
    found = _common.in_language(DocumentIndex.load(index), language)
    texts = [_text(query)]
    counts = found.count(texts)
    filters: Any = {"labels": label, "max_total_variance": max_variance}
    (matches,) = found.search_posterior(
        counts, found.embed(counts), n, texts, **filters, exact=exact
    )
    n_tokens, p_value = int(counts.sum()), None
    if found.has_p_values:
        p_value = float(found.p_values(texts)[0])
    if as_json:
        rows = [asdict(match) for match in matches]
        _common.print_json(
            {
                "n_tokens": n_tokens,
                "metric": found.index.metric,
                "p_value": p_value,
                "matches": rows,
            }
        )
    elif not n_tokens:
        empty = "the query has no word" if not texts[0].split() else None
        nothing = empty or "no word of the query is known to the model"
        _common.show(f"{nothing}: nothing is found")
    elif not matches:
        asked = [f"the label {' or '.join(label)}"] if label else []
        if max_variance is not None:
            asked.append(f"a total variance of at most {max_variance:g}")
        _common.show(f"no document of the index has {' and '.join(asked)}")
    else:
        known = "1 known word" if n_tokens == 1 else f"{n_tokens} known words"
        _show(found, matches, f"{known} in {index}")
        if p_value is not None and p_value <= UNLIKE:
            _common.show(
                f"The query may be like nothing in {index}: only {100 * p_value:.0f} % "
                "of the indexed documents of its length have so few rare words in "
                "common with another document"
            )


def _text(query: str) -> str:
    """Return the text of the file that the query names, or else the query."""
    from docsigma.exceptions import InputError

    # A file's name has at most 255 bytes.
    if len(query.encode()) > 255 or "\0" in query:
        return query
    if not Path(query).is_file():
        # One word with a separator or a suffix is a mistyped path, not a query.
        looks_like_a_path = "/" in query or Path(query).suffix in TEXT_FILES
        if looks_like_a_path and not query.split()[1:]:
            raise InputError(f"there is no file {query} to read the query from")
        return query
    try:
        return Path(query).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {query} as UTF-8 text: {error}") from error


def _show(found: DocumentIndex, matches: list[Match], title: str) -> None:
    what = SCORES[found.index.metric]
    same = "same text" if found.index.metric == "same_text" else "same topic"
    known = [] if matches[0].probability is None else [f">{same}"]
    labelled = any(match.label is not None for match in matches)
    label = ["label"] if labelled else []
    shared = ["words"] if found._language is None else []
    table = _common.table(
        title, f">{what}", *known, "document", *label, *shared, "begins with"
    )
    for match in matches:
        numbers = [f"{match.score:.2f}"]
        if match.probability is not None:
            numbers.append(f"{100 * match.probability:.0f} %")
        label = [match.label or ""] if labelled else []
        words = " ".join(word for word, _ in match.words)
        begins = _common.beginning(match.excerpt or "")
        table.add_row(*numbers, match.id, *label, *([words] if shared else []), begins)
    _common.show(table)
