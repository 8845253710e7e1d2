"""Classes scored by the likelihood that documents give them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from docsigma._array_checks import Floats
from docsigma._devices import choose_device
from docsigma.classifiers._base import BaseGaussianClassifier
from docsigma.classifiers._believed_classes import BelievedClasses
from docsigma.classifiers._class_gaussians import ClassGaussians, overall
from docsigma.classifiers._covariance import invert
from docsigma.classifiers._factors import Information, log_ratio
from docsigma.classifiers._labels import TrainingLabels, fingerprints, resolve_priors
from docsigma.classifiers._uncertain_documents import half_of
from docsigma.classifiers.documents import EmbeddedDocuments
from docsigma.classifiers.settings import MOST_UNLABELLED
from docsigma.exceptions import InputError
from docsigma.parts import under
from docsigma.posterior import GaussianPosterior, GaussianPrior

if TYPE_CHECKING:
    from docsigma.classifiers._factors import Factors


class EvidenceClassifier(BaseGaussianClassifier):
    r"""Gaussian classes, scored by the likelihood of documents and not their means.

    A posterior mean is shrunk towards the prior, the more so the shorter the document,
    and a mean near zero is no evidence for a class that lies there. So the prior is
    divided out of the posterior :math:`N(\nu, \Gamma^{-1})`; what is left is the
    likelihood :math:`\exp(h^T w - \tfrac12 w^T P w)` of the embedding, with
    :math:`P = \Gamma - \Lambda = c\,G`: all documents share the shape G, and differ in
    the size c. Under a class :math:`N(\mu_\ell, \Sigma)` the document has, up to a
    constant, the log likelihood :math:`\tilde h^T \mu_\ell - \tfrac12 \mu_\ell^T
    \tilde P \mu_\ell` with :math:`\tilde h = (I + P\Sigma)^{-1} h` and
    :math:`\tilde P = (I + P\Sigma)^{-1} P`.

    A document without known words has :math:`P = h = 0` and gets the class priors. EM
    learns means and covariance; what makes the classes too sure is mended after it, by
    a temperature that labelled documents choose, each left out of its class's mean.

    Documents without label take part in EM: they get the probabilities of the classes
    for a label. As the words of a document repeat each other, only those count that it
    has for the first time, if their counts are given, and nobody knows by how much.
    Classes are then learned several times, each with its temperature: from documents
    that count in full, in half and in quarter, and from labelled ones alone. The
    probabilities are a mixture, whose shares the left-out documents choose. Class
    priors stay those of the labels.

    Parameters
    ----------
    layout : {"mean", "mean_variance"}
        What the columns of an array hold, as for
        :class:`UncertainGaussianClassifier`: means that are known exactly, or means
        and then variances. A posterior has its uncertainty whatever the layout.
    temperature : bool
        Whether a temperature is chosen.
    missing_label : object
        As for :class:`~docsigma.classifiers.CountsClassifier`.
    priors : {"empirical", "uniform"}, array-like of shape (n_classes,) or None
        Class priors, as for :class:`GaussianLinearClassifier`.
    prior_precision : float
        Of the prior :math:`N(0, I/\lambda)` of documents given as means and variances;
        a posterior carries its own prior.
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
    temperatures_ : ndarray of shape (n_times,)
        By which log probabilities are divided, for each time that classes are learned.
    n_features_in_ : int
        Columns that an array needs.

    Examples
    --------
    >>> from docsigma import GaussianPosterior, GaussianPrior
    >>> prior = GaussianPrior.isotropic(1.0, n_components=1)
    >>> q = GaussianPosterior([[-1.2], [-0.8], [0.8], [1.2]], [[0.1]] * 4, prior=prior)
    >>> clf = EvidenceClassifier().fit(q, ["no", "no", "yes", "yes"])
    >>> clf.predict(GaussianPosterior([[0.5], [-0.5]], [[0.5], [0.9]], prior=prior))
    array(['yes', 'no'], dtype='<U3')
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "layout": [StrOptions({"mean", "mean_variance"})],
        "temperature": ["boolean"],
        "missing_label": "no_validation",
        "priors": BaseGaussianClassifier._parameter_constraints["priors"],
        "prior_precision": [Interval(Real, 0, None, closed="neither")],
        "device": [str],
    }
    _saved: ClassVar[tuple[str, ...]] = (
        "class_weight_",
        "class_prior_",
        "centre_",
        "between_covariance_",
    )
    takes: ClassVar[str] = "posterior"
    learns_from_unlabelled: ClassVar[bool] = True

    def __init__(
        self,
        *,
        layout: str = "mean",
        temperature: bool = True,
        missing_label: Any = -1,
        priors: Any = "empirical",
        prior_precision: float = 10.0,
        device: str = "auto",
    ) -> None:
        self.layout = layout
        self.temperature = temperature
        self.missing_label = missing_label
        self.priors = priors
        self.prior_precision = prior_precision
        self.device = device

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Estimate class means and the shared covariance by EM.

        Parameters
        ----------
        X : GaussianPosterior, EmbeddedDocuments or array-like
            Posteriors with their prior and, if they are known, numbers of tokens, alone
            or beside the word counts; or documents x columns as `layout` says.
        y, sample_weight
            As for :class:`~docsigma.classifiers.CountsClassifier`.
        """
        X = self._check(X, reset=True)
        labels = TrainingLabels.check_some(
            y, len(X), sample_weight, missing_label=self.missing_label
        ).sampled(MOST_UNLABELLED)
        labels = labels.merged(fingerprints(_columns(X)))
        prior = resolve_priors(self.priors, labels.class_weights)
        documents, (known, unknown) = X[labels.rows], labels.targets()
        self.survey(documents, known.sum(axis=1) + unknown)
        return self.learn(documents, known, unknown, labels.classes, prior)

    def survey(self, X: Any, weights: Floats) -> None:
        """Learn what all documents have in common, for which no label is needed.

        That is the information in a word, and where embeddings lie.

        Parameters
        ----------
        X : GaussianPosterior or ndarray
            Documents.
        weights : ndarray of shape (n_documents,)
            Their weights.
        """
        q, device = _embedding_of(X), choose_device(self.device)
        gaussians = isinstance(q, GaussianPosterior)
        find = Information.of if gaussians else Information.exact
        self._information = find(q, device, weights)
        factors = self._factors(X)
        each = torch.from_numpy(weights).to(factors.size)
        self._everything = overall(self._information, factors, each)
        self.centre_ = self._everything[0].cpu().numpy()

    def learn(
        self,
        X: Any,
        known: Floats,
        unknown: Floats,
        classes: Any = None,
        prior: Floats | None = None,
    ) -> Self:
        """Learn classes from weights in them, after :meth:`survey`.

        Parameters
        ----------
        X : GaussianPosterior or ndarray
            Documents.
        known : ndarray of shape (n_documents, n_classes)
            Weights of labelled documents in their classes, 0 for the rest.
        unknown : ndarray of shape (n_documents,)
            Weights of documents without label.
        classes : array-like of shape (n_classes,), optional
            Labels of the classes; by default their numbers.
        prior : ndarray of shape (n_classes,), optional
            By default the classes' shares of `known`; a class without documents is
            very unlikely.
        """
        totals = known.sum(axis=0)
        if prior is None:
            prior = np.maximum(totals / totals.sum(), 1e-12)
        rows = np.flatnonzero(known.any(axis=1) | (unknown > 0))
        X, known, unknown = X[rows], known[rows], unknown[rows]
        factors = self._factors(X)
        own, guessed, log_prior = (
            torch.from_numpy(array).to(factors.size)
            for array in (known, unknown, np.log(prior))
        )
        self._classes = BelievedClasses.fit(
            self._information,
            factors,
            own,
            guessed,
            log_prior,
            self._everything,
            temperature=self.temperature,
        )
        first = self._classes.classes[0]
        axes, _ = self._information.axes(first.within)
        away = torch.linalg.solve(axes, (first.means - self._everything[0]).mT).mT
        # The prior of the means counts as one class more.
        spread = (away.square().sum(dim=0) + 1) / (len(away) + 1)
        self.between_covariance_ = ((axes * spread) @ axes.mT).cpu().numpy()
        self.covariance_ = first.within.cpu().numpy()
        self.precision_ = invert(self.covariance_)
        names = np.arange(len(totals)) if classes is None else classes
        self._store_classes(names, totals, prior, first.means.cpu().numpy())
        return self

    @property
    def temperatures_(self) -> Floats:
        """Temperatures, one for each time that classes are learned."""
        check_is_fitted(self)
        sharpness = np.array(self._classes.sharpness)
        return np.asarray(1 / np.maximum(sharpness, np.finfo(np.float64).tiny))

    def log_likelihoods(self, X: Any) -> Floats:
        """Return the log likelihood of each class, documents x classes.

        Without class priors, and up to a constant of the document: 0 for a document
        that says nothing. `X` is as `fit` takes it.
        """
        check_is_fitted(self)
        found = self._classes.classes[0].scores(self._first(X))
        return np.asarray(found.cpu().numpy())

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
        left, right = self.marginals(a), self.marginals(b)
        ratios = np.empty((len(left[0]), len(right[0])))
        for row in range(len(ratios)):
            one = left[0][row : row + 1], left[1][row : row + 1]
            ratios[row] = log_ratio(one, right[:2], left[2])
        return ratios

    def pairwise_same_topic_log_ratio(self, a: Any, b: Any) -> Floats:
        """Return the log ratio of `same_topic_log_ratio` for each pair of rows.

        `a` and `b` have as many documents; the result has one number per pair.
        """
        left, right = self.marginals(a), self.marginals(b)
        if len(left[0]) != len(right[0]):
            raise InputError(
                f"`a` has {len(left[0])} documents, but `b` has {len(right[0])}"
            )
        return log_ratio(left[:2], right[:2], left[2])

    def marginals(self, X: Any) -> tuple[Floats, Floats, Floats]:
        r"""Return what documents say of the means of their classes.

        In axes in which the within-class covariance is the identity: the linear terms
        :math:`\tilde h - \tilde P m_0` and the precisions :math:`\tilde P`, documents x
        components, and the variances of class means, which are zero on average.
        """
        check_is_fitted(self)
        first, documents = self._classes.classes[0], self._first(X)
        centre, between = (
            torch.from_numpy(array).to(documents.size)
            for array in (self.centre_, self.between_covariance_)
        )
        return first.of_class_means(documents, centre, between)

    def _class_scores(self, X: Any) -> Floats:
        check_is_fitted(self)
        return self._classes.log_proba(self._documents(X))

    def _check(self, X: Any, *, reset: bool) -> Any:
        """Return posteriors that carry their prior, or points known exactly."""
        width = 1 if self.layout == "mean" else 2
        q = _embedding_of(X)
        if isinstance(q, GaussianPosterior):
            if reset:
                self.n_features_in_ = width * q.n_components
                if hasattr(self, "feature_names_in_"):
                    del self.feature_names_in_
            elif width * q.n_components != self.n_features_in_:
                raise InputError(
                    f"`X` has embeddings of size {q.n_components}, but the classifier "
                    f"was trained with size {self.n_features_in_ // width}"
                )
            q.require_prior()
            return X
        X = np.asarray(validate_data(self, q, dtype=np.float64, reset=reset))
        if width == 1:
            return X
        half = half_of(X)
        prior = GaussianPrior.isotropic(self.prior_precision, half)
        return GaussianPosterior(X[:, :half], X[:, half:], prior=prior)

    def _factors(self, X: Any) -> Factors:
        q = _embedding_of(X)
        if not isinstance(q, GaussianPosterior):
            return self._information.factors_of_points(q)
        distinct = X.distinct if isinstance(X, EmbeddedDocuments) else None
        return self._information.factors(q, distinct)

    def _documents(self, X: Any) -> Factors:
        return self._factors(self._check(X, reset=False))

    def _first(self, X: Any) -> Factors:
        """Return what documents say to the classes that were learned first."""
        return self._classes.counted(0, self._documents(X))

    def _log_densities(self, documents: Factors) -> tuple[Floats, Floats]:
        first, counted = self._classes.classes[0], self._classes.counted(0, documents)
        by_class, common = first.scores(counted), first.constants(counted)
        return by_class.cpu().numpy(), common.cpu().numpy()

    def _estimate_means(self, documents: Factors, labels: TrainingLabels) -> Floats:
        device = documents.size.device
        weights = torch.from_numpy(labels.membership.T).to(device)
        centre = torch.from_numpy(self.centre_).to(device)
        own = documents[labels.kept]
        found, classes = self._classes, []
        for number, each in enumerate(found.classes):
            more = each.means_of(found.counted(number, own), weights, centre)
            classes.append(replace(each, means=torch.cat([each.means, more])))
        self._classes = replace(found, classes=classes)
        return np.asarray(classes[0].means[len(self.means_) :].cpu().numpy())

    def _store_classes(
        self, classes: NDArray[Any], weights: Floats, prior: Floats, means: Floats
    ) -> None:
        super()._store_classes(classes, weights, prior, means)
        found = self._classes
        log_prior = torch.from_numpy(self.log_prior_).to(found.log_prior)
        self._classes = replace(found, log_prior=log_prior)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the fitted arrays."""
        classes = self._classes.classes
        return {
            **{f"information.{k}": v for k, v in self._information.arrays().items()},
            **{name: getattr(self, name) for name in self._saved},
            "beliefs": np.array(self._classes.beliefs),
            "sharpness": np.array(self._classes.sharpness),
            "shares": np.array(self._classes.shares),
            "means": torch.stack([each.means for each in classes]).cpu().numpy(),
            "within": torch.stack([each.within for each in classes]).cpu().numpy(),
        }

    def set_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore what :meth:`arrays` returned; `classes_` is set before."""
        for name in self._saved:
            setattr(self, name, arrays[name])
        device = choose_device(self.device)
        self._information = Information.of_arrays(under("information.", arrays), device)
        prior = arrays["class_prior_"]
        own = arrays["means"], arrays["within"], np.log(prior)
        means, within, log_prior = (torch.tensor(a, device=device) for a in own)
        pairs = zip(means, within, strict=True)
        classes = [ClassGaussians(self._information, *pair) for pair in pairs]
        beliefs, sharpness, shares = (
            tuple(arrays[name].tolist()) for name in ("beliefs", "sharpness", "shares")
        )
        self._classes = BelievedClasses(beliefs, sharpness, shares, classes, log_prior)
        self.covariance_ = arrays["within"][0]
        self.precision_ = invert(self.covariance_)
        super()._store_classes(
            self.classes_, self.class_weight_, prior, arrays["means"][0]
        )


def _columns(X: Any) -> Floats:
    """Return documents as columns of numbers, which tell them apart."""
    q = _embedding_of(X)
    if not isinstance(q, GaussianPosterior):
        return np.asarray(q)
    n_tokens = np.zeros(len(q)) if q.n_tokens is None else q.n_tokens
    return np.hstack([q.mean, q.variance, n_tokens[:, None]])


def _embedding_of(X: Any) -> Any:
    """Return Gaussians or points, which may come with their word counts."""
    return X.embedding if isinstance(X, EmbeddedDocuments) else X
