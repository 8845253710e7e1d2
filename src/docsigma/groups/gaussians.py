"""Groups of similar documents, their words, and distances from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp

from docsigma._array_checks import Floats
from docsigma.counts._base import BLOCK
from docsigma.exceptions import InputError
from docsigma.groups.function_words import is_function_word
from docsigma.groups.mixture import Mixture, choose_number, documents_as_factors
from docsigma.models.components import centred_loadings, known_words
from docsigma.posterior import GaussianPosterior

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from docsigma.models._count_model import CountModel


@dataclass(frozen=True)
class Group:
    """A group of similar documents.

    Attributes
    ----------
    number : int
        Its number, which stays when documents are added and groups merged.
    name : str
        Its first words, or what :meth:`Groups.rename` called it.
    size : int
        Number of documents.
    words : list of str
        Words that lift the group out of the whole, strongest first; English function
        words come last.
    nearest : list of int
        Rows of the three documents nearest to the centre, those without a known word
        last.
    mean_total_variance : float or None
        Mean total variance of the documents; None if they are points.
    members : ndarray of int
        Rows of the documents.
    """

    number: int
    name: str
    size: int
    words: list[str]
    nearest: list[int]
    mean_total_variance: float | None
    members: NDArray[np.intp] = field(repr=False)


class Groups:
    """Groups of documents as Gaussians with a shared covariance.

    A mixture is fitted to what documents say about their embeddings, so that short
    documents count for less. Attributes are `found`, the list of :class:`Group`,
    `centres`, the mean of each group's means, and `variance`, that around them.
    """

    def __init__(
        self,
        model: CountModel,
        posterior: GaussianPosterior | NDArray[Any],
        counts: Any,
        mixture: Mixture,
        numbers: NDArray[np.intp],
        n_words: int,
    ) -> None:
        self._model, self._posterior, self._n_words = model, posterior, n_words
        self._counts = None if counts is None else sp.csr_matrix(counts)
        self._mixture = mixture
        # The group of each component of the mixture, and names that a person chose.
        self._numbers, self._names = numbers, dict[int, str]()
        self._describe()

    @classmethod
    def fit(
        cls,
        model: CountModel,
        posterior: GaussianPosterior | NDArray[Any],
        n_clusters: int | None = None,
        n_words: int = 8,
        counts: Any = None,
    ) -> Self:
        """Group documents, the largest group first.

        Parameters
        ----------
        model : BayesianSMM, SMM or NVDM
            The model, with its vocabulary.
        posterior : GaussianPosterior, or array of shape (n_documents, n_components)
            The documents; an array if the model gives points.
        n_clusters : int, default=None
            Number of groups, at the most; None means the least whose evidence on
            held-out documents is within a standard error of the best.
        n_words : int, default=8
            Words per group.
        counts : sparse matrix of shape (n_documents, n_words), default=None
            Counts of the documents, to describe groups by the words of their members;
            without them words are those of the model.
        """
        n, seed = len(posterior), model.seed_
        if n_clusters is not None and not 1 <= n_clusters <= n:
            raise InputError(
                f"the number of groups must be from 1 to the {n} documents, got "
                f"{n_clusters}"
            )
        information, factors = documents_as_factors(posterior)
        if n_clusters is None:
            n_clusters = choose_number(information, factors, seed)
        mixture = Mixture.fit(information, factors, n_clusters, seed)
        best = mixture.proba(factors).argmax(dim=1).numpy()
        sizes = np.bincount(best, minlength=n_clusters)
        numbers = np.empty(n_clusters, dtype=np.intp)
        numbers[np.argsort(-sizes, kind="stable")] = np.arange(n_clusters)
        return cls(model, posterior, counts, mixture, numbers, n_words)

    def __len__(self) -> int:
        return len(self.found)

    @property
    def posterior(self) -> GaussianPosterior | NDArray[Any]:
        """The documents that are grouped."""
        return self._posterior

    def likelihoods(self, posterior: GaussianPosterior | NDArray[Any]) -> Floats:
        """Return the likelihood of documents in each group, in multiples of their own.

        One row per document, and one column per group of `found`.
        """
        columns = np.array([group.number for group in self.found])
        members = np.equal.outer(self._numbers, columns)
        shares = self._mixture.log_shares.exp().numpy() @ members
        return np.asarray(self._proba(posterior) @ members / shares)

    def assign(self, posterior: GaussianPosterior | NDArray[Any]) -> NDArray[np.intp]:
        """Return the number of each document's group, also of new documents."""
        every = np.equal.outer(self._numbers, np.arange(len(self._numbers)))
        return np.asarray((self._proba(posterior) @ every).argmax(axis=1))

    def _proba(self, posterior: GaussianPosterior | NDArray[Any]) -> Floats:
        information = self._mixture.classes.information
        _, factors = documents_as_factors(posterior, information)
        return np.asarray(self._mixture.proba(factors).numpy())

    def directions(self) -> dict[str, Floats]:
        """Return, per group, the direction from the mean of the centres to its own.

        Along it, the group's centre is at 1 and the mean of the centres at 0.
        """
        away = self.centres - self.centres.mean(axis=0)
        away = away / np.maximum(np.square(away).sum(axis=1, keepdims=True), 1e-300)
        names = [group.name for group in self.found]
        return dict(zip(names, away, strict=True))

    def proba(self, posterior: GaussianPosterior | NDArray[Any]) -> Floats:
        """Return the probability of each group of `found`, one row per document."""
        columns = np.array([group.number for group in self.found])
        return np.asarray(
            self._proba(posterior) @ np.equal.outer(self._numbers, columns)
        )

    def merge(self, numbers: list[int]) -> None:
        """Make several groups one, with the least of their numbers."""
        for number in numbers:
            self._check(number)
        self._numbers[np.isin(self._numbers, numbers)] = min(numbers)
        self._describe()

    def rename(self, number: int, name: str) -> None:
        """Name a group."""
        self._check(number)
        self._names[number] = name
        self._describe()

    def _check(self, number: int) -> None:
        known = [group.number for group in self.found]
        if number not in known:
            raise InputError(f"there is no group {number}: the groups are {known}")

    def _describe(self) -> None:
        """Find members, words and typical documents of every group."""
        q, n_words = self._posterior, self._n_words
        means: Any = q
        total, floor = None, np.array(1e-6)
        silent = np.zeros(len(q))
        if isinstance(q, GaussianPosterior):
            means, total = q.mean, q.total_variance
            # Copies of one document have no scatter: this avoids dividing by zero.
            floor = 1e-6 * q.variance.mean(axis=0, dtype=np.float64)
            if q.n_tokens is not None:
                silent = (q.n_tokens == 0).astype(np.float64)
        means = np.asarray(means, dtype=np.float64)
        self.of = self.assign(q)
        groups = np.unique(self.of)
        members = [np.flatnonzero(self.of == number) for number in groups]
        self.centres = np.stack([means[rows].mean(axis=0) for rows in members])
        lifts = self._lifts(members, means)
        scatter, self.found = np.zeros(means.shape[1]), []
        words = known_words(self._model).words
        for place, (number, rows) in enumerate(zip(groups, members, strict=True)):
            square = np.square(means[rows] - self.centres[place])
            scatter += square.sum(axis=0)
            order = np.lexsort((square.sum(axis=1), silent[rows]))[:3]
            likelier = np.flatnonzero(lifts[place] > 0)
            best = likelier[np.argsort(-lifts[place][likelier], kind="stable")]
            chosen = _distinct(words, best, n_words)
            variance = None if total is None else float(total[rows].mean())
            name = self._names.get(int(number), ", ".join(chosen[:3]))
            nearest = rows[order].tolist()
            self.found.append(
                Group(int(number), name, len(rows), chosen, nearest, variance, rows)
            )
        self.variance = scatter / len(means) + floor

    def _lifts(self, members: list[NDArray[np.intp]], means: Floats) -> Floats:
        r"""Return how much each word lifts each group, groups x words.

        It is :math:`\sqrt{p} \log (p / q)` with the shares p and q of documents, in the
        group and in all, that have the word: rare words and words that most documents
        have are small. Without counts, p and q are the model's probabilities.
        """
        if self._counts is None:
            unigram, loadings = centred_loadings(self._model)
            logits = (self.centres - means.mean(axis=0)) @ loadings.T + np.log(unigram)
            logits -= logits.max(axis=1, keepdims=True)
            own = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
            return np.asarray(np.sqrt(own) * np.log(own / unigram))
        having = sp.csr_matrix(self._counts > 0, dtype=np.float64)
        sizes = np.array([len(rows) for rows in members])[:, None]
        inside = np.stack([np.asarray(having[r].sum(axis=0)).ravel() for r in members])
        every = inside.sum(axis=0)
        # Half a document more with the word, and half without.
        ratio = (inside + 0.5) / (sizes + 1) / ((every + 0.5) / (sizes.sum() + 1))
        return np.asarray(np.sqrt(inside / sizes) * np.log(ratio))

    def distances(self, posterior: GaussianPosterior) -> Floats:
        r"""Return each document's distance from the group that explains it best.

        The root of :math:`\min_c \sum_k (\nu_k - \mu_{ck})^2 / (\sigma_k^2 + s_k^2) /
        K`: an uncertain document is not far from any group, since its variance
        :math:`s^2` is in the denominator.
        """
        found = np.empty(len(posterior))
        for start in range(0, len(posterior), BLOCK):
            rows = slice(start, start + BLOCK)
            weight = 1 / (self.variance + posterior.variance[rows].astype(np.float64))
            mean = posterior.mean[rows].astype(np.float64)
            squares: Any = (
                (weight * mean**2).sum(axis=1)[:, None]
                - 2 * (weight * mean) @ self.centres.T
                + weight @ np.square(self.centres).T
            )
            found[rows] = squares.min(axis=1)
        return np.asarray(np.sqrt(np.maximum(found, 0) / posterior.n_components))


def _distinct(words: Any, order: NDArray[np.intp], n_words: int) -> list[str]:
    """Return the first words, without other endings of words that are there.

    English function words come after all others.
    """
    found: list[str] = []
    candidates = [words[column] for column in order[: 5 * n_words]]
    for word in sorted(candidates, key=is_function_word):
        stem = word[: max(3, len(word) - 2)]
        if not any(
            other.startswith(stem) and abs(len(other) - len(word)) <= 2
            for other in found
        ):
            found.append(word)
    return found[:n_words]
