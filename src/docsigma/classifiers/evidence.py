"""Classes scored by the likelihood that documents give them."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from scipy.special import log_softmax
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from docsigma._array_checks import Floats
from docsigma._devices import choose_device
from docsigma.classifiers._base import BaseGaussianClassifier
from docsigma.classifiers._class_gaussians import ClassPrior, fit_classes
from docsigma.classifiers._covariance import invert
from docsigma.classifiers._evidence_choices import EvidenceChoices
from docsigma.classifiers._full_classes import FullClasses, refine_classes
from docsigma.classifiers._labels import TrainingLabels, resolve_priors
from docsigma.classifiers._likelihood_factors import LikelihoodFactors
from docsigma.classifiers._marginal_factors import MarginalFactors, blocks
from docsigma.classifiers._same_topic import centred_marginals, pairwise_log_ratio
from docsigma.classifiers._semi_supervised_labels import SemiSupervisedLabels
from docsigma.classifiers._splits import check_column
from docsigma.classifiers._tempering import Tempering, given_tempering
from docsigma.classifiers._turned_model import within_class_axes
from docsigma.exceptions import InputError
from docsigma.posterior import GaussianPosterior, GaussianPrior

if TYPE_CHECKING:
    from torch import Tensor


class EvidenceClassifier(BaseGaussianClassifier):
    r"""Gaussian classes, scored by the likelihood of documents and not their means.

    A posterior mean is shrunk towards the prior, the more so the shorter the document,
    and a mean near zero is no evidence for a class that lies there. So the prior is
    divided out of the posterior :math:`N(\nu, \Gamma^{-1})`; what is left is the
    likelihood :math:`\exp(h^T w - \tfrac12 w^T P w)` of the embedding, with
    :math:`P = \Gamma - \Lambda` and :math:`h = \Gamma\nu - \Lambda m_0`. Under a class
    :math:`N(\mu_\ell, \Sigma)` the document has, up to a constant,

    .. math::

        \log p(x \mid \ell) = \tilde h^T \mu_\ell
        - \tfrac12 \mu_\ell^T \tilde P \mu_\ell, \quad
        \tilde h = (I + P\Sigma)^{-1} h, \quad \tilde P = (I + P\Sigma)^{-1} P.

    A document without known words has :math:`P = h = 0` and gets the class priors.
    Words of one document are no independent evidence: both are multiplied by
    :math:`\kappa(N) = k_0 / (1 + N/\alpha)`, chosen on held-out training documents
    and thinned copies of them.

    Documents without label (-1, None or NaN in `y`) take part in the same EM: they get
    the probabilities of the classes for a label. Class priors stay those of the labels.

    Parameters
    ----------
    covariance : {"full", "diagonal"}
        The shared covariance. ``"diagonal"`` costs K operations per document and
        class where ``"full"`` costs :math:`K^3` per document, and is as good in axes
        in which the within-class covariance is diagonal:
        :class:`CountsClassifier` turns its model into those.
    tempering : "auto" or (float, float)
        :math:`k_0` and :math:`\alpha`, or ``"auto"``: chosen by cross-validation.
    unlabelled_weight : "auto" or float
        What a document without label counts, relative to one with; ``"auto"``: chosen
        by cross-validation on the labelled ones. If classes have fewer than three
        labels on average, it is 1 where half of these documents tell as many nats about
        their embeddings as the choice between the classes takes, else 0. At 1 the
        predicted probabilities are mixed with the class priors too, as nothing says how
        far classes follow the words.
    priors : {"empirical", "uniform"}, array-like of shape (n_classes,) or None
        Class priors, as for :class:`GaussianLinearClassifier`.
    prior_precision : float
        Of the prior :math:`N(0, I/\lambda)` of documents given as an array; a posterior
        carries its own prior.
    tol : float
        EM ends when the objective gains less per document, in nats.
    max_iter : int
        Largest number of steps.
    random_state : int
        Deals folds and thins copies.
    device : str
        ``"cpu"``, ``"cuda"``, any torch device with float64, or ``"auto"``: the GPU
        if there is one.

    Attributes
    ----------
    classes_, class_weight_, class_prior_, log_prior_ : ndarray of shape (n_classes,)
        Labels, and their weights and priors: those of the labelled documents.
    means_ : ndarray of shape (n_classes, n_components)
        Class means :math:`\mu_\ell`.
    covariance_, precision_ : ndarray of shape (n_components, n_components)
        Within-class covariance :math:`\Sigma`, and its inverse.
    centre_, between_covariance_ : ndarrays
        Mean and covariance of the Gaussian that class means come from.
    tempering_ : tuple of two floats
        :math:`k_0` and :math:`\alpha`.
    unlabelled_weight_ : float
    smoothing_ : float
        Share of the class priors in the predicted probabilities; 0 where labels are
        enough to choose by.
    objective_history_ : ndarray
        The objective of EM per document before each step; it never falls.
    n_iter_ : int
        Steps of EM.
    converged_ : bool
        Whether the gain fell below `tol`.
    n_features_in_ : int
        Columns that an array needs: means, and as many variances.

    Examples
    --------
    >>> from docsigma import GaussianPosterior, GaussianPrior
    >>> prior = GaussianPrior.isotropic(1.0, n_components=1)
    >>> q = GaussianPosterior([[-1.2], [-0.8], [0.8], [1.2]], [[0.1]] * 4, prior=prior)
    >>> clf = EvidenceClassifier(tempering=(1, 100)).fit(q, ["no", "no", "yes", "yes"])
    >>> clf.predict_proba(GaussianPosterior([[0.5], [0.0]], [[0.5], [1.0]], prior=prior)
    ...     ).round(1)
    array([[0.1, 0.9],
           [0.5, 0.5]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "priors": BaseGaussianClassifier._parameter_constraints["priors"],
        "covariance": [StrOptions({"full", "diagonal"})],
        "tempering": [StrOptions({"auto"}), tuple, list],
        "unlabelled_weight": [
            StrOptions({"auto"}),
            Interval(Real, 0, None, closed="left"),
        ],
        "prior_precision": [Interval(Real, 0, None, closed="neither")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": [Interval(Integral, 0, None, closed="left")],
        "device": [str],
    }

    def __init__(
        self,
        *,
        covariance: str = "full",
        tempering: Any = "auto",
        unlabelled_weight: Any = "auto",
        priors: Any = "empirical",
        prior_precision: float = 10.0,
        tol: float = 1e-2,
        max_iter: int = 500,
        random_state: int = 0,
        device: str = "auto",
    ) -> None:
        self.covariance = covariance
        self.tempering = tempering
        self.unlabelled_weight = unlabelled_weight
        self.priors = priors
        self.prior_precision = prior_precision
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.device = device

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None
    ) -> Self:
        """Estimate class means and the shared covariance by EM.

        Parameters
        ----------
        X : GaussianPosterior, or array-like of shape (n_documents, n_features)
            Posteriors with their prior and, if they are known, numbers of tokens; or
            means in the first half of the columns and variances in the second.
        y : array-like of shape (n_documents,)
            Labels: -1, None or NaN stands for a document without one, as for
            scikit-learn's semi-supervised estimators. (So the number -1 is no class.)
        sample_weight : array-like of shape (n_documents,), optional
            Weights of the documents.
        groups : array-like of shape (n_documents,), optional
            Documents of one group (author, thread) are never both trained on and held
            out while settings are chosen.
        """
        posterior = self._posterior(X, reset=True)
        if y is None:
            raise InputError(
                f"{type(self).__name__} requires y to be passed, but the target y is "
                "None: it needs labels"
            )
        found = SemiSupervisedLabels.check(y, len(posterior), sample_weight)
        posterior = posterior[np.concatenate([found.labels.kept, found.unlabelled])]
        factors = self._factors(posterior)

        def log_prior_of(class_weights: Tensor) -> Tensor:
            prior = resolve_priors(self.priors, class_weights.cpu().numpy())
            # A class may have no document in a fold.
            return torch.from_numpy(np.log(prior.clip(1e-300))).to(class_weights)

        def tensor(array: Floats) -> Tensor:
            return torch.from_numpy(array).to(factors.observed)

        variance = 1 / posterior.require_prior().precision_diagonal()
        axes, turned, along = None, factors, tensor(variance)
        if self.covariance == "full":
            weights = np.concatenate([found.labels.weights, found.unlabelled_weights])
            axes = tensor(within_class_axes(posterior.mean, found.labels, weights))
            turned, along = factors.turned(axes), axes.T.square() @ along
        prior = ClassPrior(along, log_prior_of)
        if groups is not None:
            groups = check_column("groups", groups, len(y), found.labels.kept)
        choices = EvidenceChoices(
            factors, axes, found, prior, self.random_state, groups
        )
        tempering, weight = choices.choose(
            given_tempering(self.tempering),
            None if isinstance(self.unlabelled_weight, str) else self.unlabelled_weight,
        )
        self.tempering_ = (tempering.factor, tempering.tokens)
        self.unlabelled_weight_ = float(weight)
        self.smoothing_ = choices.smoothing(weight)
        membership = found.membership(weight, factors.observed)
        stop: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol}
        prior = prior.of_tempered(tempering.kept(factors, membership))
        classes, history = fit_classes(tempering(turned), membership, prior, **stop)
        identity = torch.eye(len(variance)).to(factors.observed)
        full = FullClasses.of(
            classes, identity if axes is None else axes, tensor(variance)
        )
        if axes is not None:
            full, history = refine_classes(tempering(factors), membership, full, **stop)
        self._adopt(full, found.labels, history)
        return self

    def _adopt(
        self,
        classes: FullClasses,
        labels: TrainingLabels,
        history: list[float],
    ) -> None:
        """Keep what EM found."""
        self.n_iter_ = len(history) - 1
        self.converged_ = self.n_iter_ < self.max_iter
        self.objective_history_ = np.array(history)
        if not self.converged_:
            warnings.warn(
                f"EM did not converge in `max_iter` = {self.max_iter} steps; the last "
                f"one gained more than `tol` = {self.tol} nats per document",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.centre_ = classes.centre.cpu().numpy()
        self.between_covariance_ = classes.between.cpu().numpy()
        prior = np.exp(classes.log_prior.cpu().numpy())
        self.covariance_ = classes.within.cpu().numpy()
        self.precision_ = invert(self.covariance_)
        self._store_classes(
            labels.classes, labels.class_weights, prior, classes.means.cpu().numpy()
        )

    def log_likelihoods(self, X: Any) -> Floats:
        """Return the log likelihood of each class, documents x classes.

        Without class priors, and up to a constant of the document: 0 for a document
        that says nothing. `X` is as `fit` takes it.
        """
        check_is_fitted(self)
        return self._log_densities(self._documents(X))[0]

    def same_topic_log_ratio(self, a: Any, b: Any) -> Floats:
        r"""Return how much likelier two documents are of one topic than of two.

        The topic need be none of the trained classes. Each document's own embedding is
        integrated out, which leaves :math:`\tilde h` and :math:`\tilde P`; with the
        evidence :math:`E(h, P) = \log\int e^{h^T\mu - \mu^T P\mu/2}
        N(\mu; m_0, \Sigma_b)\,d\mu` of a topic's mean the ratio is

        .. math::

            E(\tilde h_1 + \tilde h_2, \tilde P_1 + \tilde P_2)
            - E(\tilde h_1, \tilde P_1) - E(\tilde h_2, \tilde P_2).

        Parameters
        ----------
        a, b : GaussianPosterior or array-like
            Documents as `fit` takes them.

        Returns
        -------
        ndarray of shape (n_documents_a, n_documents_b)
            Log ratios in nats: 0 where one of the two says nothing.
        """
        left, right, between = self._pair(a, b)
        ratios = np.empty((len(left[0]), len(right[0])))
        for row in range(len(ratios)):
            one = left[0][row : row + 1], left[1][row : row + 1]
            ratios[row] = pairwise_log_ratio(one, right, between).cpu().numpy()
        return ratios

    def pairwise_same_topic_log_ratio(self, a: Any, b: Any) -> Floats:
        """Return the log ratio of `same_topic_log_ratio` for each pair of rows.

        `a` and `b` have as many documents; the result has one number per pair.
        """
        left, right, between = self._pair(a, b)
        if len(left[0]) != len(right[0]):
            raise InputError(
                f"`a` has {len(left[0])} documents, but `b` has {len(right[0])}"
            )
        return pairwise_log_ratio(left, right, between).cpu().numpy()

    def _pair(
        self, a: Any, b: Any
    ) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor], Tensor]:
        """Return what documents say of class means, and the covariance of these."""
        check_is_fitted(self)
        documents = [self._documents(X) for X in (a, b)]
        within = self._form(self.covariance_, documents[0].observed)
        centre = torch.from_numpy(self.centre_).to(within)
        left, right = (centred_marginals(d, within, centre) for d in documents)
        return left, right, self._form(self.between_covariance_, within)

    def log_proba_at(self, points: Floats) -> Floats:
        """Return the classes' log probabilities for embeddings known exactly."""
        check_is_fitted(self)
        linear = self.means_ @ self.precision_
        constant = self.log_prior_ - (linear * self.means_).sum(axis=1) / 2
        scores = self._smoothed(points @ linear.T + constant)
        return np.asarray(log_softmax(scores, axis=1))

    def _class_scores(self, X: Any) -> Floats:
        return self._smoothed(super()._class_scores(X))

    def _smoothed(self, scores: Floats) -> Floats:
        """Return scores mixed with the class priors."""
        if self.smoothing_ == 0:
            return scores
        own = log_softmax(scores, axis=1) + np.log1p(-self.smoothing_)
        shared = np.log(self.smoothing_) + self.log_prior_
        return np.asarray(np.logaddexp(own, shared), dtype=np.float64)

    def _posterior(self, X: Any, *, reset: bool) -> GaussianPosterior:
        """Return posteriors that carry their prior, from posteriors or an array."""
        if isinstance(X, GaussianPosterior):
            if reset:
                self.n_features_in_ = 2 * X.n_components
                if hasattr(self, "feature_names_in_"):
                    del self.feature_names_in_
            elif 2 * X.n_components != self.n_features_in_:
                raise InputError(
                    f"`X` has embeddings of size {X.n_components}, but the classifier "
                    f"was trained with size {self.n_features_in_ // 2}"
                )
            X.require_prior()
            return X
        X = validate_data(self, X, dtype=np.float64, reset=reset)
        return self._from_array(X)

    def _from_array(self, X: Floats) -> GaussianPosterior:
        half = X.shape[1] // 2
        if X.shape[1] % 2:
            raise InputError(
                "`X` must have an even number of features, means and then as many "
                f"variances, got n_features = {X.shape[1]}"
            )
        prior = GaussianPrior.isotropic(self.prior_precision, half)
        return GaussianPosterior(X[:, :half], X[:, half:], prior=prior)

    def _factors(self, posterior: GaussianPosterior) -> LikelihoodFactors:
        factors = LikelihoodFactors.of(posterior, choose_device(self.device))
        if factors.is_full and self.covariance == "diagonal":
            size = posterior.n_components
            return factors.turned(torch.eye(size).to(factors.observed))
        return factors

    def _documents(self, X: Any) -> LikelihoodFactors:
        factors = self._factors(self._posterior(X, reset=False))
        return Tempering(*self.tempering_)(factors)

    def _form(self, covariance: Floats, like: Tensor) -> Tensor:
        """Return a covariance in the form that factors can be combined with."""
        diagonal = self.covariance == "diagonal"
        return torch.tensor(np.diagonal(covariance) if diagonal else covariance).to(
            like
        )

    def _log_densities(self, documents: LikelihoodFactors) -> tuple[Floats, Floats]:
        within = self._form(self.covariance_, documents.observed)
        means = torch.from_numpy(self.means_).to(within)
        by_class = within.new_empty(len(documents), len(means))
        common = within.new_empty(len(documents))
        for rows in blocks(documents, within):
            marginal = MarginalFactors.of(documents[rows], within)
            by_class[rows] = marginal.class_scores(means)
            common[rows] = marginal.constant
        return by_class.cpu().numpy(), common.cpu().numpy()

    def _estimate_means(
        self, documents: LikelihoodFactors, labels: TrainingLabels
    ) -> Floats:
        documents = documents[labels.kept]
        within = self._form(self.covariance_, documents.observed)
        K = len(self.centre_)
        linear = np.zeros((len(labels.classes), K))
        precision = np.zeros((len(labels.classes), *within.shape))
        for rows in blocks(documents, within):
            marginal = MarginalFactors.of(documents[rows], within)
            members = labels.membership[:, rows]
            linear += members @ marginal.linear.cpu().numpy()
            flat = members @ marginal.precision.flatten(1).cpu().numpy()
            precision += flat.reshape(precision.shape)
        if precision.ndim == 2:
            precision = precision[:, :, None] * np.eye(K)
        pull = invert(self.between_covariance_)
        side = linear + pull @ self.centre_
        return np.linalg.solve(precision + pull, side[:, :, None])[:, :, 0]
