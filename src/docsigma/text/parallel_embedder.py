"""The embedder of texts in several languages, or in several views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context, clone
from sklearn.utils.validation import check_is_fitted

from docsigma._base import HasDefaults
from docsigma.counts.texts import as_table
from docsigma.exceptions import InputError
from docsigma.groups.gaussians import Groups
from docsigma.models import load_model
from docsigma.models.views import view_columns
from docsigma.text.embedder import ANALYSIS, LIMITS, DocumentEmbedder, Topic

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from docsigma.counts import Vocabulary
    from docsigma.models import BayesianSMM
    from docsigma.posterior import GaussianPosterior


class ParallelEmbedder(HasDefaults, TransformerMixin, BaseEstimator):
    """Embeds documents that are there in several languages, or in several views.

    A row is one document, and has a text in one language or more: its translations, or
    other views of it such as title and body. All of them share one embedding; each
    language has its own words. Texts in any one language can then be compared with
    those in any other.

    Parameters
    ----------
    embedder : DocumentEmbedder, default=None
        How texts are counted and the model is fitted; None means
        ``DocumentEmbedder()``. It is copied.
    settings : dict of dicts, default=None
        For some languages, parameters of `embedder` that choose and split their words,
        such as ``{"jpn": {"tokenizer": "janome"}}``.

    Attributes
    ----------
    model_ : BayesianSMM
        The fitted model of all languages.
    languages_ : list of str
        Their names.

    Examples
    --------
    >>> rows = {"en": ["sun and rain", "rain and wind", "bread and salt", "salt"] * 5,
    ...         "de": ["Sonne", "Wind, Regen", None, "Salz und Brot"] * 5}
    >>> embedder = ParallelEmbedder(DocumentEmbedder(2, random_state=0)).fit(rows)
    >>> embedder.languages_
    ['en', 'de']
    >>> embedder.posterior(["Regen"], language="de").mean.shape
    (1, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "embedder": [DocumentEmbedder, None],
        "settings": [dict, None],
    }
    _defaults: ClassVar[dict[str, type[BaseEstimator]]] = {"embedder": DocumentEmbedder}

    model_: BayesianSMM

    def __init__(
        self,
        embedder: DocumentEmbedder | None = None,
        *,
        settings: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self.embedder = embedder
        self.settings = settings

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: object = None, **options: Any) -> Self:  # noqa: ARG002
        """Choose the words of each language, and fit one model to all.

        Parameters
        ----------
        X : dict or table
            A column of texts for each language. Texts may be missing (blank, None or
            NaN); most rows should have two languages or more.
        y : ignored
            For scikit-learn.
        **options
            Arguments of the model's `fit`, such as ``callback``.

        Returns
        -------
        self
        """
        counts, words = self.learn_words(X)
        return self.fit_counts(counts, vocabulary=words, **options)

    def learn_words(self, X: Any) -> tuple[sp.csr_matrix, dict[str, Vocabulary]]:
        """Choose the words of each language and count them, one after the other."""
        table = as_table(X)
        for name in self.settings or {}:
            if name not in table:
                raise InputError(
                    f"`settings` has {name!r}, and the columns of `X` are "
                    f"{', '.join(table)}"
                )
        words: dict[str, Vocabulary] = {}
        counts: list[Any] = []
        for name, texts in table.items():
            settings = (self.settings or {}).get(name, {})
            words[name], own = self._learn_words(name, texts, settings)
            counts.append(own)
        joined: sp.csr_matrix = sp.hstack(counts, format="csr")
        return joined, words

    def fit_counts(
        self,
        counts: sp.csr_matrix,
        *,
        vocabulary: Mapping[str, Vocabulary],
        **options: Any,
    ) -> Self:
        """Fit the model to what :meth:`learn_words` returned."""
        template = self._template()
        model: Any = template._unfitted_model()
        sizes = {name: len(own) for name, own in vocabulary.items()}
        model.fit(counts, views=sizes, **options)
        model.set_vocabularies(vocabulary)
        model.trained_on_ = model.trained_on_ | {
            "embedder": template._saved_parameters()
        }
        self.model_ = model
        return self

    def _template(self) -> DocumentEmbedder:
        given = DocumentEmbedder() if self.embedder is None else self.embedder
        copied: DocumentEmbedder = clone(given)
        return copied

    def _learn_words(
        self, name: str, texts: list[str], settings: Mapping[str, Any]
    ) -> tuple[Vocabulary, sp.csr_matrix]:
        """Choose the words of a language, and count all rows."""
        template = self._template()
        for key in settings:
            if key not in LIMITS + ANALYSIS:
                raise InputError(
                    f"`settings` of {name!r} may have {', '.join(LIMITS + ANALYSIS)}, "
                    f"got {key!r}"
                )
        rows = [row for row, text in enumerate(texts) if text.strip()]
        least = template._unfitted_model().n_components
        if len(rows) < least:
            raise InputError(
                f"{name!r} has {len(rows)} texts, and learning it takes at least as "
                f"many as there are components, {least}"
            )
        own = template.set_params(**settings)
        words, counted = own.learn_words([texts[row] for row in rows])
        place = sp.csr_matrix(
            (np.ones(len(rows), counted.dtype), (rows, np.arange(len(rows)))),
            shape=(len(texts), len(rows)),
        )
        return words, sp.csr_matrix(place @ counted)

    @property
    def languages_(self) -> list[str]:
        """Names of the languages, in the order of the training."""
        check_is_fitted(self, "model_")
        assert self.model_.views_ is not None
        return list(self.model_.views_)

    def language(self, name: str) -> DocumentEmbedder:
        """Return the embedder of texts in one language.

        It is a fitted :class:`~docsigma.DocumentEmbedder`; its embeddings can be
        compared with those in any other language. Its `save` writes this language
        alone; classifiers and indexes made with it are saved with all languages.
        """
        check_is_fitted(self, "model_")
        return DocumentEmbedder._of(self.model_.view(name), None)

    def posterior(self, X: Any, language: str | None = None) -> GaussianPosterior:
        """Return the Gaussian of each document.

        Parameters
        ----------
        X : list or column of str, dict or table
            Texts in one `language`; or, without it, a column for each of some
            languages. A row without a known word gets the prior.
        language : str, default=None
            The language of the texts.
        """
        check_is_fitted(self, "model_")
        if language is not None:
            return self.language(language).posterior(X)
        return self.model_.posterior(self._counts(X))

    def transform(self, X: Any, language: str | None = None) -> NDArray[Any]:
        """Return the means of the documents, or means and variances.

        X and `language` are those of :meth:`posterior`.
        """
        check_is_fitted(self, "model_")
        if language is not None:
            return self.language(language).transform(X)
        return self.model_.transform(self._counts(X))

    def topics(
        self,
        X: Any,
        n_topics: int | None = 10,
        n_words: int = 8,
        language: str | None = None,
    ) -> list[Topic]:
        """Group the documents, and describe the groups by words of one language.

        Parameters
        ----------
        X : dict or table
            A column for each of some languages.
        n_topics, n_words : int
            As for :meth:`docsigma.DocumentEmbedder.topics`.
        language : str, default=None
            That of words and documents; None means the first column of X.
        """
        check_is_fitted(self, "model_")
        table = as_table(X)
        language = next(iter(table)) if language is None else language
        if language not in table:
            raise InputError(
                f"`X` has no column {language!r}; it has {', '.join(table)}"
            )
        own = self.language(language)
        found = Groups.fit(
            own.model_,
            self.posterior(table),
            n_topics,
            n_words,
            own._counts(table[language]),
        )
        texts = table[language]
        return [
            Topic(
                group.number,
                group.size,
                group.words,
                [texts[row] for row in group.nearest],
            )
            for group in found.found
        ]

    def extend(
        self, language: str, texts: Iterable[object], parallel: Any, **settings: Any
    ) -> Self:
        """Add a language; what is known of the others stays as it is.

        Embeddings, classifiers and indexes of before can be used with the new language.

        Parameters
        ----------
        language : str
            Name of the new language.
        texts : list or column of str
            Texts in it.
        parallel : dict or table
            The same rows in one or more languages that are known.
        **settings
            Parameters that choose and split the words, such as ``tokenizer``.

        Returns
        -------
        self
        """
        check_is_fitted(self, "model_")
        if language in self.languages_:
            raise InputError(f"the language {language!r} is known already")
        own = as_table({language: texts}, "texts")[language]
        known = as_table(parallel, "parallel")
        (first, size), *_ = [(key, len(column)) for key, column in known.items()]
        if size != len(own):
            raise InputError(
                f"`texts` has {len(own)} texts, {first!r} of `parallel` has {size}"
            )
        counts = self._counts(known)
        said = np.asarray(counts.sum(axis=1)).ravel() > 0
        own = [text if said[row] else "" for row, text in enumerate(own)]
        words, new = self._learn_words(language, own, settings)
        rows = np.flatnonzero(np.diff(new.indptr))
        vocabularies = {**self.model_.vocabularies_, language: words}
        posterior = self.model_.posterior(counts[rows])
        self.model_.extend(language, new[rows], posterior)
        self.model_.set_vocabularies(vocabularies)
        return self

    def _counts(self, X: Any) -> sp.csr_matrix:
        """Return the counts of all languages, those of missing ones empty."""
        table, views = as_table(X), self.model_.views_
        assert views is not None
        for name in table:
            view_columns(views, name)  # raises if it is not known
        n_rows = len(next(iter(table.values())))
        counts: list[Any] = [
            self.model_.vocabularies_[name].count(table[name]).counts
            if name in table
            else sp.csr_matrix((n_rows, size), dtype=np.float32)  # type: ignore[arg-type]
            for name, size in views.items()
        ]
        joined: sp.csr_matrix = sp.hstack(counts, format="csr")
        return joined

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the model and the words of all languages to a folder.

        A folder that exists is refused without `overwrite`, unless it is empty.
        """
        check_is_fitted(self, "model_")
        self.model_.save(folder, overwrite=overwrite)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Read a folder that :meth:`save` wrote, or ``docsigma fit`` of a table.

        Tokenizers that have a name are loaded with it.
        """
        model: Any = load_model(folder)
        if not getattr(model, "vocabularies_", None):
            raise InputError(
                f"{folder} holds a model of one language: DocumentEmbedder.load reads "
                "it"
            )
        template = DocumentEmbedder._of(model.view(next(iter(model.views_))), None)
        template = clone(template)
        settings = {}
        for name, words in model.vocabularies_.items():
            own = {key: getattr(words, key) for key in ANALYSIS}
            differing = {k: v for k, v in own.items() if v != getattr(template, k)}
            if differing:
                settings[name] = differing
        loaded = cls(template, settings=settings or None)
        loaded.model_ = model
        return loaded
