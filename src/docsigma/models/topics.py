"""What the dimensions of a model, and the groups of its documents, are about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.cluster import KMeans

from docsigma.exceptions import InputError
from docsigma.posterior import GaussianPosterior

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from docsigma.models._count_model import CountModel


def _words(model: CountModel) -> NDArray[Any]:
    if model.vocabulary_ is None:
        raise InputError(
            "the model does not know its words; call `set_vocabulary` before saving"
        )
    return np.asarray(model.vocabulary_.words, dtype=object)


def _strongest(scores: NDArray[Any], words: NDArray[Any], n_words: int) -> list[str]:
    order = np.argsort(-scores, kind="stable")[:n_words]
    return [str(word) for word in words[order]]


def _centred(model: CountModel) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the uni-gram, and the loadings less their mean under it."""
    unigram = np.exp(model.training_log_unigram_)
    loadings = model.components_.T.astype(np.float64)
    return unigram, loadings - unigram @ loadings


def _lift(unigram: NDArray[Any], logits: NDArray[Any]) -> NDArray[Any]:
    r"""How much each word's share grows where its logit changes by this much.

    :math:`\sqrt{p_i}\, t_i \delta`: the change of the logit alone would put words
    seen two or three times first; the root of the frequency holds them down.
    """
    lift: NDArray[Any] = np.sqrt(unigram) * logits
    return lift


@dataclass(frozen=True)
class Dimension:
    """The words at the two ends of one dimension.

    Attributes
    ----------
    index : int
        Which dimension.
    top, bottom : list of str
        Words that a large, and a small, value makes likelier; strongest first.
    weight : float
        Standard deviation of its loadings under the uni-gram: how much it matters.
    """

    index: int
    top: list[str]
    bottom: list[str]
    weight: float


@dataclass(frozen=True)
class Cluster:
    """A group of documents that lie together.

    Attributes
    ----------
    size : int
        Number of documents.
    words : list of str
        Words that are likelier here than in the whole, strongest first.
    nearest : list of int
        The documents nearest to the centre, those without a known word last.
    mean_total_variance : float or None
        How unsure the members are, on average; None if the documents are points.
    members : ndarray of int
        The documents.
    """

    size: int
    words: list[str]
    nearest: list[int]
    mean_total_variance: float | None
    members: NDArray[np.intp] = field(repr=False)


def describe_dimensions(model: CountModel, n_words: int = 10) -> list[Dimension]:
    """Return the words at both ends of each dimension, heaviest dimension first.

    Examples
    --------
    >>> from docsigma import BayesianSMM, load_corpus
    >>> train = load_corpus("synthetic").train
    >>> smm = BayesianSMM(3, max_iter=20, random_state=0).fit(train.counts)
    >>> len(describe_dimensions(smm.set_vocabulary(train.words))[0].top)
    10
    """
    words = _words(model)
    unigram, centred = _centred(model)
    weights = np.sqrt(unigram @ (centred * centred))
    result = []
    for index in np.argsort(-weights, kind="stable"):
        lift = _lift(unigram, centred[:, index])
        top, bottom = (_strongest(ends, words, n_words) for ends in (lift, -lift))
        result.append(Dimension(int(index), top, bottom, float(weights[index])))
    return result


def cluster_documents(
    model: CountModel,
    posterior: GaussianPosterior | NDArray[Any],
    n_clusters: int = 10,
    n_words: int = 10,
) -> list[Cluster]:
    """Group documents by k-means on their means, and name each group by its words.

    The words are those that the way from the mean of all documents to the centre
    makes likelier, as in the paper's topic discovery. Largest group first.

    Parameters
    ----------
    model : BayesianSMM, SMM or NVDM
        The model, with its vocabulary.
    posterior : GaussianPosterior, or array of shape (n_documents, n_components)
        Of the documents; an array where the model gives points.
    n_clusters : int, default=10
        Number of groups.
    n_words : int, default=10
        Words a group.
    """
    words = _words(model)
    if not 1 <= n_clusters <= len(posterior):
        raise InputError(
            f"`n_clusters` must be from 1 to the {len(posterior)} documents, got "
            f"{n_clusters}"
        )
    total_variance, means = None, posterior
    silent = np.zeros(len(posterior))
    if isinstance(posterior, GaussianPosterior):
        total_variance, means = posterior.total_variance, posterior.mean
        if posterior.n_tokens is not None:
            silent = (posterior.n_tokens == 0).astype(np.float64)
    means = np.asarray(means, dtype=np.float64)
    unigram, centred = _centred(model)
    kmeans = KMeans(n_clusters, n_init=4, random_state=model.seed_).fit(means)
    result = []
    for number, centre in enumerate(kmeans.cluster_centers_):
        members = np.flatnonzero(kmeans.labels_ == number)
        distance = np.square(means[members] - centre).sum(axis=1)
        lift = _lift(unigram, centred @ (centre - means.mean(axis=0)))
        nearest = members[np.lexsort((distance, silent[members]))[:3]].tolist()
        spread = None
        if total_variance is not None:
            spread = float(total_variance[members].mean())
        named = _strongest(lift, words, n_words)
        result.append(Cluster(len(members), named, nearest, spread, members))
    return sorted(result, key=lambda cluster: -cluster.size)
