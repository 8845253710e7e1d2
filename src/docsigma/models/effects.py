"""What covariates change: differences and curves, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm
from sklearn.utils.validation import check_is_fitted

from docsigma.design import Design
from docsigma.exceptions import InputError
from docsigma.models.components import centred_loadings, known_words
from docsigma.priors import CovariatePrior

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from docsigma.models._count_model import CountModel

Array = NDArray[np.float64]
# Points of a curve.
GRID = 41


class EffectRow(NamedTuple):
    """One change, with its interval.

    Attributes
    ----------
    of : str
        What changes: a word, a group of words, a topic or a direction.
    value : str or float
        The level or the number of the covariate.
    estimate, low, high : float
        Change of the log odds or along a direction, and its interval.
    """

    of: str
    value: Any
    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class Effect:
    """What one covariate changes, the rest at their averages.

    The change of a word is that of its log odds against all words, the logarithm of the
    factor by which it becomes more frequent than the rest; the change of a group is the
    mean over its words. Along a direction or towards a topic it is a distance.

    Attributes
    ----------
    column : str
        The covariate.
    reference : str
        What values are compared with.
    level : float
        Probability of each interval, taken alone.
    rows : list of EffectRow
    unit : str
        "log odds", or "distance" along directions and towards topics.
    """

    column: str
    reference: str
    level: float
    rows: list[EffectRow]
    unit: str = "log odds"

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        head = (
            f"effect of {self.column} against {self.reference}, {self.unit}, "
            f"{100 * self.level:g} % intervals"
        )
        wide = max([len(row.of) for row in self.rows] + [2])
        lines = [
            f"{row.of:{wide}}  {_shown(row.value):>12}  {row.estimate:+6.2f}  "
            f"[{row.low:+.2f}, {row.high:+.2f}]"
            for row in self.rows
        ]
        return "\n".join([head, *lines])

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries; ``pandas.DataFrame`` makes a table."""
        return [{"column": self.column, **row._asdict()} for row in self.rows]

    def plot(self, path: str | Path | None = None) -> Any:
        """Return a figure of curves or of differences, written to `path` if given."""
        from docsigma.metrics.trend_plots import plot_effect

        return plot_effect(self, path)


def design_of(model: CountModel) -> Design:
    """Return how the columns of a table are covariates of a model."""
    found = model.trained_on_.get("design")
    if found is None:
        raise InputError(
            "the model knows no covariates: fit it with a table of `covariates` "
            "(docsigma fit --covariates)"
        )
    return Design.from_dict(found)


def weights_of(model: Any) -> CovariatePrior:
    """Return the prior of covariates of a model whose weights have a posterior."""
    check_is_fitted(model)
    prior = model.parts_.prior
    if not isinstance(prior, CovariatePrior) or not hasattr(prior, "axes_"):
        raise InputError(
            f"effects need a model fitted with covariates, and its prior is {prior!r}"
        )
    return prior


def word_effects(
    model: Any, covariates: Array, groups: Array, *, with_words: bool = True
) -> tuple[Array, Array]:
    r"""Return changes of the log odds of groups of words, and their standard errors.

    Both have one row per change of covariates, and one column per group: a row of
    weights of the words, whose sum is 1. For a word j it is
    :math:`\Delta\log\theta_j - \sum_i p_i\,\Delta\log\theta_i` with the uni-gram p,
    which is linear in the embedding: :math:`(t_j - \sum_i p_i t_i)\,A\,\Delta c`.

    The error is that of A, with documents integrated out and, `with_words`, that of the
    loadings of the words, if they have variances.
    """
    prior = weights_of(model)
    _, loadings = centred_loadings(model)
    directions = groups @ loadings
    estimate, variance = direction_effects(prior, covariates, directions)
    if with_words and model.components_variance_ is not None:
        moved = covariates @ prior.weights_
        spread = np.einsum(
            "np,kpq,nq->nk", covariates, prior.weight_covariance_, covariates
        )
        square = np.square(moved) + spread @ np.square(prior.axes_).T
        own = np.square(groups) @ model.components_variance_.T
        variance = variance + square @ own.T
    return estimate, np.sqrt(variance)


def direction_effects(
    prior: CovariatePrior, covariates: Array, directions: Array
) -> tuple[Array, Array]:
    """Return changes along directions of the embedding, and their variances."""
    estimate = covariates @ prior.weights_ @ directions.T
    along = np.square(directions @ prior.axes_)
    spread = np.einsum(
        "np,kpq,nq->nk", covariates, prior.weight_covariance_, covariates
    )
    return estimate, spread @ along.T


