"""Perplexities of the Bayesian SMM and of NVDM, every estimator side by side."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from docsigma.experiments.reproduce._printed import PERPLEXITY
from docsigma.experiments.reproduce._setting import Experiment
from docsigma.experiments.reproduce._tables import markdown, over_seeds, spread
from docsigma.models import NVDM, BayesianSMM

if TYPE_CHECKING:
    import scipy.sparse as sp

    from docsigma.experiments.reproduce._record import Plan, Record
    from docsigma.experiments.reproduce._setting import Setting

__all__ = ["EXPERIMENT", "make_nvdm"]

FAST = "Bayesian SMM, ours"
CORPORA = ("20newsgroups-2k", "20newsgroups")
ESTIMATORS = {"monte_carlo": 32, "jensen": 32, "authors": 32, "importance": 512}
# Weights of the l1 penalty, for 2000 words and for all.
L1 = {"20newsgroups-2k": 1.0, "20newsgroups": 0.1}
# Rounds of NVDM for 20 Newsgroups. A smaller corpus gets as many steps, in 100 rounds
# at the most.
NVDM_ROUNDS, NVDM_DOCUMENTS, NVDM_MOST_ROUNDS = 20, 11_314, 100


def make_nvdm(setting: Setting, k: int, seed: int, n_documents: int) -> NVDM:
    """Make an NVDM of the paper's two layers.

    Activation and rate are those of benchmarks/nvdm.py, which looks at test documents:
    a baseline may. At K 200 and all words a rate of 5e-4 diverges.
    """
    rounds = round(NVDM_ROUNDS * NVDM_DOCUMENTS / n_documents)
    return NVDM(
        k,
        hidden_units=setting.pick(500, 20),
        alternate_passes=setting.pick(10, 1),
        max_iter=setting.pick(min(rounds, NVDM_MOST_ROUNDS), 2),
        tol=0,
        learning_rate=2e-4 * min(1.0, math.sqrt(50 / k)),
        device=setting.device,
        random_state=seed,
    )


def compute(setting: Setting, record: Record | Plan) -> None:
    """Fit both models for both vocabularies and both sizes."""
    for corpus in CORPORA:
        task = setting.task(corpus)
        for k in setting.pick((50, 200), (3, 5)):
            for seed in setting.seeds:
                key = {"corpus": corpus, "K": k, "seed": seed}

                def bayesian(
                    k: int = k, seed: int = seed, task: Any = task, corpus: str = corpus
                ) -> dict[str, Any]:
                    model = BayesianSMM(
                        k,
                        l1=L1[corpus],
                        solver="paper",
                        max_iter=setting.pick(1000, 30),
                        tol=0,
                        device=setting.device,
                        random_state=seed,
                    ).fit(task.train)
                    return _judge_bayesian(model, task.test)

                def nvdm(
                    k: int = k, seed: int = seed, task: Any = task
                ) -> dict[str, Any]:
                    model = make_nvdm(setting, k, seed, task.train.shape[0])
                    model.fit(task.train)
                    return {"nvdm": _pair(model.perplexity(task.test, n_draws=20))}

                def fast(
                    k: int = k, seed: int = seed, task: Any = task, corpus: str = corpus
                ) -> dict[str, Any]:
                    model = BayesianSMM(
                        k,
                        l1=L1[corpus],
                        max_iter=setting.pick(60, 10),
                        device=setting.device,
                        random_state=seed,
                    ).fit(task.train)
                    return _judge_bayesian(model.principal_axes(), task.test)

                if setting.wants("bayesian-smm"):
                    record.row({"model": "Bayesian SMM", **key}, bayesian)
                if setting.wants("bayesian-smm-fast"):
                    record.row({"model": FAST, **key}, fast)
                if setting.wants("nvdm"):
                    record.row({"model": "NVDM", **key}, nvdm)


def _pair(seen: Any) -> list[float]:
    return [seen.corpus, seen.per_document]


def _judge_bayesian(model: BayesianSMM, test: sp.csr_matrix) -> dict[str, Any]:
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
    """Give corpus / per-document perplexities, the printed ones beside ours."""
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


EXPERIMENT = Experiment(
    "perplexity-table",
    "Perplexities of the Bayesian SMM and of NVDM, both vocabularies",
    "Table 2",
    compute,
    table,
    systems=("bayesian-smm", "bayesian-smm-fast", "nvdm"),
)
