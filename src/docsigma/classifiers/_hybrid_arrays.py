"""A hybrid classifier as arrays, for files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from docsigma.classifiers._mixing import Mixture
from docsigma.classifiers._softmax_regression import Coefficients
from docsigma.classifiers.conformal import PredictionSets
from docsigma.classifiers.evidence import EvidenceClassifier
from docsigma.exceptions import InputError
from docsigma.parts import under

if TYPE_CHECKING:
    from docsigma.classifiers.hybrid import HybridClassifier

Arrays = dict[str, NDArray[Any]]
EVIDENCE = (
    "means_",
    "covariance_",
    "precision_",
    "class_weight_",
    "class_prior_",
    "log_prior_",
    "centre_",
    "between_covariance_",
    "tempering_",
    "smoothing_",
)


def pack_hybrid(hybrid: HybridClassifier) -> Arrays:
    """Return the arrays of a fitted hybrid."""
    found = hybrid.coefficients_
    arrays: dict[str, Any] = {
        "class_prior_": hybrid.class_prior_,
        "settings": [hybrid.C_, hybrid.scale_, hybrid.soft_, hybrid._norm],
        "idf": hybrid._idf,
        "centre": hybrid._centre,
        "mixture": hybrid.mixture_.weights,
        "words": found.words,
        "embedding": found.embedding,
        "intercept": found.intercept,
        "calibration": hybrid.calibration_.to_array(),
    }
    score = hybrid.score_
    if score is not None:
        if not isinstance(score, EvidenceClassifier):
            raise InputError(
                f"a hybrid with a {type(score).__name__} as its score cannot be saved"
            )
        arrays |= {f"score.{name}": getattr(score, name) for name in EVIDENCE}
        arrays["score.unlabelled_weight_"] = [score.unlabelled_weight_]
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}


def restore_hybrid(hybrid: HybridClassifier, arrays: Arrays) -> None:
    """Set in a hybrid what :func:`pack_hybrid` returned."""
    hybrid.C_, hybrid.scale_, hybrid.soft_, hybrid._norm = arrays["settings"].tolist()
    hybrid.class_prior_ = arrays["class_prior_"]
    hybrid._idf, hybrid._centre = arrays["idf"], arrays["centre"]
    hybrid.mixture_ = Mixture(arrays["mixture"])
    hybrid.coefficients_ = Coefficients(
        arrays["words"], arrays["embedding"], arrays["intercept"], hybrid.scale_
    )
    hybrid.calibration_ = PredictionSets(*arrays["calibration"])
    own = under("score.", arrays)
    hybrid.score_ = None
    if own:
        score = EvidenceClassifier(covariance="diagonal")
        score.unlabelled_weight_ = float(own.pop("unlabelled_weight_")[0])
        for name in EVIDENCE:
            setattr(score, name, own[name])
        score.tempering_ = tuple(own["tempering_"].tolist())
        score.smoothing_ = float(own["smoothing_"].item())
        score.classes_ = np.arange(len(score.means_))
        score.n_features_in_ = 2 * score.means_.shape[1]
        hybrid.score_ = score