def effect(
    model: Any,
    column: str,
    *,
    words: Sequence[str] | Mapping[str, Iterable[str]] | None = None,
    directions: Mapping[str, ArrayLike] | None = None,
    values: Sequence[Any] | None = None,
    reference: Any = None,
    level: float = 0.9,
    n_words: int = 8,
) -> Effect:
    """Return what a covariate changes; see :meth:`DocumentEmbedder.effect`."""
    if not 0 < level < 1:
        raise InputError(f"`level` must be between 0 and 1, got {level}")
    if values is not None and (isinstance(values, str) or not np.iterable(values)):
        raise InputError(f"`values` must be a list, got {values!r:.60}")
    design = design_of(model)
    changes, shown, against = _changes(design, column, values, reference)
    half = float(norm.ppf(0.5 + level / 2))
    if directions is not None:
        names, prior = list(directions), weights_of(model)
        matrix = np.array([np.asarray(directions[name]) for name in names], dtype=float)
        if matrix.shape != (len(names), model.n_components):
            raise InputError(
                f"each of `directions` must have {model.n_components} numbers, got the "
                f"shape {matrix.shape[1:]}"
            )
        estimate, variance = direction_effects(prior, changes, matrix)
        error = np.sqrt(variance)
    elif words is not None:
        names, groups = _groups(model, words)
        estimate, error = word_effects(model, changes, groups)
    else:
        return _strongest(model, column, changes, shown, against, half, level, n_words)
    rows = [
        EffectRow(
            name,
            value,
            float(estimate[i, j]),
            float(estimate[i, j] - half * error[i, j]),
            float(estimate[i, j] + half * error[i, j]),
        )
        for j, name in enumerate(names)
        for i, value in enumerate(shown)
    ]
    unit = "log odds" if directions is None else "distance"
    return Effect(column, against, level, rows, unit)


def _changes(
    design: Design, column: str, values: Sequence[Any] | None, reference: Any
) -> tuple[Array, list[Any], str]:
    """Return changes of the covariates, the values they are for, and the reference."""
    levels = design.levels(column) if column in design.columns else None
    if values is None:
        if levels is not None:
            values = levels
        elif column in design.columns:
            values = np.linspace(*design.range(column), GRID).tolist()
        else:
            values = [0]  # `design.at` says what is wrong
    shown = list(values)
    rows = design.at(**{column: shown})
    if reference is None:
        return rows, shown, "the average document"
    base = design.at(**{column: [reference]})
    kept = [i for i, value in enumerate(shown) if value != reference]
    return (rows - base)[kept], [shown[i] for i in kept], _shown(reference)


def _groups(
    model: Any, words: Sequence[str] | Mapping[str, Iterable[str]]
) -> tuple[list[str], Array]:
    """Return names of groups of words, and their weights, one row per group."""
    if isinstance(words, str):
        raise InputError(f"`words` must be a list of words, got the string {words!r}")
    known = {word: i for i, word in enumerate(known_words(model).words)}
    named = words if hasattr(words, "items") else {word: [word] for word in words}
    groups = np.zeros((len(named), len(known)))
    for row, (name, members) in enumerate(named.items()):
        members = [members] if isinstance(members, str) else list(members)
        for word in members:
            if word not in known:
                raise InputError(
                    f"{word!r} of {name!r} is not among the {len(known)} words of the "
                    "vocabulary"
                )
            groups[row, known[word]] += 1 / len(members)
    return [str(name) for name in named], groups


def _strongest(
    model: Any,
    column: str,
    changes: Array,
    shown: list[Any],
    against: str,
    half: float,
    level: float,
    n_words: int,
) -> Effect:
    """Return the words that a covariate changes most, for each of its values.

    Of a curve, only the ends are shown. Words are ordered by the root of their
    frequency times the end of their interval that is nearer to zero.
    """
    if len(shown) == GRID:
        changes, shown = changes[[0, -1]], [shown[0], shown[-1]]
    words = known_words(model).words
    unigram, loadings = centred_loadings(model)
    prior = weights_of(model)
    estimate, variance = direction_effects(prior, changes, loadings)
    if model.components_variance_ is not None:
        moved = np.square(changes @ prior.weights_)
        variance = variance + moved @ model.components_variance_
    error = np.sqrt(variance)
    rows = []
    for i, value in enumerate(shown):
        sure = np.sqrt(unigram) * (estimate[i] - half * error[i])
        for j in np.argsort(-sure, kind="stable")[:n_words].tolist():
            middle, reach = float(estimate[i, j]), float(half * error[i, j])
            row = EffectRow(words[j], value, middle, middle - reach, middle + reach)
            rows.append(row)
    return Effect(column, against, level, rows)


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
