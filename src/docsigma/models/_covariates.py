"""Covariates of a model's documents."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from docsigma._array_checks import check_finite, check_shape
from docsigma.estep import infer
from docsigma.estep.integrate import integrate_documents
from docsigma.exceptions import InputError
from docsigma.kernels import CountTensor
from docsigma.priors import CovariatePrior

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch
    from numpy.typing import ArrayLike, NDArray

    from docsigma.covariances import Gaussians
    from docsigma.models._count_model import CountsLike
    from docsigma.models.bayesian_smm import BayesianSMM
    from docsigma.priors import Prior, PriorTensors

# The weights stay when none moves by more than this many standard deviations; then
# integrating the documents out takes the rest of the way.
SETTLED = 0.1
MOST_STEPS = 50


def check_covariates(
    prior: Prior, covariates: ArrayLike | None, n_documents: int
) -> NDArray[np.float64] | None:
    """Return covariates as an array with a row per document, if there are any."""
    if covariates is None:
        return None
    if not isinstance(prior, CovariatePrior):
        raise InputError(
            f'the prior {prior!r} takes no `covariates`: set prior="covariates"'
        )
    found = np.asarray(covariates, dtype=np.float64)
    found = found[:, None] if found.ndim == 1 else found
    width = found.shape[-1]
    if hasattr(prior, "covariate_mean_"):
        width = len(prior.covariate_mean_)
    check_shape("covariates", found, (n_documents, width))
    check_finite("`covariates`", found)
    return found


def training_covariates(
    prior: Prior, covariates: ArrayLike | None, n_documents: int
) -> NDArray[np.float64] | None:
    """Return the covariates of a training, which the prior notes."""
    given = check_covariates(prior, covariates, n_documents)
    if isinstance(prior, CovariatePrior):
        if given is None:
            raise InputError(
                "the prior of covariates needs `covariates`, one row for each of the "
                f"{n_documents} documents"
            )
        prior.describe(given)
    return given


def learn_covariate_prior(
    model: BayesianSMM, X: CountsLike, covariates: ArrayLike
) -> BayesianSMM:
    """Return the model with a prior of covariates, its words unchanged."""
    known = model.parts_.prior
    gaussian = known.gaussian(model.n_components)
    if isinstance(known, CovariatePrior):
        prior = CovariatePrior(known.precision, known.weight_precision)
    elif gaussian.form == "isotropic" and not gaussian.mean.any():
        prior = CovariatePrior(float(gaussian.precision))
    else:
        raise InputError(
            "covariates need a model whose prior is isotropic or of covariates, got "
            f"{known!r}"
        )
    counts = model._check_counts(X, reset=False)
    given = training_covariates(prior, covariates, len(counts))
    assert given is not None
    learned = copy.copy(model)
    learned.prior = prior
    learned.parts_ = replace(copy.deepcopy(model.parts_), prior=prior)
    learned.__dict__.pop("_stream", None)

    def documents() -> Iterator[tuple[CountTensor, Gaussians, PriorTensors]]:
        start, family = 0, learned.parts_.covariance
        for block in counts.iter_blocks():
            own = given[start : start + block.shape[0]]
            start += block.shape[0]
            under = learned._model(own)
            counted = CountTensor(block, under.bias)
            q = infer(
                counted,
                under,
                family,
                max_iter=model.inference_max_iter,
                tol=model.inference_tol,
            ).posterior
            yield counted, q, under.prior

    with model._arithmetic():
        for _ in range(MOST_STEPS):
            totals: dict[str, torch.Tensor] = {}
            for counted, q, own in documents():
                under = replace(learned._model(), prior=own)
                for name, value in prior.sums(counted, q, under).items():
                    totals[name] = totals[name] + value if name in totals else value
            prior.update(totals)
            if prior.last_move_ < SETTLED:
                break
        words = learned._model()
        integrate_documents(prior, words, learned.parts_.covariance, documents())
    return learned
