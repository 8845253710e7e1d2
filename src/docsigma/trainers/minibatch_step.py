"""One pass of the minibatch trainer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from docsigma import objective
from docsigma.estep.curvature import LoadingsBasis, WordCurvature, own_trace
from docsigma.kernels import SoftmaxWords, Workspace, softmax_moments, view_moments
from docsigma.loadings import WordGradient, WordInformation
from docsigma.optimizers import ProximalAdam

if TYPE_CHECKING:
    from docsigma.covariances import Gaussians
    from docsigma.kernels import CountTensor, SoftmaxMoments
    from docsigma.likelihoods import LikelihoodTerms
    from docsigma.loadings import Loadings, WordAscent
    from docsigma.optimizers import Optimizer
    from docsigma.trainers.minibatch import MinibatchTrainer


class Batch(NamedTuple):
    """Some documents: their numbers in the corpus, and their counts."""

    rows: Tensor
    counts: CountTensor


class WordTable:
    """The words as the primitive reads them, ``[T, m, 1]``, and their optimizers.

    The row after the last word with loadings merges the rest of the words.
    """

    def __init__(
        self,
        n_features: int,
        n_components: int,
        loadings: Loadings,
        like: Tensor,
        learn_bias: bool,
    ) -> None:
        self.n_components = n_components
        self.learn_bias = learn_bias
        self.tensor = like.new_zeros(n_features + 1, n_components + 2)
        self.tensor[:, -1] = 1.0
        self.ascent: WordAscent = loadings.minibatch_ascent(self.loadings)
        self.bias_ascent = ProximalAdam(self.tensor[:, -2:-1])
        # A tensor, so that a checkpoint holds it.
        self.size = torch.zeros((), dtype=torch.int64)
        self.workspace = Workspace()

    @property
    def n_words(self) -> int:
        """Words that have loadings by now."""
        return int(self.size)

    @property
    def loadings(self) -> Tensor:
        """The loadings of all words."""
        return self.tensor[:-1, :-2]

    @property
    def bias(self) -> Tensor:
        """m, and the logit of the merged words."""
        return self.tensor[:, -2]

    def grow(self, n_words: int, loadings: Tensor, bias: Tensor, rest: Tensor) -> None:
        """Add words with their loadings and bias; `rest` has the biases of the rest."""
        new = slice(self.n_words, n_words)
        self.tensor[new, :-2] = loadings
        self.tensor[new, -2] = bias
        self.tensor[n_words, :-2] = 0.0
        self.tensor[n_words, -2] = torch.logsumexp(rest, 0) if len(rest) else -1e4
        self.size.fill_(n_words)

    def optimizers(self) -> dict[str, Optimizer]:
        """Return the optimizers by name, for a checkpoint."""
        return {"loadings": self.ascent, "bias": self.bias_ascent}


def log_shares(totals: Tensor, n_words: int) -> Tensor:
    """Return the log probability of each rare word, given that the word is rare."""
    rare = totals[n_words:].clamp(min=1e-3)
    shared: Tensor = rare.log() - rare.sum().log()
    return shared


class MinibatchStep:
    r"""One pass of :class:`~docsigma.trainers.minibatch.MinibatchTrainer`.

    It moves the first `n_words` of the trainer's words and the posteriors of this
    process's documents in place. `bound` and `kl` are sums over the documents visited
    so far. `linear_gradient` is :math:`X^\top\nu` of this process's documents: summed
    over the ranks, the linear half of T's gradient for a linear likelihood, and most of
    it for any other. `effective_tokens` are those of each document's last visit,
    updated in place: with them as weights, one evaluation of the words suffices,
    although effective counts follow from it.
    """

    def __init__(self, trainer: MinibatchTrainer, n_words: int) -> None:
        table, parts, q = trainer.table, trainer.parts, trainer.q
        self.table, self.parts, self.prior = table, parts, trainer.prior
        # The commonest words, with loadings, and the row that merges the rest.
        self.rows = table.tensor[: n_words + 1]
        self.loadings, self.bias = self.rows[:-1, :-2], self.rows[:, -2]
        self.q, self.settings, self.ranks = q, trainer.settings, trainer.ranks
        self.effective_tokens = trainer.effective_tokens
        k = table.n_components
        self.views, self.given = trainer.views, trainer.given is not None
        self.log_shares = log_shares(trainer.totals, n_words)
        documents_with = trainer.documents_with(n_words)
        totals, self.n_tokens = trainer.seen_tokens()
        self.totals = torch.cat([totals[:n_words], totals[n_words:].sum()[None]])
        if self.views is not None:
            each = torch.split(totals, list(self.views.sizes))
            self.view_tokens = torch.stack([some.sum() for some in each])
        self.bound = torch.zeros((), dtype=torch.float64, device=totals.device)
        self.kl = torch.zeros_like(self.bound)
        # A likelihood that is not linear has counts of all words.
        size = n_words if parts.likelihood.linear else len(totals)
        self.linear_gradient = totals.new_zeros(size, k)
        moment = totals.new_zeros(k)
        self.information: WordInformation | None = None
        if parts.loadings.has_variance:
            everything = torch.zeros_like(self.linear_gradient)
            self.information = WordInformation(
                everything[:n_words], totals[:n_words, None]
            )
        for rows, counts in trainer.documents(n_words):
            some = q[rows]
            counts.add_backprojected(some.mean, self.linear_gradient)
            second = some.mean.square()
            if not some.is_point:
                second += some.variance
            if self.information is not None:
                counts.add_backprojected(second, everything)
            moment += (counts.n_tokens[:, None] * second).sum(dim=0)
        self.ranks.sum(moment)
        if self.information is not None:
            self.ranks.sum(everything)
        seen = documents_with.clamp(min=1.0)[:, None]
        # The curvature of a word in few documents has few directions.
        rows = totals[:n_words, None] * (1 + k / seen)
        self.word_curvature = rows, moment / max(self.n_tokens, 1.0)
        faster = (self.settings.common / seen).sqrt_()
        self.word_rates = faster.clamp_(1.0, self.settings.rare_word_rate)

    def update_basis(self) -> None:
        """Update the words' covariance."""
        rows = self.rows if self.views is None else self.rows[:-1]
        self.basis = LoadingsBasis(rows[:, :-2], rows[:, -2], self.prior, self.views)
        self.norms = self._counted()[0].square().sum(dim=1)

    def _counted(self) -> tuple[Tensor, Tensor]:
        """Return loadings and bias of the words that are columns of the counts.

        Only a linear likelihood can treat rare words as one.
        """
        if self.parts.likelihood.linear or not len(self.log_shares):
            return self.loadings, self.bias
        rare = self.bias[-1] + self.log_shares
        return self.table.loadings, torch.cat([self.bias[:-1], rare])

    def visit(
        self,
        batch: Batch,
        noise: Tensor,
        rate: float,
        curved: bool,
        unseen: bool = False,
    ) -> None:
        """Move the posteriors of a batch, then T and m unless it is `unseen`."""
        rows, counts = batch
        prior, parts = self.prior[rows], self.parts
        q = self.q[rows]
        points = q.points(noise[:, None])[:, 0]
        likelihood = parts.likelihood.bind(counts, *self._counted())
        weights = self.effective_tokens[rows]
        moments = self._moments(
            points, counts, weights, second=curved and parts.covariance.diagonal
        )
        # A linear likelihood needs only the mean of w, which keeps the noise out.
        at = q.mean if parts.likelihood.linear else points
        terms = likelihood.at(at, moments.lse)
        self.effective_tokens[rows] = terms.tokens
        kl = objective.kl_divergence(q, prior)
        self.bound += objective.document_bound(terms.value, kl).sum()
        self.kl += kl.sum()
        if self.given:
            self._move_words(
                counts, points, q.mean, None, moments, terms, weights, rate
            )
            return

        assert moments.first is not None
        gradient = terms.linear_gradient - terms.tokens[:, None] * moments.first
        gradient = gradient - prior.penalty_gradient(q.mean)
        if curved:
            information = self._information(q, moments, terms)
            q = q.halfway(parts.covariance.with_information(q.mean, prior, information))
        # The prior may have been learned since: its precision may exceed that of q.
        information = (q.precision - prior.diagonal).clamp_(min=0)
        trace = information.sum(dim=1, keepdim=True)
        curvature = WordCurvature(
            counts,
            likelihood.loadings,
            self.basis,
            prior,
            likelihood.projected,
            own_trace(counts, self.norms, likelihood.projected),
            trace,
        )
        # The draw changed the gradient by the curvature times `away`: undo that.
        away = points - q.mean
        step = self.settings.damping * (
            curvature.solve(gradient - prior.times(away)) + away
        )
        reach = self.settings.reach * prior.scale / step.abs().amax(dim=1, keepdim=True)
        moved = step * reach.clamp_(max=1.0)
        self.q[rows] = q.with_mean(q.mean + moved)
        if not unseen:
            self._move_words(
                counts, points, q.mean, moved, moments, terms, weights, rate
            )

    def _moments(
        self, points: Tensor, counts: CountTensor, weights: Tensor, *, second: bool
    ) -> SoftmaxMoments:
        """Return the moments at the draws, and the gradients of the words."""
        wanted: dict[str, Any] = {"first": True, "second": second}
        wanted["workspace"] = self.table.workspace
        if self.views is None:
            whole = SoftmaxWords.of_table(self.rows)
            return softmax_moments(points, whole, weights=weights, **wanted)
        # Views may be missing from many documents: each is scaled by its own tokens.
        tokens = counts.view_tokens
        scale = self.view_tokens / self.ranks.sum(tokens.sum(dim=0)).clamp(min=1.0)
        words = [SoftmaxWords.of_table(self.rows[some]) for some in self.views.ranges]
        assert counts.shares is not None
        return view_moments(
            points, words, counts.shares, weights=scale * tokens, **wanted
        )

    def _information(
        self, q: Gaussians, moments: SoftmaxMoments, terms: LikelihoodTerms
    ) -> Tensor:
        """Return tokens times the spread of t, in the form of the family."""
        family, tokens = self.parts.covariance, terms.tokens
        if not family.diagonal:
            rows = self.rows if self.views is None else self.rows[:-1]
            model = self.parts.model(rows[:, :-2], rows[:, -2], views=self.views)
            centre = self.basis.means.flatten().expand(len(q), -1)
            expected_lse = objective.ExpectedLse(model, family)
            spread = expected_lse(q, centre, terms.counts.shares).spread
            return tokens.view(-1, *[1] * (spread.ndim - 1)) * spread
        return tokens[:, None] * objective.drawn_spread(moments)

    def _move_words(
        self,
        counts: CountTensor,
        points: Tensor,
        mean: Tensor,
        moved: Tensor | None,
        moments: SoftmaxMoments,
        terms: LikelihoodTerms,
        weights: Tensor,
        rate: float,
    ) -> None:
        table, n_words = self.table, len(self.loadings)
        assert moments.loading_gradient is not None
        assert moments.bias_gradient is not None
        scale: Tensor | float = 1.0
        if self.views is None:
            scale = self.ranks.sum(counts.n_tokens.sum()).clamp(min=1.0)
            scale = self.n_tokens / scale
        if moved is not None:
            counts.add_backprojected(moved, self.linear_gradient)
        linear = self.linear_gradient[:n_words]
        softmax = moments.loading_gradient[:n_words]
        excess = -scale * moments.bias_gradient
        if self.views is not None:
            # No words are merged into the last row.
            excess = torch.cat([excess, torch.zeros_like(excess[:1])])
        if not self.parts.likelihood.linear:
            # Only the difference of effective counts from counts is from the batch.
            both = scale * self._excess(counts, points, mean, terms, weights)
            linear, rest = linear + both[:n_words, :-1], both[n_words:, -1:].sum(dim=0)
            excess += torch.cat([both[:n_words, -1], rest])
        if self.ranks.size > 1:
            # Each has the linear half of its own documents: one sum covers both halves.
            linear = self.ranks.sum(linear - scale * softmax)
        table.ascent.ascend(
            self.loadings,
            WordGradient(
                linear,
                softmax if self.ranks.size == 1 else None,
                scale,
                rate,
                self.word_curvature,
                self.word_rates,
                self.information,
            ),
        )
        if table.learn_bias:
            excess = self.totals + self.ranks.sum(excess)
            table.bias_ascent.ascend(
                self.rows[:, -2:-1], excess[:, None], rate * self.prior.scale
            )

    def _excess(
        self,
        counts: CountTensor,
        points: Tensor,
        mean: Tensor,
        terms: LikelihoodTerms,
        weights: Tensor,
    ) -> Tensor:
        r"""Return the difference of the gradients with effective counts c and counts x.

        Per word :math:`\sum_d [r c w - r x (w - \nu) - x\nu]` and, in the last column,
        :math:`\sum_d [r c - x]`, for draws w and means :math:`\nu`. The second term has
        mean zero, and cancels the noise of the draw where c is nearly x. r scales c to
        the sum used in the other half of the gradient, that of the last visit: it
        remains the gradient of each document, with a slightly different weight.
        """
        ratio = (weights / terms.tokens.clamp(min=1e-6))[:, None]
        drawn = terms.counts.backproject(torch.cat([ratio * points, ratio], dim=1))
        plain = ratio * points + (1 - ratio) * mean
        one = torch.ones_like(ratio)
        return drawn - counts.backproject(torch.cat([plain, one], dim=1))
