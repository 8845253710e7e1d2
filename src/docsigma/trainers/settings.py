"""How the trainers step: every number, with its reason."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class MinibatchSettings:
    """How the minibatch trainer steps; the defaults hold for every corpus tried."""

    # Passes over a corpus of `small` documents or more.
    passes: int = 11
    # Fewer documents get more passes, by the square root of what is missing ...
    small: int = 10_000
    # ... up to this many.
    most_passes: int = 100
    # Learning rate of T at the start.
    rate: float = 0.04
    # Components beyond which steps get smaller and passes more.
    large: int = 100
    # A small corpus has ten batches to a pass, of this many documents at the least.
    least_batch: int = 32
    # Documents that the start is made from.
    sample: int = 20_000
    # Extra directions of the start's randomised decomposition.
    spare: int = 20
    # Power steps of the start's randomised decomposition.
    power_steps: int = 2
    # Longest start of an embedding's coordinate, in standard deviations.
    clip: float = 3.0
    # Scale of the first direction, in standard deviations of the prior.
    first_scale: float = 1.2
    # Power of the singular values in the scale of the directions.
    power: float = 0.5
    # A ridge on the first loadings, in counts of log(1 + x): rare words start small.
    ridge: float = 20.0
    # A smaller corpus has a smaller ridge, or it would start, and stay, at T = 0.
    ridge_documents: int = 5000
    # `partial_fit`: passes over the words for the posteriors of a batch.
    stream_passes: int = 4
    # Steps until the rate of `partial_fit` has fallen to the root of a half.
    stream_slowing: float = 50
    # Tokens that a document is taken to have had where only its model is left.
    stream_tokens: float = 200.0
    # Documents in a block of a sparse pass over counts on disk.
    block: int = 8192
    # Part of a Newton step that posteriors go in the first pass, and in the last.
    first_damping: float = 0.6
    last_damping: float = 0.4
    # Longest step of a posterior's mean, in standard deviations of the prior.
    reach: float = 2.0
    # Batches after which the words' covariance is computed again.
    basis_every: int = 12
    # Variances move in the first pass, the last of a stage and every so many: the
    # others save a product.
    curved_every: int = 8
    # Longest step of T, in Newton steps.
    newton: float = 0.7
    # Words in fewer documents than this go faster: their gradients have less noise.
    common: float = 100.0
    # How much faster at the most.
    rare_word_rate: float = 5.0
    # The words that hold this part of the tokens are trained first ...
    head_tokens: float = 0.955
    # ... where they are at most this part of the vocabulary ...
    head_words: float = 0.6
    # ... in this part of the passes.
    head_passes: float = 0.4
    # Learning rate at the end of the two stages, against that at their beginning.
    head_end: float = 0.3
    end: float = 0.04
    # Part of the passes in which a batch is set aside, if a part learns from unseen
    # documents: later, words change little and would rather see all of them ...
    unseen_passes: float = 0.5
    # ... and batches below which none is: too few documents would be left.
    least_batches: int = 4
    # The stop rule compares this many passes at the least.
    window: int = 2

    def n_passes(self, n_documents: int, n_components: int) -> int:
        """Return the number of passes: more for a small corpus or a large K."""
        factor = math.sqrt(max(1.0, self.small / max(1, n_documents)))
        factor *= math.pow(max(1.0, n_components / self.large), 0.75)
        return min(self.most_passes, math.ceil(self.passes * factor))

    def learning_rate(self, n_components: int) -> float:
        """Return the first rate: a step moves a logit by about K times as much."""
        return self.rate * min(1.0, self.large / n_components)

    def batch_size(self, n_documents: int, most: int) -> int:
        """Return the size of batches: ten of them to a pass over a small corpus."""
        return min(most, max(self.least_batch, n_documents // 10))
