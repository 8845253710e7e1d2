"""The embedder of raw texts."""

from __future__ import annotations

from dataclasses import replace
from inspect import signature
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
    clone,
)
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from docsigma._base import HasDefaults
from docsigma.classifiers.guarantees import Guarantees, with_cut_copies
from docsigma.counts import Vocabulary
from docsigma.counts._analysis import TOKEN_PATTERN
from docsigma.counts.texts import as_texts
from docsigma.design import Design
from docsigma.exceptions import InputError
from docsigma.groups.gaussians import Groups
from docsigma.groups.over_time import shares_over_time
from docsigma.metrics.variances import LENGTHS
from docsigma.models import BayesianSMM, load_model
from docsigma.models.components import known_words
from docsigma.models.effects import Effect, design_of, effect
from docsigma.text.familiarity import familiarity_of
from docsigma.text.seeds import hold_seeds
from docsigma.text.topics import TopicOverTime

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import scipy.sparse as sp
    from numpy.typing import NDArray

    from docsigma.counts import Counts
    from docsigma.metrics.variances import VarianceCalibration
    from docsigma.models._count_model import CountModel
    from docsigma.posterior import GaussianPosterior


# Parameters that choose the words, that split texts, and that models have too.
LIMITS = ("min_df", "max_df", "max_features")
ANALYSIS = (
    *("stop_words", "ngram_range", "tokenizer"),
    *("lowercase", "token_pattern", "strip_accents", "analyzer"),
)
SHARED = ("n_components", "output", "device", "random_state", "verbose")


class Topic(NamedTuple):
    """A group of similar documents, as one row of a table."""

    topic: int
    size: int
    words: list[str]
    documents: list[str]


