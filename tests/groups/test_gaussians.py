from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from docsigma import DocumentEmbedder, GaussianPosterior, GaussianPrior, InputError
from docsigma.groups.gaussians import Groups
from running import refuse, succeed

K = 8


def draw(n, topics, seed):
    """Documents of known topics, whose evidence differs in size."""
    random = np.random.default_rng(seed)
    labels = random.integers(len(topics), size=n)
    w = topics[labels] + 0.3 * random.standard_normal((n, K))
    evidence = 20 * random.uniform(0.3, 1.7, (n, 1)) * np.linspace(0.3, 1.7, K)
    seen = w + random.standard_normal((n, K)) / np.sqrt(evidence)
    variance = 1 / (1 + evidence)
    prior = GaussianPrior.isotropic(1.0, K)
    tokens = np.full(n, 50.0)
    return GaussianPosterior(
        seen * evidence * variance, variance, prior=prior, n_tokens=tokens
    ), labels


@pytest.fixture(scope="module")
def model():
    # Topics are drawn in its space; only its words are used.
    texts = ["sun rain wind", "bread salt milk", "song tune drum"] * 9
    return DocumentEmbedder(K, random_state=0).fit(texts).model_


@pytest.mark.parametrize("n_topics", [2, 3, 7])
def test_the_number_of_groups_is_found(model, n_topics):
    topics = np.random.default_rng(50 + n_topics).standard_normal((n_topics, K))
    q, labels = draw(500, topics, n_topics)
    groups = Groups.fit(model, q)
    assert n_topics <= len(groups) <= 2 * n_topics
    assert [g.size for g in groups.found] == np.bincount(groups.of).tolist()
    given = Groups.fit(model, q, n_topics)
    assert adjusted_rand_score(labels, given.of) > 0.9


def test_numbers_stay_when_groups_are_merged_renamed_and_documents_added(model):
    topics = np.random.default_rng(1).standard_normal((4, K))
    q, _ = draw(400, topics, 0)
    groups = Groups.fit(model, q, 4)
    new, _ = draw(50, topics, 1)
    before, added = groups.of.copy(), groups.assign(new)
    assert groups.assign(q).tolist() == before.tolist()
    groups.rename(3, "ours")
    groups.merge([2, 1])
    assert [group.number for group in groups.found] == [0, 1, 3]
    assert groups.found[2].name == "ours"
    assert groups.of.tolist() == np.where(before == 2, 1, before).tolist()
    assert groups.assign(new).tolist() == np.where(added == 2, 1, added).tolist()
    with pytest.raises(InputError, match=r"there is no group 2: the groups are"):
        groups.rename(2, "gone")


def test_short_documents_count_for_less(model):
    # Two topics; short documents say little, and what they say is wrong.
    topics = np.zeros((2, K))
    topics[:, 0] = [-2, 2]
    q, labels = draw(200, topics, 0)
    mean, variance = q.mean.copy(), q.variance.copy()
    mean[:100], variance[:100] = -0.02 * mean[:100], 0.97
    mixed = GaussianPosterior(mean, variance, prior=q.prior, n_tokens=q.n_tokens)
    groups = Groups.fit(model, mixed, 2)
    assert adjusted_rand_score(labels[100:], groups.of[100:]) > 0.9


def test_groups_are_named_by_words_of_their_documents_not_by_function_words():
    topics = ["cat dog cats bird", "bank loan rate cash"]
    random = np.random.default_rng(0)
    texts = [
        "the and " + " ".join(random.choice(topics[row % 2].split(), 5))
        for row in range(80)
    ]
    groups = DocumentEmbedder(2, random_state=0).fit(texts).groups(texts, 2, 3)
    words = [set(group.words) for group in groups.found]
    assert all(group <= set(" ".join(topics).split()) for group in words)
    # Of endings of one word the strongest stands for all.
    assert not any({"cat", "cats"} <= group for group in words)
    assert groups.found[0].name == ", ".join(groups.found[0].words)


def test_there_is_a_document_for_every_group(pets_and_money):
    with pytest.raises(InputError, match="from 1 to the 40 documents, got 41"):
        Groups.fit(*pets_and_money, 41)


def test_command_writes_groups_and_their_words(tmp_path, capsys):
    pytest.importorskip("typer")
    random = np.random.default_rng(0)
    topics = [["sun", "rain", "wind", "snow"], ["bread", "salt", "milk", "soup"]]
    texts = [" ".join(random.choice(topics[row % 2], 8)) for row in range(60)]
    lines = [json.dumps({"id": f"d{i}", "text": t}) for i, t in enumerate([*texts, ""])]
    docs, model, out = (tmp_path / name for name in ("d.jsonl", "model", "out.jsonl"))
    docs.write_text("\n".join(lines))
    succeed(capsys, "fit", docs, "--out", model, "--components", "2", "--quiet")
    arguments = ("cluster", model, docs, "--out", out)
    report = json.loads(succeed(capsys, *arguments, "--clusters", "2", "--json"))
    assert (report["sizes"], report["n_empty"]) == ([30, 30], 1)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["group"] for row in rows[:4]] in ([0, 1, 0, 1], [1, 0, 1, 0])
    assert set(rows[0]["words"].split()) <= set(topics[0])
    assert (rows[-1]["group"], rows[-1]["words"]) == (-1, "")
    assert "--clusters" in refuse(capsys, *arguments, "--clusters", "0", "--force")
    found = json.loads(succeed(capsys, *arguments, "--force", "--json"))
    assert found["n_groups"] >= 2
