"""Perplexities of the Bayesian SMM and of NVDM, every estimator side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docsigma.models import BayesianSMM
from docsigma_paper.reproduce._dots import Dots, draw_dots
from docsigma_paper.reproduce._models import (
    algorithm1_parameters,
    make_nvdm,
    nvdm_parameters,
)
from docsigma_paper.reproduce._setting import Experiment
from docsigma_paper.reproduce._tables import markdown, over_seeds, spread
from docsigma_paper.reproduce.paper_values import PERPLEXITY

if TYPE_CHECKING:
    import scipy.sparse as sp
    from matplotlib.figure import Figure

    from docsigma_paper.reproduce._record import Plan, Record
    from docsigma_paper.reproduce._setting import Setting

__all__ = ["EXPERIMENT"]

FAST = "Bayesian SMM, ours"
CORPORA = ("20newsgroups-2k", "20newsgroups")
ESTIMATORS = {"monte_carlo": 32, "jensen": 32, "authors": 32, "importance": 512}
# Weights of the l1 penalty, for 2000 words and for all.
L1 = {"20newsgroups-2k": 1.0, "20newsgroups": 0.1}
MODELS = {"bayesian-smm": "Bayesian SMM", "bayesian-smm-fast": FAST, "nvdm": "NVDM"}


def compute(setting: Setting, record: Record | Plan) -> None:
    """Fit the models for both vocabularies and both sizes."""
    for corpus in CORPORA:
        task = setting.task(corpus)
        for k in setting.pick((50, 200), (3, 5)):
            for seed in setting.seeds:
                for system, model in MODELS.items():
                    if not setting.wants(system):
                        continue
                    parameters = _parameters(setting, corpus, model, k)

                    def run(
                        model: str = model,
                        task: Any = task,
                        seed: int = seed,
                        parameters: dict[str, Any] = parameters,
                    ) -> dict[str, Any]:
                        return _evaluate(setting, model, task, seed, parameters)

                    key = {"model": model, "corpus": corpus, "K": k, "seed": seed}
                    record.row(key, parameters, run)


def _parameters(setting: Setting, corpus: str, model: str, k: int) -> dict[str, Any]:
    if model == "NVDM":
        return nvdm_parameters(setting, k, corpus)
    if model == FAST:
        passes = setting.pick(60, 10)
        return {"n_components": k, "l1": L1[corpus], "max_iter": passes}
    return algorithm1_parameters(k, L1[corpus], setting.pick(1000, 30))


def _evaluate(
    setting: Setting, model: str, task: Any, seed: int, parameters: dict[str, Any]
) -> dict[str, Any]:
    if model == "NVDM":
        nvdm = make_nvdm(setting, parameters, seed).fit(task.train)
        return {"nvdm": _pair(nvdm.perplexity(task.test, n_draws=20))}
    fitted = BayesianSMM(**parameters, device=setting.device, random_state=seed).fit(
        task.train
    )
    if model == FAST:
        fitted = fitted.principal_axes()
    return _evaluate_bayesian(fitted, task.test)


def _pair(seen: Any) -> list[float]:
    return [seen.corpus, seen.per_document]


def _evaluate_bayesian(model: BayesianSMM, test: sp.csr_matrix) -> dict[str, Any]:
    q = model.posterior(test)
    result: dict[str, Any] = {}
    for estimator, n_draws in ESTIMATORS.items():
        seen = model.perplexity(test, estimator=estimator, n_draws=n_draws, posterior=q)
        result[estimator] = _pair(seen)
    result["unigram"] = [seen.unigram_corpus, seen.unigram_per_document]
    result["ml"] = [
        seen.maximum_likelihood_corpus,
        seen.maximum_likelihood_per_document,
    ]
    return result


def table(rows: list[dict[str, Any]]) -> str:
    """Return corpus / per-document perplexities, the printed ones beside ours."""
    lines: list[list[str]] = []
    seen_lines: list[list[str]] = []
    for key, runs in over_seeds(rows).items():
        named = dict(key)
        corpus, model, k = named["corpus"], named["model"], named["K"]
        printed = PERPLEXITY.get((corpus, model, k))
        cells = [_cell(runs, name) for name in ("monte_carlo", "jensen", "importance")]
        if model == "NVDM":
            cells = [_cell(runs, "nvdm"), "-", "-"]
        lines.append(
            [
                corpus,
                model,
                str(k),
                "-" if printed is None else f"{printed[0]} / {printed[1]}",
                _cell(runs, "authors"),
                *cells,
            ]
        )
        if model == "Bayesian SMM" and corpus not in [line[0] for line in seen_lines]:
            printed = PERPLEXITY.get((corpus, "ML estimate", 0))
            seen_lines.append(
                [
                    corpus,
                    _cell(runs, "unigram"),
                    _cell(runs, "ml"),
                    "-" if printed is None else f"{printed[0]} / {printed[1]}",
                ]
            )
    heading = [
        "corpus",
        "model",
        ">K",
        ">printed",
        ">authors' estimator",
        ">bound",
        ">Jensen bound",
        ">importance",
    ]
    other = ["corpus", ">uni-gram", ">maximum likelihood", ">printed"]
    return (
        "Test perplexity of the corpus / per document; "
        "*ours* is the fast solver with more passes, in its principal axes:\n\n"
        + markdown(heading, lines)
        + "\n\nLines of reference:\n\n"
        + markdown(other, seen_lines)
    )


def _cell(runs: list[dict[str, Any]], name: str) -> str:
    pairs = [run[name] for run in runs if name in run]
    if not pairs:
        return "-"
    return " / ".join(spread([pair[part] for pair in pairs], 0) for part in (0, 1))


def figure(rows: list[dict[str, Any]]) -> Figure:
    """Draw test perplexities per document: the bound, the authors', the printed."""
    panels = {}
    for corpus in dict.fromkeys(row["key"]["corpus"] for row in rows):
        bound, authors = Dots("bound"), Dots("authors' estimator")
        printed = Dots("printed", hollow=True)
        for row in rows:
            key = row["key"]
            if key["corpus"] != corpus:
                continue
            line = f"{key['model']}, K {key['K']}"
            bound.add(line, [row["nvdm" if "nvdm" in row else "monte_carlo"][1]])
            if "authors" in row:
                authors.add(line, [row["authors"][1]])
            theirs = PERPLEXITY.get((corpus, key["model"], key["K"]))
            if theirs is not None:
                printed.add(line, [theirs[1]])
        panels[f"{corpus}: perplexity"] = [bound, authors, printed]
    return draw_dots(panels)


EXPERIMENT = Experiment(
    "perplexity-table",
    "Perplexities of the Bayesian SMM and of NVDM, both vocabularies",
    "Table 2",
    compute,
    table,
    figure,
    systems=tuple(MODELS),
)
