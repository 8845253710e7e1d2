"""The Gaussian linear classifier with uncertainty (GLCU)."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array, validate_data

from docsigma._array_checks import Floats
from docsigma._devices import choose_device
from docsigma.classifiers._base import BaseGaussianClassifier
from docsigma.classifiers._covariance import feature_scale, floor_covariance
from docsigma.classifiers._expectation import (
    Expectation,
    expectation_step,
    log_densities,
)
from docsigma.classifiers._labels import TrainingLabels
from docsigma.classifiers._uncertain_documents import UncertainDocuments, is_posterior
from docsigma.classifiers.gaussian_linear import GaussianLinearClassifier, class_means
from docsigma.exceptions import InputError

# Least scale of a feature, relative to its mean uncertainty. Means of components that a
# model left unused hardly vary: a floor that follows them would be lost in rounding.
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

    by EM that starts at the solution of GLC. A class's probability follows by Bayes'
    rule, so that an uncertain document gets less certain probabilities.
    Without uncertainty it is :class:`GaussianLinearClassifier`.

    Parameters
    ----------
    layout : {"mean", "mean_variance"}
        What the columns of an array hold: means that are known exactly, or means and
        then as many variances. It may change after `fit`. A posterior with ``mean``
        and ``variance`` or ``covariance`` has its uncertainty whatever the layout.
    priors : {"empirical", "uniform"}, array-like of shape (n_classes,) or None
        Class priors, as for :class:`GaussianLinearClassifier`.
    regularization : float
        Eigenvalues of the within-class covariance, each feature scaled to
        variance 1, are raised to this floor in every step. (A feature whose
        means hardly vary next to its uncertainties is scaled by these.)
    tol : float
        EM ends when the mean log likelihood per document gains less, in nats.
    max_iter : int
        Largest number of passes over the documents.
    accelerate : bool
        Try a Fisher-scoring step first and keep it when the likelihood does not
        fall; else take the EM step. False is the paper's EM throughout. Both rise
        in every step and end in the same place.
    device : str
        ``"cpu"``, ``"cuda"``, any torch device with float64, or ``"auto"``: the GPU
        if there is one.

    Attributes
    ----------
    classes_, class_weight_, class_prior_, log_prior_ : ndarray of shape (n_classes,)
        Labels, weights and priors, as of :class:`GaussianLinearClassifier`.
    means_ : ndarray of shape (n_classes, n_components)
        Class means :math:`\mu_\ell`.
    covariance_, precision_ : ndarray of shape (n_components, n_components)
        Within-class covariance :math:`D^{-1}` and precision :math:`D`.
    log_likelihood_history_ : ndarray
        Mean log likelihood per document under GLC's solution and after each
        step that was kept; it never falls.
    n_iter_ : int
        Passes over the documents after the first, rejected steps included.
    converged_ : bool
        Whether the gain fell below `tol`.
    n_features_in_ : int
        Columns that an array in the `layout` at `fit` needs, also after fitting a
        posterior.

    Examples
    --------
    Two documents at the same place, of which the second is hardly known:

    >>> from docsigma import GaussianPosterior
    >>> q = GaussianPosterior([[-1.2], [-0.8], [0.8], [1.2]], [[0.1]] * 4)
    >>> glcu = UncertainGaussianClassifier().fit(q, ["no", "no", "yes", "yes"])
    >>> glcu.predict_proba(GaussianPosterior([[0.5], [0.5]], [[0.1], [9.0]])).round(2)
    array([[0.  , 1.  ],
           [0.47, 0.53]])

    An array holds means that are known exactly, unless `layout` says otherwise:

    >>> glcu.predict([[-0.5], [0.5]])
    array(['no', 'yes'], dtype='<U3')
    >>> glcu.set_params(layout="mean_variance").predict([[0.5, 9.0]])
    array(['yes'], dtype='<U3')
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseGaussianClassifier._parameter_constraints,
        "layout": [StrOptions({"mean", "mean_variance"})],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "accelerate": ["boolean"],
        "device": [str],
    }

    takes: ClassVar[str] = "posterior"

    def __init__(
        self,
        *,
        layout: str = "mean",
        priors: Any = "empirical",
        regularization: float = 1e-6,
        tol: float = 1e-6,
        max_iter: int = 200,
        accelerate: bool = True,
        device: str = "auto",
    ) -> None:
        self.layout = layout
        self.priors = priors
        self.regularization = regularization
        self.tol = tol
        self.max_iter = max_iter
        self.accelerate = accelerate
        self.device = device

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Estimate class means and the shared covariance by EM.

        Parameters
        ----------
        X : array-like of shape (n_documents, n_features) or posterior
            Means, with variances after them if `layout` says so; or an object whose
            attributes are ``mean`` and either ``variance`` (documents x components)
            or ``covariance`` (documents x components x components).
        y, sample_weight
            Labels and weights, as for :class:`GaussianLinearClassifier`.
        """
        if is_posterior(X):
            validate_data(self, X, y, skip_check_array=True, ensure_2d=False)
            documents = UncertainDocuments.from_posterior(X)
        else:
            X, y = validate_data(self, X, y, dtype=np.float64, ensure_all_finite=False)
            documents = UncertainDocuments.from_array(X, exact=self.layout == "mean")
        K = documents.mean.shape[1]
        self.n_features_in_ = K if self.layout == "mean" else 2 * K
        labels = TrainingLabels.check(y, len(documents), sample_weight)
        documents = documents.take(labels.kept)
        start = GaussianLinearClassifier(regularization=self.regularization)
        start.fit(documents.mean, labels.codes, labels.weights)
        means, covariance = start.means_, start.covariance_
        if documents.spread is None:
            # GLC is the maximum: there is nothing for EM to gain.
            terms = start.log_likelihood(documents.mean, labels.codes)
            self.n_iter_, self.converged_ = 1, True
            history = [float(np.average(terms, weights=labels.weights))]
        else:
            means, covariance, history = self._maximise(
                documents, labels, means, covariance
            )
        self.log_likelihood_history_ = np.array(history)
        self._store(labels, means, covariance)
        return self

    def _maximise(
        self,
        documents: UncertainDocuments,
        labels: TrainingLabels,
        means: Floats,
        covariance: Floats,
    ) -> tuple[Floats, Floats, list[float]]:
        """Raise the likelihood until it gains less than `tol`."""
        device = choose_device(self.device)
        uncertainty = np.diag(documents.mean_covariance(labels.weights))
        scale = feature_scale(documents.mean, labels.weights)
        scale = np.maximum(scale, _LEAST_SCALE * uncertainty)

        def evaluate(means: Floats, covariance: Floats) -> Expectation:
            covariance = floor_covariance(covariance, scale, self.regularization)
            return expectation_step(documents, labels, means, covariance, device)

        now = evaluate(means, covariance)
        if np.isnan(now.log_likelihood):
            raise InputError("a covariance of `X` is not positive semi-definite")
        history = [now.log_likelihood]
        step, scoring, lost = 1.0, self.accelerate, 0.0
        self.converged_ = False
        for n_iter in range(1, self.max_iter + 1):
            self.n_iter_ = n_iter
            update = now.scoring_update(step) if scoring else now.em_update()
            trial = evaluate(*update)
            gain = trial.log_likelihood - now.log_likelihood
            if scoring and not gain >= 0:
                # An EM step is next, from the same place.
                step, scoring, lost = step / 2, False, -gain
                continue
            if gain >= 0:
                now = trial
                history.append(now.log_likelihood)
            # Where an EM step loses, only rounding is left.
            self.converged_ = not gain >= 0 or (gain < self.tol and lost < self.tol)
            if self.converged_:
                break
            step = min(1.0, 2 * step) if scoring else step
            scoring, lost = self.accelerate, 0.0
        else:
            warnings.warn(
                f"EM did not converge in `max_iter` = {self.max_iter} passes; the "
                "last one may still have gained more than `tol` = "
                f"{self.tol} nats per document",
                ConvergenceWarning,
                stacklevel=3,
            )
        return now.means, now.covariance, history

    def _documents(self, X: Any) -> UncertainDocuments:
        # The names of columns; their number gets a sentence of its own.
        validate_data(self, X, reset=False, skip_check_array=True, ensure_2d=False)
        posterior, exact = is_posterior(X), self.layout == "mean"
        if posterior:
            documents = UncertainDocuments.from_posterior(X)
            X = documents.mean
        else:
            X = check_array(
                X, dtype=np.float64, ensure_all_finite=False, input_name="X"
            )
        given, K = X.shape[1], self.means_.shape[1]
        needed = K if posterior or exact else 2 * K
        if given != needed:
            hints = {
                K: '; means alone need `layout="mean"`',
                2
                * K: '; means and variances side by side need `layout="mean_variance"`',
            }
            # The words in which every scikit-learn estimator puts it.
            raise InputError(
                f"X has {given} features, but {type(self).__name__} is expecting "
                f"{needed} features as input{hints.get(given, '')}"
            )
        return documents if posterior else UncertainDocuments.from_array(X, exact=exact)

    def _estimate_means(
        self, documents: UncertainDocuments, labels: TrainingLabels
    ) -> Floats:
        documents = documents.take(labels.kept)
        means = class_means(documents.mean, labels)
        if documents.spread is None:
            return means
        # With the covariance fixed, EM's limit for the means is one linear solve.
        device = choose_device(self.device)
        expectation = expectation_step(
            documents, labels, means, self.covariance_, device
        )
        return np.asarray(means + expectation.mean_step, dtype=np.float64)

    def _log_densities(self, documents: UncertainDocuments) -> tuple[Floats, Floats]:
        device = choose_device(self.device)
        return log_densities(documents, self.means_, self.covariance_, device)