class TextEstimator(BaseEstimator):
    """An estimator that takes a column of strings."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


class DocumentEmbedder(
    HasDefaults, ClassNamePrefixFeaturesOutMixin, TransformerMixin, TextEstimator
):
    """Embeds texts as Gaussians: a vocabulary and a model.

    Parameters
    ----------
    n_components : int or None, default=None
        Dimensions of the embeddings. For this parameter, `output`, `device`,
        `random_state` and `verbose`, None means that of `model`: by default 100,
        ``"mean"``, ``"auto"``, None and False. It is an error if both have one and
        they differ, unless that of `model` is its default.
    min_df, max_df : int or float, default=2 and 1.0
        Keep words in at least, at most, that many documents (int) or that share of
        the documents (float).
    max_features : int, default=None
        Keep only that many words, the most frequent ones.
    stop_words : "english", list of str or None, default=None
        Words to leave out.
    ngram_range : tuple of two ints, default=(1, 1)
        Shortest and longest sequence of words to count.
    tokenizer : {"jieba", "janome", "pythainlp"}, function or None, default=None
        Splits texts into words: a library for Chinese, Japanese or Thai, or a function
        from a text to its words, of which a saved model has only the name.
    lowercase, token_pattern, strip_accents, analyzer
        As in scikit-learn's ``CountVectorizer``: ``analyzer="char_wb"`` counts
        sequences of characters within words.
    seeds : dict of lists of words, default=None
        Words that belong together, by a name for each list, such as
        ``{"billing": ["invoice", "refund"]}``: the first dimensions of the embedding
        start from them, in that order, and a prior holds these words there.
    seed_strength : float, default=100.0
        How firmly: as if each word had been seen this many times on its dimension.
    model : estimator, default=None
        The model to fit; None means a :class:`~docsigma.BayesianSMM`.
    output : {"mean", "mean_variance"}, default=None
        What `transform` returns.
    device : str, default=None
        ``"cpu"``, ``"cuda"``, or ``"auto"``: a GPU if there is one.
    random_state : int, RandomState or None, default=None
        Seed of all draws.
    verbose : bool, default=None
        Whether steps that take longer than two seconds show a progress bar.

    Attributes
    ----------
    model_ : BayesianSMM
        The fitted model; it knows its words (``model_.vocabulary_``).

    Examples
    --------
    >>> texts = ["sun and rain", "rain and wind", "bread and salt", "salt and butter"]
    >>> embedder = DocumentEmbedder(2, random_state=0).fit(texts)
    >>> q = embedder.posterior(["rain", "wind, rain and snow"])
    >>> q.mean.shape, q.n_tokens
    ((2, 2), array([1., 2.]))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "model": [BaseEstimator, None],
        "output": [StrOptions({"mean", "mean_variance"}), None],
        "seed_strength": [Interval(Real, 0, None, closed="neither")],
    }

    _defaults: ClassVar[dict[str, type[BaseEstimator]]] = {"model": BayesianSMM}

    model_: CountModel

    def __init__(
        self,
        n_components: int | None = None,
        *,
        min_df: float = 2,
        max_df: float = 1.0,
        max_features: int | None = None,
        stop_words: str | list[str] | None = None,
        ngram_range: tuple[int, int] = (1, 1),
        tokenizer: str | Callable[[str], Iterable[str]] | None = None,
        lowercase: bool = True,
        token_pattern: str = TOKEN_PATTERN,
        strip_accents: str | None = None,
        analyzer: str = "word",
        seeds: Mapping[str, Sequence[str]] | None = None,
        seed_strength: float = 100.0,
        model: BaseEstimator | None = None,
        output: str | None = None,
        device: str | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool | None = None,
    ) -> None:
        self.n_components = n_components
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features
        self.stop_words = stop_words
        self.ngram_range = ngram_range
        self.tokenizer = tokenizer
        self.lowercase = lowercase
        self.token_pattern = token_pattern
        self.strip_accents = strip_accents
        self.analyzer = analyzer
        self.seeds = seeds
        self.seed_strength = seed_strength
        self.model = model
        self.output = output
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Iterable[object],
        y: object = None,  # noqa: ARG002
        *,
        covariates: Any = None,
        formula: str | None = None,
    ) -> Self:
        """Choose the words, and fit the model to their counts.

        Parameters
        ----------
        X : list or column of str
            The documents.
        y : ignored
            For scikit-learn.
        covariates : table, default=None
            Who wrote each document, and when: a data frame, a dictionary of columns or
            a list of dictionaries, with one row per document. Topics may depend on it
            (``prior="covariates"``), and :meth:`effect` tells how. A missing cell
            counts as the average.
        formula : str, default=None
            The columns to use and how, such as ``"party + spline(year)"``; None means
            all: numbers and dates as lines, the rest as categories.

        Returns
        -------
        self
        """
        vocabulary, counts = self.learn_words(X)
        return self.fit_counts(
            counts, vocabulary=vocabulary, covariates=covariates, formula=formula
        )

    def learn_words(self, X: Iterable[object]) -> tuple[Vocabulary, sp.csr_matrix]:
        """Choose the words of texts and count them: the first half of :meth:`fit`."""
        settings = {name: getattr(self, name) for name in LIMITS + ANALYSIS}
        verbose = self._unfitted_model().verbose
        vocabulary, counted = Vocabulary.fit_count(X, verbose=verbose, **settings)
        return vocabulary, counted.counts

    def fit_counts(
        self,
        counts: sp.csr_matrix | Counts,
        *,
        vocabulary: Vocabulary | None = None,
        covariates: Any = None,
        formula: str | None = None,
        **options: Any,
    ) -> Self:
        """Fit the model to documents that are already counted, such as those on disk.

        Parameters
        ----------
        counts : sparse matrix or Counts of shape (n_documents, n_words)
            Word counts.
        vocabulary : Vocabulary, default=None
            The words of the columns. Without it the embedder cannot embed texts.
        covariates, formula
            As for :meth:`fit`.
        **options
            Arguments of the model's `fit`, such as ``callback``.

        Returns
        -------
        self
        """
        if vocabulary is not None and counts.shape[1] != len(vocabulary):
            raise InputError(
                f"`counts` has {counts.shape[1]} columns, `vocabulary` has "
                f"{len(vocabulary)} words"
            )
        model, more = self._unfitted_model(), {}
        if covariates is not None:
            design, options["covariates"] = Design.learn(covariates, formula)
            more["design"] = design.to_dict()
            if getattr(model, "prior", None) == "isotropic":
                model.set_params(prior="covariates")
        elif formula is not None:
            raise InputError("`formula` needs a table of `covariates`")
        if self.seeds:
            hold_seeds(model, vocabulary, self.seeds, float(self.seed_strength))
        self.model_ = model.fit(counts, **options)
        if vocabulary is not None:
            model.set_vocabulary(vocabulary)
        more["embedder"] = self._saved_parameters()
        model.trained_on_ = model.trained_on_ | more
        return self

    @property
    def design_(self) -> Design:
        """How the columns of a table are covariates of the model."""
        check_is_fitted(self)
        return design_of(self.model_)

    def _unfitted_model(self) -> CountModel:
        """Return a copy of the model with the parameters that the embedder gives it."""
        own = BayesianSMM() if self.model is None else self.model
        model: CountModel = clone(own)
        defaults = _defaults(own)
        for name in SHARED:
            given, models = getattr(self, name), getattr(own, name, None)
            if given is None or given == models:
                continue
            if name not in defaults or models != defaults[name]:
                raise InputError(
                    f"`{name}` is {given!r}, but that of `model` is {models!r}: leave "
                    "one of them out"
                )
            model.set_params(**{name: given})
        return model

    def _saved_parameters(self) -> dict[str, Any]:
        """Return, for JSON, the parameters that neither words nor model know."""
        values = {name: getattr(self, name) for name in LIMITS + SHARED}
        if self.seeds:
            values["seeds"] = {k: list(words) for k, words in self.seeds.items()}
            values["seed_strength"] = float(self.seed_strength)
        for name, value in values.items():
            if isinstance(value, np.generic):
                values[name] = value.item()
        if not isinstance(values["random_state"], int):
            values["random_state"] = None  # no RandomState is saved
        return {**values, "verbose": None, "model": self.model is not None}

    def posterior(
        self, X: Iterable[object], covariates: Any = None
    ) -> GaussianPosterior:
        """Return the Gaussian of each document.

        A document with no known word gets the prior. With a table of `covariates`, if
        the embedder was fitted with one, it is that of documents like it.
        """
        counts = self._counts(X)  # before `model_`: checks that there is one
        if covariates is None:
            return self.model_.posterior(counts)
        matrix = self.design_.matrix(covariates)
        model: Any = self.model_
        found: GaussianPosterior = model.posterior(counts, covariates=matrix)
        return found

    def transform(self, X: Iterable[object]) -> NDArray[Any]:
        """Return the means of the documents, or means and variances (see `output`)."""
        counts = self._counts(X)
        return self.model_.transform(counts)

    def score(self, X: Iterable[object], y: object = None) -> float:  # noqa: ARG002
        """Return the bound on the log evidence per known token, in nats.

        Higher is better. Embedders that know the same words can be compared by it, so
        that a grid search over `n_components` needs no labels. A model of points has
        no bound; its `score` is returned.
        """
        counts = self._counts(X)
        return float(self.model_.score(counts))

    def calibration(
        self,
        X: Iterable[object],
        *,
        lengths: Sequence[float] = LENGTHS,
        random_state: int = 0,
    ) -> VarianceCalibration:
        """Test the variances on parts of texts, without labels.

        Each text is embedded whole and in part: its first words, and as many random
        words. The ratio is 1 if the variances of the parts are right, and above 1 if
        they are too small; ``print`` shows a table. Of vocabularies with pairs of
        words there are no first words.

        Parameters
        ----------
        X : list or column of str
            Texts, preferably not those of the training; at least 30.
        lengths, random_state
            As for :func:`~docsigma.metrics.variances.calibrate_variances`.

        Returns
        -------
        VarianceCalibration
        """
        texts = as_texts(X)
        counts = self._counts(texts)
        return self.model_.calibration(
            counts, texts=texts, lengths=lengths, random_state=random_state
        )

    def calibrate(self, X: Iterable[object]) -> Self:
        """Learn how likely the words of texts are that `fit` has not seen.

        No labels are needed. :meth:`unknown_p_value` then compares other texts with
        these, and with copies cut to lengths that few of them have; a saved embedder
        knows them too.
        """
        check_is_fitted(self)
        texts = as_texts(X)
        if not texts:
            raise InputError("`calibrate` needs texts, and there are none")
        every, _ = with_cut_copies(texts, familiarity_of(self.model_, texts)[1])
        familiarity, lengths = familiarity_of(self.model_, every)
        is_cut = np.arange(len(every)) >= len(texts)
        found = Guarantees.without_labels(lengths, familiarity, is_cut)
        self.model_.reference_ = found.to_array()
        return self

    def unknown_p_value(self, X: Iterable[object]) -> NDArray[Any]:
        """Return a p-value of each text being like those of :meth:`calibrate`.

        Of texts like those at most the share p has a value of p or less, whatever their
        length. Small values mean words that the model does not know or finds unlikely
        together; texts of common words only can be of any topic.
        """
        check_is_fitted(self)
        if self.model_.reference_ is None:
            raise InputError("`calibrate` the embedder on texts that it has not seen")
        familiarity, lengths = familiarity_of(self.model_, as_texts(X))
        known = Guarantees.of_array(self.model_.reference_)
        # Nothing speaks against a text without words.
        found = known.p_values(familiarity, lengths)
        return np.where(lengths == 0, 1.0, found)

    def effect(
        self,
        column: str,
        *,
        words: Sequence[str] | Mapping[str, Iterable[str]] | None = None,
        topics: Groups | None = None,
        directions: Mapping[str, Any] | None = None,
        values: Sequence[Any] | None = None,
        reference: Any = None,
        level: float = 0.9,
        n_words: int = 8,
    ) -> Effect:
        """Return what a covariate of the fit changes, with intervals.

        The other covariates are at their averages. An interval is for one change,
        taken alone: of twenty of 90 %, two miss.

        Parameters
        ----------
        column : str
            A column of the table that :meth:`fit` got.
        words : list of words, or dict of such lists, default=None
            Words or named groups of words: the change of their log odds against all
            words.
        topics : Groups, default=None
            Result of :meth:`groups`: how far documents move towards each group; 1 is
            the way from the mean of all groups to its centre.
        directions : dict of arrays (n_components,), default=None
            Directions of the embedding, for example a document's mean: the change along
            each. Without any of these three, the words that change most are shown.
        values : list, default=None
            Levels or numbers; None means all levels, or a curve.
        reference : level or number, default=None
            What they are compared with; None means the average document.
        level : float, default=0.9
            Probability of each interval.
        n_words : int, default=8
            Words per value, if neither words, topics nor directions are given.

        Examples
        --------
        >>> texts = ["sun and rain", "rain and wind", "bread and salt"] * 20
        >>> table = {"of": ["weather", "weather", "food"] * 20}
        >>> embedder = DocumentEmbedder(2, random_state=0).fit(texts, covariates=table)
        >>> found = embedder.effect("of", words=["rain"], values=["weather"])
        >>> found.rows[0].low > 0
        True
        """
        check_is_fitted(self)
        if sum(given is not None for given in (words, topics, directions)) > 1:
            raise InputError("pass one of `words`, `topics` and `directions`")
        if topics is not None:
            if not isinstance(topics, Groups):
                raise InputError(
                    "`topics` must be what `groups` returned, got "
                    f"{type(topics).__name__}"
                )
            directions = topics.directions()
        options: dict[str, Any] = {"values": values, "reference": reference}
        options |= {"words": words, "directions": directions, "level": level}
        return effect(self.model_, column, n_words=n_words, **options)

    def clusters(
        self, X: Iterable[object], n_clusters: int | None = 10
    ) -> NDArray[np.intp]:
        """Return the number of the group of each document; group 0 is the largest."""
        return self.groups(X, n_clusters, 1).of

    def topics(
        self,
        X: Iterable[object],
        n_topics: int | None = 10,
        n_words: int = 8,
        *,
        times: Sequence[Any] | None = None,
        units: Sequence[Any] | None = None,
    ) -> list[Topic] | list[TopicOverTime]:
        """Group the documents and describe the groups, largest first.

        A topic is a group's number, its size, the words that are likelier in it, and
        its three most typical documents. ``pandas.DataFrame`` makes a table of them.

        With `times`, numbers or dates of the documents, it has its share per period
        too, with an interval of 90 %. `units` says which documents belong together,
        for example to one speech: such are not independent. For a figure, use
        :func:`~docsigma.groups.over_time.shares_over_time` on :meth:`groups`.
        """
        texts = as_texts(X)
        groups = self.groups(texts, n_topics, n_words)
        plain = [
            Topic(
                group.number,
                group.size,
                group.words,
                [texts[row] for row in group.nearest],
            )
            for group in groups.found
        ]
        if times is None:
            return plain
        rows = shares_over_time(groups, groups.posterior, times, units).to_dicts()
        return [
            TopicOverTime(*topic, [row for row in rows if row["topic"] == group.name])
            for topic, group in zip(plain, groups.found, strict=True)
        ]

    def groups(
        self, X: Iterable[object], n_groups: int | None = None, n_words: int = 8
    ) -> Groups:
        """Group the documents; None finds the number of groups.

        The groups of :meth:`clusters` and :meth:`topics`, which can be merged and
        renamed, and to which new documents can be assigned.
        """
        counts, model = self._counts(X), self.model_
        embed = model.transform if model.gives_points else model.posterior
        return Groups.fit(model, embed(counts), n_groups, n_words, counts)

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the model, its words and the parameters to a folder.

        It is like those of ``docsigma fit``. A folder that exists is refused without
        `overwrite`, unless it is empty.
        """
        check_is_fitted(self)
        self.model_.save(folder, overwrite=overwrite)

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        *,
        tokenizer: Callable[[str], Iterable[str]] | None = None,
    ) -> Self:
        """Read a folder that :meth:`save` or ``docsigma fit`` wrote.

        A `tokenizer` that was a function must be passed again: no code is saved.
        """
        return cls._of(load_model(folder), tokenizer)

    @classmethod
    def _of(
        cls,
        model: CountModel,
        tokenizer: Callable[[str], Iterable[str]] | None,
    ) -> Self:
        """Make an embedder from a model that knows its words."""
        words = known_words(model)
        if tokenizer is not None:
            words = replace(words, tokenizer=tokenizer)
            model.set_vocabulary(words)
        given = {name: getattr(words, name) for name in ANALYSIS}
        if isinstance(words.stop_words, tuple):
            given["stop_words"] = list(words.stop_words)
        given |= model.trained_on_.get("embedder", {"model": True})
        if given["model"]:
            given["model"], defaults = clone(model), _defaults(model)
            both = [name for name in SHARED if given.get(name) is not None]
            given["model"].set_params(**{name: defaults[name] for name in both})
        else:
            given["model"] = None
        embedder = cls(**given)
        embedder.model_ = model
        return embedder

    def _counts(self, X: Iterable[object]) -> Any:
        check_is_fitted(self)
        if self.verbose is not None:
            self.model_.verbose = self.verbose  # it may have been set after the fit
        return known_words(self.model_).count(X, verbose=self.model_.verbose).counts

    @property
    def _n_features_out(self) -> int:
        return self.model_._n_features_out

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Return the names of the columns of :meth:`transform`."""
        check_is_fitted(self)
        return self.model_.get_feature_names_out(input_features)


def _defaults(model: BaseEstimator) -> dict[str, Any]:
    """Return the default values of a model's parameters."""
    return {p.name: p.default for p in signature(type(model)).parameters.values()}
