from __future__ import annotations

import numpy as np
import pytest

from docsigma.search._classes import KnownClasses

# Two documents of each of two classes, one that may be of either, and two of no class.
CLASSES = np.array(
    [[1, 0], [1, 0], [0, 1], [0, 1], [0.3, 0.4], [0, 0], [0, 0]], dtype=np.float32
)
ROWS = np.arange(7)


def test_a_familiar_query_ranks_by_its_classes():
    found = KnownClasses(CLASSES).same_topic(
        np.array([0.8, 0.2]), 40.0, ROWS, np.zeros(7)
    )
    expected = [0.8, 0.8, 0.2, 0.2, 0.3 * 0.8 + 0.4 * 0.2, 0, 0]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_an_unfamiliar_query_ranks_documents_of_no_class_by_their_ratios():
    ratios = np.array([-9.0, -9, -9, -9, -9, 30, 2])
    found = KnownClasses(CLASSES).same_topic(
        np.array([0.99, 0.01]), -40.0, ROWS, ratios
    )
    # A fifth of the pairs at least are of one topic, by the sizes of the classes.
    assert found[5] > 0.99
    assert 0.5 < found[6] < found[5]
    assert (found[:5] < 1e-4).all()


@pytest.mark.parametrize("familiarity", [-800.0, 0.0, 800.0])
@pytest.mark.parametrize("ratio", [-800.0, 0.0, 800.0])
@pytest.mark.parametrize("classes", [CLASSES, 0 * CLASSES, CLASSES[:4]])
def test_probabilities_are_finite_and_at_most_1(familiarity, ratio, classes):
    rows = np.arange(len(classes))
    found = KnownClasses(classes).same_topic(
        np.array([0.5, 0.5]), familiarity, rows, np.full(len(rows), ratio)
    )
    assert ((found >= 0) & (found <= 1 + 1e-12)).all()


def test_what_is_compared_may_be_a_part_of_the_documents():
    random = np.random.default_rng(0)
    ratios, proba = random.normal(0, 3, 7), np.array([0.6, 0.4])
    known = KnownClasses(CLASSES)
    every = known.same_topic(proba, 1.0, ROWS, ratios)
    some = known.same_topic(proba, 1.0, ROWS[ratios > -8], ratios[ratios > -8])
    np.testing.assert_allclose(some, every[ratios > -8], rtol=1e-3)
