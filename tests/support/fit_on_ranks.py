"""Fit models on the processes that torchrun started; the first writes what they are.

torchrun --nproc-per-node 2 fit_on_ranks.py CASES OUT
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np

from docsigma import BayesianSMM, load_corpus
from docsigma.ranks import Ranks

COLUMNS = ("components_", "log_unigram_", "components_variance_")


def fit(case, ranks=None):
    """Return the arrays of the model that a case describes, fitted by some ranks."""
    corpus = load_corpus("synthetic", n_train=case.get("n_train", 300), n_test=1)
    counts = corpus.train.counts.astype(case["dtype"])
    settings = {"max_iter": 12, "tol": 0, "random_state": 0, "device": "cpu"}
    model = BayesianSMM(3, **settings | case["settings"])
    options = {"ranks": ranks, "views": case.get("views")}
    if model.prior == "covariates":
        options["covariates"] = np.random.default_rng(0).random((counts.shape[0], 2))
    model.fit(counts, **options)
    found = {name: getattr(model, name) for name in COLUMNS}
    found["bound"] = np.array([row["bound"] for row in model.history_])
    learned = {f"parts.{k}": v for k, v in model.parts_.arrays().items()}
    return {k: v for k, v in (found | learned).items() if v is not None}


def main():
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", "nothing was learned")
    ranks = Ranks.join()
    for number, case in enumerate(json.loads(Path(sys.argv[1]).read_text())):
        found = fit(case, ranks)
        np.savez(f"{sys.argv[2]}-{number}-{ranks.rank}.npz", **found)
    ranks.leave()


if __name__ == "__main__":
    main()
