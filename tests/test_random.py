"""No two streams of random numbers meet."""

from __future__ import annotations

import itertools

import pytest
import torch

from docsigma.random import Stream, generator


def test_keys_that_differ_give_streams_that_differ():
    """SeedSequence cuts large numbers into words: 2**32, 0 was once 0, 1."""
    words = (0, 1, 2, 4, 2**31, 2**32 - 1)
    keys = itertools.product((0, 1, 2**32, 2**33), Stream, words, words)
    seeds = [generator(*key).initial_seed() for key in keys]
    assert len(set(seeds)) == len(seeds)


def test_a_number_left_out_is_zero_and_not_another_stream():
    one = torch.randn(5, generator=generator(7, Stream.ORDER, 3))
    two = torch.randn(5, generator=generator(7, Stream.ORDER, 3, 0))
    assert torch.equal(one, two)
    other = torch.randn(5, generator=generator(7, Stream.NOISE, 3, 0))
    assert not torch.equal(one, other)


@pytest.mark.parametrize("word", [-1, 2**32])
def test_words_of_more_than_32_bits_are_refused(word):
    with pytest.raises(ValueError, match="32 bits"):
        generator(0, Stream.NOISE, word)
