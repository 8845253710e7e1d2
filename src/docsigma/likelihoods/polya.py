"""The Polya likelihood: a word that occurred once is likely to occur again."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from docsigma.exceptions import InputError
from docsigma.likelihoods._base import DocumentLikelihood, Likelihood
from docsigma.random import Stream, generator, standard_normals

if TYPE_CHECKING:
    from collections.abc import Mapping

    from docsigma.covariances import Gaussians
    from docsigma.kernels import CountTensor
    from docsigma.objective import Model


# The concentration if none was learned, and the centre of its hyper-prior.
DEFAULT = 300.0
# Concentrations at which the likelihood of unseen documents is evaluated: from extreme
# burstiness to a multinomial.
GRID = tuple(2.0**power for power in range(21))
# Stirling's series, exact from 8 on: there its sixth term is below the float64 epsilon.
LOG_GAMMA = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)
DIGAMMA = tuple(-(2 * i + 1) * factor for i, factor in enumerate(LOG_GAMMA))


class Polya(Likelihood):
    r"""Bursty counts: the Polya or Dirichlet-multinomial distribution.

    .. math::
        \log p(x|w) = \log\frac{\Gamma(\alpha)}{\Gamma(\alpha + N)}
        + \sum_i \log\frac{\Gamma(\alpha\theta_i + x_i)}{\Gamma(\alpha\theta_i)}

    (of a sequence of tokens, as for the multinomial). A second token of a word is less
    informative about w than the first: the derivative in :math:`\log\theta_i` is the
    effective count :math:`\sum_{j < x_i} \alpha\theta_i / (\alpha\theta_i + j)`,
    between 1 and :math:`x_i`. The larger :math:`\alpha`, the closer to the multinomial.
    Counts must be whole: below 1 the function is concave, and the bound would not hold.

    Parameters
    ----------
    concentration : float or None, default=None
        :math:`\alpha`. None means that ``solver="fast"`` learns it, from documents that
        the words are not trained on: on training documents it would grow with every
        pass, as T fits them better. With too few documents to set some aside, and in
        ``partial_fit``, it is 300.

    Attributes
    ----------
    concentration_ : float
        The learned value; absent before training.

    Examples
    --------
    Three tokens of a word with probability 0.1 count as 1.83 independent ones:

    >>> import scipy.sparse as sp
    >>> from docsigma.kernels import CountTensor
    >>> counts = CountTensor(sp.csr_matrix([[3.0, 1.0]]), torch.empty(0))
    >>> Polya(10.0).effective_counts(counts, torch.tensor([0.1, 0.9]).log())
    tensor([1.8333, 1.0000])
    """

    def __init__(self, concentration: float | None = None) -> None:
        self.concentration = concentration

    @property
    def alpha(self) -> float:
        """The concentration in use: given, learned or the default."""
        if self.concentration is not None:
            return float(self.concentration)
        return float(getattr(self, "concentration_", DEFAULT))

    def log_prob(self, counts: CountTensor, log_theta: Tensor) -> Tensor:
        """Return the log likelihood per document, float64."""
        return self._log_prob(counts, log_theta.double(), self.alpha)

    @staticmethod
    def _log_prob(counts: CountTensor, log_theta: Tensor, alpha: float) -> Tensor:
        # The first token of each word: log(alpha theta).
        terms = log_theta + math.log(alpha)
        again = torch.nonzero(counts.values > 1)[:, 0]
        share = terms[again].exp()
        more = log_rising(share + 1, counts.values[again].double() - 1)
        terms = terms.index_add(0, again, more)
        tokens = counts.n_tokens.double()
        sums = torch.zeros_like(tokens).index_add_(0, counts.rows_of_values(), terms)
        return sums - log_rising(torch.full_like(tokens, alpha), tokens)

    def effective_counts(self, counts: CountTensor, log_theta: Tensor) -> Tensor:
        """Return the derivative in each log probability, of shape (nnz,)."""
        again = torch.nonzero(counts.values > 1)[:, 0]
        share = (log_theta[again].double() + math.log(self.alpha)).exp()
        more = share * digamma_rise(share + 1, counts.values[again].double() - 1)
        return torch.ones_like(log_theta).index_add(0, again, more.to(log_theta))

    def bind(
        self, counts: CountTensor, loadings: Tensor, bias: Tensor
    ) -> DocumentLikelihood:
        """Return the likelihood of some documents under fixed words.

        Raises
        ------
        InputError
            If a count is not whole, or the concentration given is not positive.
        """
        if not 0 < self.alpha < math.inf:
            raise InputError(
                f"`concentration` must be positive and finite, got {self.alpha:g}"
            )
        values = counts.values
        fraction = values != values.floor()
        if bool(fraction.any()):
            raise InputError(
                'likelihood="polya" needs whole counts, got '
                f'{float(values[fraction][0]):g}; likelihood="multinomial" accepts '
                "fractions"
            )
        return super().bind(counts, loadings, bias)

    def learns_from_unseen(self) -> bool:
        """Whether the concentration is learned."""
        return self.concentration is None

    def sums(
        self, counts: CountTensor, q: Gaussians, model: Model
    ) -> dict[str, Tensor]:
        """Return the documents' log likelihood at each concentration of the grid.

        Each document has one draw from its posterior.
        """
        source = generator(0, Stream.UNSEEN)
        shape = (len(q), 1, model.n_components)
        points = q.points(standard_normals(shape, source, q.mean))[:, 0]
        bound = self.bind(counts, model.loadings, model.bias)
        log_theta = bound.log_theta(points, model.log_sum_exp(points)).double()
        grid = [self._log_prob(counts, log_theta, alpha).sum() for alpha in GRID]
        return {"log_likelihood": torch.stack(grid)}

    def update(self, sums: Mapping[str, Tensor]) -> None:
        """Maximise likelihood times hyper-prior, interpolating between grid points.

        The hyper-prior on the logarithm is N(log 300, 4 squared).
        """
        logs = np.log(GRID)
        value = sums["log_likelihood"].double().cpu().numpy()
        # One standard deviation is a factor of 55: a few unseen documents outweigh it.
        value = value - 0.5 * ((logs - math.log(DEFAULT)) / 4) ** 2
        best = int(value.argmax())
        step = 0.0
        if 0 < best < len(GRID) - 1:
            left, middle, right = value[best - 1 : best + 2]
            step = 0.5 * (left - right) / (left - 2 * middle + right)
        self.concentration_ = math.exp(logs[best] + step * math.log(GRID[1]))

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return the learned concentration."""
        if not hasattr(self, "concentration_"):
            return {}
        return {"concentration": np.array([self.concentration_])}

    def set_arrays(self, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
        """Restore what :meth:`arrays` returned."""
        if "concentration" in arrays:
            self.concentration_ = float(arrays["concentration"][0])


def log_rising(start: Tensor, n: Tensor) -> Tensor:
    r"""Return :math:`\log\Gamma(a + n) - \log\Gamma(a)` without cancellation, float64.

    For positive a and a + n. Both are shifted by eight, where Stirling's series is
    exact up to rounding; its leading terms are subtracted analytically.
    """
    low, high = start + 8, start + n + 8
    value = (low - 0.5) * torch.log1p(n / low) + n * (high.log() - 1)
    value = value + _series(high, LOG_GAMMA) * high - _series(low, LOG_GAMMA) * low
    return value - (_product(start + n) / _product(start)).log()


def digamma_rise(start: Tensor, n: Tensor) -> Tensor:
    """Return the derivative of :func:`log_rising` in its first argument."""
    low, high = start + 8, start + n + 8
    value = torch.log1p(n / low) + 0.5 * n / (low * high)
    value = value + _series(high, DIGAMMA) - _series(low, DIGAMMA)
    return value - (_log_slope(start + n) - _log_slope(start))


def _series(a: Tensor, factors: tuple[float, ...]) -> Tensor:
    """Return the sum of the factors times a^-2, a^-4 and so on."""
    inverse = 1 / (a * a)
    value = torch.zeros_like(a)
    for factor in reversed(factors):
        value = (value + factor) * inverse
    return value


def _product(a: Tensor) -> Tensor:
    """Return a (a + 1) ... (a + 7), its factors taken in pairs."""
    pair = a * (a + 7)
    return pair * (pair + 6) * (pair + 10) * (pair + 12)


def _log_slope(a: Tensor) -> Tensor:
    """Return the derivative of the logarithm of :func:`_product`."""
    pair = a * (a + 7)
    inverse = 1 / pair + 1 / (pair + 6) + 1 / (pair + 10) + 1 / (pair + 12)
    return (2 * a + 7) * inverse
