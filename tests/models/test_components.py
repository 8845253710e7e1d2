from __future__ import annotations

import numpy as np
import pytest

from docsigma import BayesianSMM, InputError
from docsigma.models.components import describe_dimensions


def test_a_component_has_words_at_either_end(pets_and_money):
    model, _ = pets_and_money
    dimensions = describe_dimensions(model, n_words=2)
    ends = {frozenset(dimensions[0].top), frozenset(dimensions[0].bottom)}
    assert ends == {frozenset({"cat", "dog"}), frozenset({"bank", "loan"})}


def test_words_must_be_known():
    bare = BayesianSMM(2, max_iter=2).fit(np.ones((3, 4)))
    with pytest.raises(InputError, match="does not know its words"):
        describe_dimensions(bare)


def test_components_come_heaviest_first():
    from docsigma import load_corpus

    train = load_corpus("synthetic").train
    model = BayesianSMM(4, max_iter=30, random_state=0).fit(train.counts)
    dimensions = describe_dimensions(model.set_vocabulary(train.words))
    weights = [dimension.weight for dimension in dimensions]
    assert weights == sorted(weights, reverse=True)
    assert sorted(dimension.index for dimension in dimensions) == [0, 1, 2, 3]
