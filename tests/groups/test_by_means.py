from __future__ import annotations

import pytest

from docsigma import InputError
from docsigma.groups.by_means import group_by_means


def test_groups_are_named_by_their_own_words(pets_and_money):
    model, q = pets_and_money
    groups = group_by_means(model, q, n_clusters=2, n_words=2)
    assert [group.size for group in groups] == [20, 20]
    words = {frozenset(group.words) for group in groups}
    assert words == {frozenset({"cat", "dog"}), frozenset({"bank", "loan"})}


def test_there_is_a_document_for_every_group(pets_and_money):
    with pytest.raises(InputError, match="from 1 to the 40 documents, got 41"):
        group_by_means(*pets_and_money, n_clusters=41)
