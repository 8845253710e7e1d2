"""Gaussian classes with one covariance, learned from likelihoods by EM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from docsigma.classifiers.settings import STEPS, TOLERANCE

if TYPE_CHECKING:
    from docsigma._array_checks import Floats
    from docsigma.classifiers._factors import Factors, Information

# Two rates of information that differ by less, relative to the larger, are equal: where
# the rounding of their difference meets the error of taking their mean.
CLOSE = 1e-5


@dataclass(frozen=True)
class ClassGaussians:
    r"""Classes :math:`N(\mu_\ell, \Sigma)`, whose means are from :math:`N(m, \Sigma)`.

    Under a class, a document with the likelihood factor (h, c) has, up to a constant,

    .. math::

        \log p(x \mid \ell) = \tilde h^T \mu_\ell
        - \tfrac12 \mu_\ell^T \tilde P \mu_\ell, \quad
        \tilde h = (I + cG\Sigma)^{-1} h, \quad \tilde P = (I + cG\Sigma)^{-1} cG.

    Attributes
    ----------
    information : Information
        The shape of the documents' precisions.
    means : Tensor of shape (n_classes, K)
    within : Tensor of shape (K, K)
        :math:`\Sigma`.
    """

    information: Information
    means: Tensor
    within: Tensor

    def marginals(self, factors: Factors) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        r"""Return axes, a word's information, :math:`\tilde h`, :math:`I - \tilde P`.

        In these axes the covariance is the identity, and all of them are diagonal.
        """
        axes, word = self.information.axes(self.within)
        doubt = 1 / (1 + factors.size[:, None] * word)
        return axes, word, doubt * (factors.linear @ axes), doubt

    def scores(self, factors: Factors) -> Tensor:
        """Return log likelihoods up to a constant per document, documents x classes."""
        axes, _, linear, doubt = self.marginals(factors)
        means: Tensor = torch.linalg.solve(axes, self.means.mT).mT
        return _scores(linear, 1 - doubt, means)

    def constants(self, factors: Factors) -> Tensor:
        """Return what the scores lack of log likelihoods, per document."""
        axes, word = self.information.axes(self.within)
        gain = 1 / (1 + factors.size[:, None] * word)
        linear = factors.linear @ axes
        return (gain * linear.square() + gain.log()).sum(dim=1) / 2

    def of_class_means(
        self, factors: Factors, centre: Tensor, between: Tensor
    ) -> tuple[Floats, Floats, Floats]:
        r"""Return what documents say of the means of classes from N(centre, between).

        In axes in which the within-class covariance is the identity: the linear terms
        :math:`\tilde h - \tilde P m_0` and the precisions :math:`\tilde P`, documents x
        components, and the variances of class means, which are zero on average.
        """
        axes, _, linear, doubt = self.marginals(factors)
        precision, inverse = 1 - doubt, torch.linalg.inv(axes)
        linear = linear - precision * (inverse @ centre)
        variance = (inverse @ between @ inverse.mT).diagonal()
        one, two, three = (p.cpu().numpy() for p in (linear, precision, variance))
        return one, two, three

    def means_of(self, factors: Factors, weights: Tensor, centre: Tensor) -> Tensor:
        """Return the means of classes of these documents, the covariance given."""
        axes, _, linear, doubt = self.marginals(factors)
        start = torch.linalg.solve(axes, centre)
        return _means(linear, 1 - doubt, weights, start) @ axes.mT


def overall(information: Information, factors: Factors, weights: Tensor) -> Tensor:
    """Return mean and covariance of all embeddings, one row more than columns."""
    start = torch.linalg.inv(information.prior_precision)
    one = ClassGaussians(information, information.prior_mean[None], start)
    found = _ascend(one, factors, weights[:, None], None, one.means[0], start)
    return torch.cat([found.means, found.within])


def fit_classes(
    information: Information,
    factors: Factors,
    known: Tensor,
    unknown: Tensor,
    log_prior: Tensor,
    everything: Tensor,
) -> ClassGaussians:
    """Raise the likelihood of labels and documents by EM.

    Parameters
    ----------
    information, factors
        Documents.
    known : Tensor of shape (n, n_classes)
        Weights of labelled documents in their classes.
    unknown : Tensor of shape (n,)
        Weights of documents without label; 0 for the rest. They join after the others
        have made a first step, with the probabilities that the classes then give them.
    log_prior : Tensor of shape (n_classes,)
    everything : Tensor of shape (K + 1, K)
        What :func:`overall` returned: half of all variance is where EM starts.
    """
    centre, within = everything[0], everything[1:] / 2
    means = centre.expand(known.shape[1], -1)
    classes = ClassGaussians(information, means, within)
    rows = known.any(dim=1)
    several = bool(unknown.any())
    classes = _ascend(
        classes,
        factors[rows],
        known[rows],
        None,
        centre,
        within,
        steps=1 if several else STEPS,
    )
    if not several:
        return classes
    return _ascend(classes, factors, known, (unknown, log_prior), centre, within)


def left_out(
    classes: ClassGaussians,
    factors: Factors,
    known: Tensor,
    unknown: Tensor,
    log_prior: Tensor,
    everything: Tensor,
) -> Tensor:
    """Return the scores of labelled documents by classes that have not seen them.

    Each document is taken out of the mean of its class; the covariance, and the
    probabilities of documents without label, stay. The other arguments are those of
    :func:`fit_classes`.
    """
    axes, _, linear, doubt = classes.marginals(factors)
    precision = 1 - doubt
    means = torch.linalg.solve(axes, classes.means.mT).mT
    guesses = (_scores(linear, precision, means) + log_prior).softmax(dim=1)
    weights = known + unknown[:, None] * guesses
    sums = weights.mT @ linear + torch.linalg.solve(axes, everything[0])
    total = weights.mT @ precision + 1
    rows = known.any(dim=1)
    linear, precision = linear[rows], precision[rows]
    own, codes = known[rows].max(dim=1, keepdim=True)
    codes = codes[:, 0]
    rest = (sums[codes] - own * linear) / (total[codes] - own * precision)
    mine = (linear * rest - precision * rest.square() / 2).sum(dim=1, keepdim=True)
    scores = _scores(linear, precision, sums / total)
    return scores.scatter(1, codes[:, None], mine)


def fit_mixture(
    information: Information,
    factors: Factors,
    members: Tensor,
    everything: Tensor,
    share: float,
) -> ClassGaussians:
    """Raise the likelihood of documents without labels by EM, from a first grouping.

    Parameters
    ----------
    information, factors
        Documents.
    members : Tensor of shape (n, n_classes)
        The first grouping: 1 for the class of each document.
    everything : Tensor of shape (K + 1, K)
        What :func:`overall` returned.
    share : float
        Share of all variance that lies within classes when EM starts.
    """
    centre, within = everything[0], share * everything[1:]
    means = centre.expand(members.shape[1], -1)
    classes = ClassGaussians(information, means, within)
    classes = _ascend(classes, factors, members, None, centre, within, steps=1)
    unknown = torch.ones_like(factors.size), torch.zeros_like(members[0])
    nobody = torch.zeros_like(members)
    return _ascend(classes, factors, nobody, unknown, centre, within)


def _ascend(
    classes: ClassGaussians,
    factors: Factors,
    known: Tensor,
    guess: tuple[Tensor, Tensor] | None,
    centre: Tensor,
    start: Tensor,
    steps: int = STEPS,
) -> ClassGaussians:
    """Take steps of EM until probabilities, or the means, hardly change."""
    weights, last = known, None
    for _ in range(steps):
        axes, word, linear, doubt = classes.marginals(factors)
        precision = 1 - doubt
        means = torch.linalg.solve(axes, classes.means.mT).mT
        origin = torch.linalg.solve(axes, centre)
        for _ in range(1 if guess is None else 2):
            if guess is not None:
                scores = _scores(linear, precision, means) + guess[1]
                weights = known + guess[0][:, None] * scores.softmax(dim=1)
            means = _means(linear, precision, weights, origin)
        within = expected_scatter(linear, doubt, word, weights, means)
        # As if one document more per dimension had been seen.
        total, K = weights.sum(), len(centre)
        within = axes @ within @ axes.mT + K * start
        within = (within + within.mT) / 2 / (total + K)
        classes = ClassGaussians(classes.information, means @ axes.mT, within)
        now = means if guess is None else weights
        if last is not None:
            change = (now - last).abs().sum() / (
                last.abs().sum() if guess is None else total
            )
            if change < TOLERANCE:
                break
        last = now
    return classes


def _scores(linear: Tensor, precision: Tensor, means: Tensor) -> Tensor:
    return linear @ means.mT - precision @ means.square().mT / 2


def _means(
    linear: Tensor, precision: Tensor, weights: Tensor, centre: Tensor
) -> Tensor:
    """Maximise the likelihood in the means, whose prior is one document's worth."""
    return (weights.mT @ linear + centre) / (weights.mT @ precision + 1)


