"""Write what this docsigma saves, and what it computes from it.

The folders beside this file were written by commit 524473c, whose GLCU had the
parameter ``uncertainty``; tests load them with the code of today. For the folders of
another commit, run this file with that commit's ``src`` in PYTHONPATH::

    PYTHONPATH=<checkout>/src python tests/data/saved-before/make.py <folder>

A commit without ``paper/`` has SMM and NVDM in ``docsigma``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from docsigma import (
    BayesianSMM,
    GaussianPosterior,
    UncertainGaussianClassifier,
    load_corpus,
)
from docsigma.classifiers import CountsClassifier
from docsigma_paper import NVDM, SMM

N_WORDS = 60
N_DOCUMENTS = 20


def main(folder: Path) -> None:
    corpus = load_corpus("synthetic")
    train = corpus.train.counts[:, :N_WORDS]
    documents = corpus.test.counts[:N_DOCUMENTS, :N_WORDS]
    words = corpus.train.words[:N_WORDS]
    # A tolerance far below that of the tests, which then follows from it.
    tight = {"l1": 0.01, "max_iter": 5, "inference_tol": 1e-4, "random_state": 0}
    smm = BayesianSMM(3, prior_precision=1.0, **tight).fit(train)
    points = SMM(3, **tight).fit(train)
    nvdm = NVDM(
        3,
        hidden_units=8,
        max_iter=5,
        alternate_passes=2,
        learning_rate=1e-3,
        random_state=0,
    ).fit(train)
    expected = {"counts": documents.toarray().astype(int).tolist()}
    for name, model in (("bayesian-smm", smm), ("nvdm", nvdm)):
        q = model.posterior(documents)
        expected[name] = {"mean": q.mean.tolist(), "variance": q.variance.tolist()}
    expected["smm"] = {"mean": points.transform(documents).tolist()}
    points.save(folder / "smm")
    nvdm.save(folder / "nvdm")

    seen, unseen = smm.posterior(train), smm.posterior(documents)
    unseen.save(folder / "posterior.safetensors")
    root = np.random.default_rng(0).normal(size=(N_DOCUMENTS, 3, 3))
    full = GaussianPosterior(unseen.mean, covariance=root @ root.transpose(0, 2, 1))
    full.save(folder / "posterior-full.safetensors")
    expected["posterior-full"] = {"covariance": full.covariance.tolist()}
    place = np.digitize(corpus.truth.train_embeddings[:, 0], [-0.5, 0.5])
    labels = np.array(["down", "level", "up"])[place]
    topics = {
        f"classifier-{kind}": CountsClassifier.fit(smm, seen, labels, kind=kind)
        for kind in ("glcu", "glc", "lr")
    }
    exact = UncertainGaussianClassifier(uncertainty="none").fit(seen, labels)
    topics["classifier-glcu-none"] = CountsClassifier(smm, exact, "glcu")
    for name, classifier in topics.items():
        classifier.save(folder / name)
        log_proba = classifier.predict_log_proba(unseen)
        expected[name] = {
            "classes": classifier.classes_.tolist(),
            "log_proba": log_proba.tolist(),
        }
    smm.set_vocabulary(words).save(folder / "bayesian-smm")
    (folder / "expected.json").write_text(json.dumps(expected) + "\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
