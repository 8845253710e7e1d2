"""Settings of the trainers: every number, with its reason.

`benchmarks/training_settings.py` compares the values on held-out training documents of
four corpora; the results are in `benchmarks/results/training-settings.json`. Removed,
because the bound was the same to 0.1 % or better without: a clip and a separate scale
of the start, a damping that changes from pass to pass, steps of T shorter than
Newton's, and a separate rate at the end of the first stage.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from docsigma.counts._base import BLOCK


@dataclass(frozen=True)
class MinibatchSettings:
    """Settings of the minibatch and the stream trainer, the same for every corpus."""

    passes: int = 11  # over a corpus of `small` documents or more
    # Fewer documents get more passes, by the square root of the ratio ...
    small: int = 10_000
    most_passes: int = 100  # ... up to this many.
    rate: float = 0.04  # of T at the start
    large: int = 100  # components beyond which steps get smaller and passes more
    # A small corpus has ten batches per pass, of at least this many documents.
    least_batch: int = 32
    sample: int = 20_000  # documents that the start is made from
    block: int = BLOCK  # documents of a sparse pass over counts on disk
    # Extra directions of the start's randomised decomposition, without which the last
    # ones are wrong: 0.6 % of the bound of the synthetic corpus with K 5, none with
    # K 50.
    spare: int = 20
    # A ridge on the first loadings, in counts of log(1 + x): rare words start small.
    # Without it short texts lose 5 and 12 % of the bound.
    ridge: float = 20.0
    # A smaller corpus has a smaller ridge, or it would start, and stay, at T = 0.
    ridge_documents: int = 5000
    # Fraction of a Newton step that posteriors take; 0.4 and 0.6 give the same bound.
    damping: float = 0.5
    # Longest step of a posterior's mean, in standard deviations of the prior. Without
    # it Switchboard and 20 Newsgroups lose 5 and 8 %.
    reach: float = 2.0
    # Batches after which the words' covariance is updated, which costs V K^2: only
    # corpora of more than 12 batches do it more than once per pass.
    basis_every: int = 12
    # Variances move in the first pass, the last of a stage and every eighth: the rest
    # save a product. In every pass, the bound gains up to 0.2 %, and a fit takes up to
    # a tenth longer.
    curved_every: int = 8
    # Words in fewer documents than this learn faster: their gradients are less noisy.
    common: float = 100.0
    # By at most this factor, which gains 0.05 to 0.25 % on all four corpora.
    rare_word_rate: float = 5.0
    # The commonest words, with this fraction of the tokens, are trained first, which
    # saves a fifth of the time on 20 Newsgroups ...
    head_tokens: float = 0.955
    # ... if they are at most this fraction of the vocabulary ...
    head_words: float = 0.6
    # ... in this fraction of the passes.
    head_passes: float = 0.4
    # Learning rate at the end of a stage, relative to that at its beginning.
    end: float = 0.04
    # Fraction of the passes in which a batch is set aside, if a part learns from unseen
    # documents: later, words change little and should learn from all of them.
    unseen_passes: float = 0.5
    # With fewer batches none is set aside: too few documents would be left.
    least_batches: int = 4
    # The stop rule compares windows of at least this many passes.
    window: int = 2
    # `partial_fit`: passes over the words for the posteriors of a batch. With 2 the
    # bound loses up to 0.1 %, with 8 it gains nothing.
    stream_passes: int = 4
    # Steps until the rate of `partial_fit` has fallen by a factor of sqrt(2). In 60
    # steps a constant rate gains up to 1 %, in 250 it loses as much.
    stream_slowing: float = 50

    def n_passes(self, n_documents: int, n_components: int) -> int:
        """Return the number of passes: more for a small corpus or a large K."""
        factor = math.sqrt(max(1.0, self.small / max(1, n_documents)))
        factor *= math.pow(max(1.0, n_components / self.large), 0.75)
        return min(self.most_passes, math.ceil(self.passes * factor))

    def learning_rate(self, n_components: int) -> float:
        """Return the initial rate: a step changes a logit by about K times as much."""
        return self.rate * min(1.0, self.large / n_components)

    def batch_size(self, n_documents: int, most: int) -> int:
        """Return the batch size, for at least ten batches per pass if possible."""
        return min(most, max(self.least_batch, n_documents // 10))


@dataclass(frozen=True)
class Algorithm1Settings:
    """Default settings of Algorithm 1, those of the paper.

    The start is a saddle, T near zero, where the bound stagnates before it climbs:
    hence wide windows of the stop rule, and training that continues while the KL grows,
    which it does as T leaves the saddle (`docsigma reproduce convergence` shows it).
    """

    passes: int = 1000
    learning_rate: float = 0.01
    window: int = 50
    kl_growth: float = 0.01
