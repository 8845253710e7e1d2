r"""Settings of the mixture that groups documents: each alone, the rest as they are.

    python benchmarks/group_settings.py

Up to 1500 training texts per corpus are divided into as many groups as there are
labels. Of each setting are shown the adjusted Rand index with the labels, and the log
evidence of a quarter of the texts, per text, by groups of the rest; means of two
seeds. The evidence of `MOST_WORDS` cannot be compared, since texts then say more.
`numbers` are the numbers of groups found.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from sklearn.metrics import adjusted_rand_score

from _corpora import CORPORA, load
from _versions import changed_commit
from docsigma.groups import mixture
from peers_machine import describe_run
from quality import write
from search import embedder_of

ROOT = Path(__file__).parents[1]
SETTINGS: dict[str, tuple[float, ...]] = {
    "MOST_WORDS": (30.0, 100.0, 300.0, np.inf),
    "WITHIN": (0.1, 0.2, 0.5),
    "N_STARTS": (1, 3),
}
NUMBERS: dict[str, tuple[float, ...]] = {
    "WITHIN": (0.1, 0.2, 0.5),
    "HELD_OUT": (0.1, 0.25, 0.5),
}


def measure(name: str, folder: Path, n: int, seeds: int) -> dict[str, Any]:
    """Return agreement with the labels, and numbers found, setting by setting."""
    corpus = load(name)
    model = embedder_of(corpus, folder).model_
    rows = np.random.default_rng(2).permutation(len(corpus.texts))[:n]
    truth = corpus.labels[rows]
    counts = model.vocabulary_.count([corpus.texts[row] for row in rows]).counts
    q, k = model.posterior(counts), len(np.unique(truth))
    report: dict[str, Any] = {"n_documents": len(rows), "n_labels": k}

    known, held_out = np.split(np.arange(len(rows)), [int(0.75 * len(rows))])

    def fitted(setting: str, value: float) -> list[float]:
        """Return the Rand index, and the evidence of a quarter that is held out."""
        with patch.object(mixture, setting, value):
            found = []
            information, factors = mixture.documents_as_factors(q)
            for seed in range(seeds):
                whole = mixture.Mixture.fit(information, factors, k, seed)
                codes = whole.proba(factors).argmax(dim=1).numpy()
                part = mixture.Mixture.fit(information, factors[known], k, seed)
                evidence = float(part.evidence(factors[held_out]).mean())
                found.append([adjusted_rand_score(truth, codes), evidence])
        return [round(float(one), 3) for one in np.mean(found, axis=0)]

    def number(setting: str, value: float) -> int:
        with patch.object(mixture, setting, value):
            return mixture.choose_number(*mixture.documents_as_factors(q), 0)

    for setting, values in SETTINGS.items():
        report[setting] = {str(value): fitted(setting, value) for value in values}
    report["numbers"] = {
        setting: {str(value): number(setting, value) for value in values}
        for setting, values in NUMBERS.items()
    }
    return report


def main() -> None:
    """Measure corpora, smallest first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="*", default=CORPORA)
    parser.add_argument("--documents", type=int, default=1500)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--embedders", type=Path, default=ROOT / "benchmarks/.cache")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "benchmarks/results/group-settings.json"
    )
    given = parser.parse_args()
    report = describe_run(torch.get_num_threads()) | changed_commit(ROOT)
    report["corpora"] = {}
    for name in given.corpora:
        found = measure(name, given.embedders, given.documents, given.seeds)
        print(name, found, flush=True)
        report["corpora"][Path(name).name] = found
        write(given.out, report)


if __name__ == "__main__":
    main()
