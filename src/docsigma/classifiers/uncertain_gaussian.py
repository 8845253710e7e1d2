"""The Gaussian linear classifier with uncertainty (GLCU)."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from docsigma._devices import choose_device
from docsigma.classifiers._base import BaseGaussianClassifier
from docsigma.classifiers._covariance import feature_scale, floor_covariance
from docsigma.classifiers._expectation import expectation_step, log_densities
from docsigma.classifiers._labels import TrainingLabels
from docsigma.classifiers._maximization import em_update, scoring_update
from docsigma.classifiers._uncertain_documents import UncertainDocuments, is_posterior
from docsigma.classifiers.gaussian_linear import GaussianLinearClassifier
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from docsigma.classifiers._expectation import Expectation

__all__ = ["UncertainGaussianClassifier"]

# A model may leave components unused, whose means are all but constant. Next to their
# uncertainties, a floor that follows the means alone is lost in rounding.
_LEAST_SCALE = 1e-8


class UncertainGaussianClassifier(BaseGaussianClassifier):
    r"""Gaussian classes for documents that are known up to a Gaussian.

    The observation is the mean of a document's posterior, which differs from the
    class mean by noise of the class and by the document's own uncertainty:

    .. math::

        \nu_d = \mu_{\ell(d)} + y_d + \varepsilon_d, \quad
        y_d \sim \mathcal{N}(0, \Gamma_d^{-1}), \quad
        \varepsilon_d \sim \mathcal{N}(0, D^{-1}).

    Training maximises, over class means and the shared precision,

    .. math::

        \frac1n \sum_d \log \mathcal{N}
        (\nu_d \mid \mu_{\ell(d)}, D^{-1} + \Gamma_d^{-1}),

    by EM from the solution of GLC on. A class's probability follows by Bayes'
    rule, so that an uncertain document gets less certain probabilities.
    Without uncertainty it is :class:`GaussianLinearClassifier`.

    Parameters
    ----------
    uncertainty : {"columns", "none"}
        What an array holds. ``"columns"``: means in the first half of the columns
        and variances in the second. ``"none"``: means only, known exactly. A
        posterior with ``mean`` and ``variance`` or ``covariance`` is always
        understood; ``"none"`` takes its mean only.
    priors : {"empirical", "uniform"}, array-like of shape (n_classes,) or None
        Class priors; the array follows the sorted classes, None is
        ``"empirical"``: the classes' shares of the training weight.
    regularization : float
        Eigenvalues of the within-class covariance, each feature scaled to
        variance 1, are raised to this floor, in every M-step. (A feature whose
        means hardly vary next to its uncertainties is scaled by these.) The
        likelihood is then the largest of all covariances above the floor.
    tol : float
        EM ends when the mean log likelihood of a document gains less, in nats.
    max_iter : int
        Most passes over the documents.
    accelerate : bool
        Try a Fisher-scoring step first and keep it when the likelihood does not
        fall; else take the EM step. False is the paper's EM throughout. Both rise
        in every step and end in the same place.
    device : str
        ``"cpu"``, ``"cuda"``, any torch device with float64, or ``"auto"``: the GPU
        if there is one.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels of the classes.
    class_weight_ : ndarray of shape (n_classes,)
        Total training weight of each class.
    class_prior_, log_prior_ : ndarray of shape (n_classes,)
        Prior probabilities and their logarithms.
    means_ : ndarray of shape (n_classes, n_components)
        Class means :math:`\mu_\ell`.
    covariance_, precision_ : ndarray of shape (n_components, n_components)
        Shared within-class covariance :math:`D^{-1}` and precision :math:`D`.
    log_likelihood_history_ : ndarray
        Mean log likelihood of a document under GLC's solution and after each
        step that was kept; it never falls.
    n_iter_ : int
        Passes over the documents after the first, rejected steps included.
    converged_ : bool
        Whether the gain fell below `tol`.
    n_features_in_ : int
        Columns of `X`: twice the size of the embeddings if it brings variances.

    Examples
    --------
    Two documents at the same place, of which the second is hardly known:

    >>> X = np.array([[-1.2, 0.1], [-0.8, 0.1], [0.8, 0.1], [1.2, 0.1]])
    >>> glcu = UncertainGaussianClassifier().fit(X, ["no", "no", "yes", "yes"])
    >>> glcu.predict_proba([[0.5, 0.1], [0.5, 9.0]]).round(2)
    array([[0.  , 1.  ],
           [0.47, 0.53]])
    """

    n_iter_: int
    converged_: bool
    log_likelihood_history_: NDArray[np.float64]

    def __init__(
        self,
        *,
        uncertainty: str = "columns",
        priors: Any = "empirical",
        regularization: float = 1e-6,
        tol: float = 1e-6,
        max_iter: int = 200,
        accelerate: bool = True,
        device: str = "auto",
    ) -> None:
        self.uncertainty = uncertainty
        self.priors = priors
        self.regularization = regularization
        self.tol = tol
        self.max_iter = max_iter
        self.accelerate = accelerate
        self.device = device

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Estimate class means and the shared covariance by EM.

        Parameters
        ----------
        X : array-like of shape (n_documents, 2 * n_components) or posterior
            Means and variances side by side, or an object whose attributes are
            ``mean`` and either ``variance`` (documents x components) or
            ``covariance`` (documents x components x components).
        y : array-like of shape (n_documents,)
            Labels: strings or integers.
        sample_weight : array-like of shape (n_documents,), optional
            A weight of 2 counts a document twice, one of 0 leaves it out.

        Returns
        -------
        self
            The trained classifier.
        """
        floor = self._check_parameters()
        if is_posterior(X):
            if y is None:
                raise InputError("`y` is missing: the classifier needs labels")
            documents = self._documents(X, reset=True)
            labels = TrainingLabels.check(y, len(documents), sample_weight)
        else:
            X, y = validate_data(self, X, y, dtype=np.float64, ensure_all_finite=False)
            labels = TrainingLabels.check(y, len(X), sample_weight)
            documents = self._from_array(X)
        documents = documents.take(labels.kept)
        start = GaussianLinearClassifier(regularization=floor)
        start.fit(documents.mean, labels.codes, labels.weights)
        means, covariance = start.means_, start.covariance_
        if documents.spread is None:
            # GLC is the maximum: there is nothing for EM to gain.
            gains = start.log_likelihood(documents.mean, labels.codes)
            self.n_iter_, self.converged_ = 1, True
            self.log_likelihood_history_ = np.array(
                [np.average(gains, weights=labels.weights)]
            )
        else:
            means, covariance = self._maximise(documents, labels, means, covariance)
        self._store(labels, means, covariance)
        return self

    def _maximise(
        self,
        documents: UncertainDocuments,
        labels: TrainingLabels,
        means: NDArray[np.float64],
        covariance: NDArray[np.float64],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Raise the likelihood until it gains less than `tol`."""
        class_weights = labels.class_weights
        device = choose_device(self.device)
        uncertainty = np.diag(documents.mean_covariance(labels.weights))
        scale = feature_scale(documents.mean, labels.weights)
        scale = np.maximum(scale, _LEAST_SCALE * uncertainty)

        def evaluate(means: Any, covariance: Any) -> tuple[Any, Any, Expectation]:
            covariance = floor_covariance(covariance, scale, self.regularization)
            expectation = expectation_step(documents, labels, means, covariance, device)
            return means, covariance, expectation

        means, covariance, now = evaluate(means, covariance)
        if np.isnan(now.log_likelihood):
            raise InputError("a covariance of `X` is not positive semi-definite")
        history = [now.log_likelihood]
        step, passes, converged = 1.0, 0, False
        while passes < self.max_iter and not converged:
            passes += 1
            trial = None
            if self.accelerate:
                trial = evaluate(
                    *scoring_update(now, means, covariance, class_weights, step)
                )
                gain = trial[2].log_likelihood - now.log_likelihood
                if gain >= 0:
                    step = min(1.0, 2 * step)
                else:
                    small = -gain < self.tol
                    step, trial = step / 2, None
                    if passes == self.max_iter:
                        break
                    passes += 1
            if trial is None:
                trial = evaluate(*em_update(now, means, covariance, class_weights))
                gain = trial[2].log_likelihood - now.log_likelihood
                if not gain >= 0:
                    # Only rounding is left; the last parameters are the best.
                    converged = True
                    break
                converged = gain < self.tol and (not self.accelerate or small)
            else:
                converged = gain < self.tol
            means, covariance, now = trial
            history.append(now.log_likelihood)
        if not converged:
            warnings.warn(
                f"EM did not converge in `max_iter` = {self.max_iter} passes; the "
                "last one may still have gained more than `tol` = "
                f"{self.tol} nats a document",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.n_iter_, self.converged_ = passes, converged
        self.log_likelihood_history_ = np.array(history)
        return means, covariance

    def _check_parameters(self) -> float:
        if self.uncertainty not in ("columns", "none"):
            raise InputError(
                f"`uncertainty` must be 'columns' or 'none', got {self.uncertainty!r}"
            )
        if not isinstance(self.tol, Real) or not self.tol >= 0:
            raise InputError(f"`tol` must not be negative, got {self.tol!r}")
        if not isinstance(self.max_iter, Integral) or self.max_iter < 1:
            raise InputError(f"`max_iter` must be at least 1, got {self.max_iter!r}")
        return self._check_regularization()

    def _documents(self, X: Any, *, reset: bool) -> UncertainDocuments:
        if not is_posterior(X):
            return self._from_array(
                validate_data(
                    self, X, dtype=np.float64, reset=reset, ensure_all_finite=False
                )
            )
        documents = UncertainDocuments.from_posterior(X)
        if self.uncertainty == "none":
            documents = UncertainDocuments(documents.mean, None)
        n_components = documents.mean.shape[1]
        per_component = 1 if self.uncertainty == "none" else 2
        if reset:
            self.n_features_in_ = per_component * n_components
        elif per_component * n_components != self.n_features_in_:
            raise InputError(
                f"`X` has embeddings of size {n_components}, but the classifier was "
                f"trained with size {self.n_features_in_ // per_component}"
            )
        return documents

    def _from_array(self, X: NDArray[np.float64]) -> UncertainDocuments:
        bad = np.argwhere(~np.isfinite(X))
        if len(bad):
            row, column = bad[0]
            value = "NaN" if np.isnan(X[row, column]) else str(X[row, column])
            variance = self.uncertainty == "columns" and column >= X.shape[1] // 2
            kind = "variances" if variance else "means"
            raise InputError(
                f"`X` has {value} in row {row}, column {column}; {kind} must be finite"
            )
        if self.uncertainty == "none":
            return UncertainDocuments(X, None)
        return UncertainDocuments.from_columns(X)

    def _estimate_means(
        self, documents: UncertainDocuments, labels: TrainingLabels
    ) -> NDArray[np.float64]:
        documents = documents.take(labels.kept)
        sums = labels.membership @ documents.mean
        means = sums / labels.class_weights[:, None]
        if documents.spread is None:
            return np.asarray(means, dtype=np.float64)
        # With the covariance fixed, EM's limit for the means is one linear solve.
        expectation = expectation_step(
            documents, labels, means, self.covariance_, choose_device(self.device)
        )
        return np.asarray(means + expectation.mean_step, dtype=np.float64)

    def _log_densities(
        self, documents: UncertainDocuments
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        device = choose_device(self.device)
        return log_densities(documents, self.means_, self.covariance_, device)