def expected_scatter(
    linear: Tensor, doubt: Tensor, word: Tensor, weights: Tensor, means: Tensor
) -> Tensor:
    r"""Return the expected scatter of embeddings around the means, summed.

    It is :math:`\sum_{d\ell} w_{d\ell} (F_d + r_{d\ell} r_{d\ell}^T)` with residuals
    :math:`r_{d\ell} = \tilde h_d - (I - F_d) \mu_\ell` and the diagonal *doubts*
    :math:`F_d = (I + c_d G)^{-1}`. Products of doubts are divided differences,

    .. math::

        f_{dk} f_{dm} = \frac{g_k f_{dk} - g_m f_{dm}}{g_k - g_m},

    so that all sums over documents and classes are products of matrices: no loop over
    classes, and K^2 operations per document or class, not per pair of them.

    Parameters
    ----------
    linear, doubt : Tensor of shape (n, K)
        :math:`\tilde h` and the diagonals of :math:`F`.
    word : Tensor of shape (K,)
        The diagonal of :math:`G`.
    weights : Tensor of shape (n, n_classes)
    means : Tensor of shape (n_classes, K)
    """
    own = weights.sum(dim=1)
    expected = weights @ means
    crossed = linear.mT @ ((1 - doubt) * expected)
    scatter = linear.mT @ (own[:, None] * linear) - crossed - crossed.mT
    # Sums over classes of w mu mu', and the same with a doubt, and with two of them.
    plain = means.mT @ (weights.sum(dim=0)[:, None] * means)
    once = ((weights.mT @ doubt) * means).mT @ means
    gap = word[:, None] - word
    equal = gap.abs() <= CLOSE * torch.maximum(word[:, None], word)
    twice = (word[:, None] * once - (word[:, None] * once).mT) / gap.where(~equal, 1.0)
    squares = ((weights.mT @ doubt.square()) * means).mT @ means
    twice = torch.where(equal, (squares + squares.mT) / 2, twice)
    return scatter + plain - once - once.mT + twice + torch.diag(own @ doubt)
