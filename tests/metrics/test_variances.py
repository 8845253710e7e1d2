"""The identity of parts and wholes, against posteriors by quadrature."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from docsigma import BayesianSMM, DocumentEmbedder, GaussianPosterior, InputError
from docsigma.metrics import calibrate_variances, plots
from docsigma.metrics.variances import STANDARD_ERRORS
from docsigma_paper import SMM
from toy import Toy, toy

GRID = {1: 401, 2: 101}


def exact(problem: Toy):
    """Return the function from counts to the moments of the exact posterior."""
    k = problem.loadings.shape[1]
    points, _ = problem.grid(GRID[k])

    def embed(counts):
        some = Toy(problem.loadings, problem.bias, problem.prior, counts, None)
        log_joint = some.log_joint(points)
        weights = np.exp(log_joint - log_joint.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        mean = weights @ points
        return GaussianPosterior(mean, weights @ points**2 - mean**2)

    return embed


def standard_error(part):
    return np.log(part.high / part.ratio) / STANDARD_ERRORS


@pytest.mark.parametrize("k", [1, 2])
def test_exact_posteriors_have_a_ratio_of_one(k):
    problem = toy(k, n=600, tokens=40)
    found = calibrate_variances(exact(problem), problem.matrix, lengths=(3, 10, 0.25))
    assert [part.size for part in found.parts] == ["3 words", "10 words", "quarter"]
    for part in found.parts:
        # 4.5 standard errors, six times: fails by chance with 1 in 25 000.
        assert abs(np.log(part.ratio)) < 4.5 * standard_error(part)
        assert standard_error(part) < 0.12
        ratio, _, high = part.by_dimension.T
        assert (np.abs(np.log(ratio)) < 4.5 * np.log(high / ratio) / 1.6449).all()


def test_intervals_cover_one_in_nine_of_ten_corpora():
    covered = 0
    for seed in range(300):
        problem = toy(1, n=60, tokens=40, seed=seed)
        found = calibrate_variances(exact(problem), problem.matrix, lengths=(5,))
        part = found.parts[0]
        covered += part.low < 1 < part.high
    # Four standard deviations of a binomial; fails by chance with 1 in 15 000. Of
    # intervals that were half or one and a half times as wide, 59 and 99 % would.
    assert abs(covered / 300 - 0.9) < 4 * np.sqrt(0.9 * 0.1 / 300)


@pytest.mark.parametrize("factor", [0.5, 3.0])
def test_ratio_is_the_factor_by_which_variances_are_too_small(factor):
    problem = toy(2, n=600, tokens=40)
    right = exact(problem)

    def too_sure(counts):
        q = right(counts)
        variance = q.variance.copy()
        variance[:, 1] /= factor
        return GaussianPosterior(q.mean, variance)

    before, after = (
        calibrate_variances(embed, problem.matrix, lengths=(10,)).parts[0]
        for embed in (right, too_sure)
    )
    ratio = after.by_dimension[:, 0] / before.by_dimension[:, 0]
    np.testing.assert_allclose(ratio, [1, factor], rtol=1e-6)
    # Sums hide single dimensions; the interval of the right one does not.
    low, high = after.by_dimension[1, 1:]
    assert not low < 1 < high
    assert 1 < after.ratio < factor or factor < after.ratio < 1


def test_words_counted_twice_are_found():
    problem = toy(1, n=600, tokens=40)
    embed = exact(problem)
    found = calibrate_variances(lambda x: embed(2 * x), problem.matrix, lengths=(10,))
    assert found.parts[0].low > 1.3


class Recorder:
    """Embeds nothing, and remembers the counts."""

    def __init__(self):
        self.counts = []

    def __call__(self, counts):
        self.counts.append(counts.toarray())
        random = np.random.default_rng(len(self.counts))
        mean = random.random((counts.shape[0], 2))
        tokens = self.counts[-1].sum(axis=1)
        return GaussianPosterior(mean, 1 / (1 + np.column_stack([tokens, tokens])))


def test_random_words_are_drawn_without_replacement():
    row = np.array([3.0, 0.0, 2.0, 5.0])
    n = 20_000
    record = Recorder()
    calibrate_variances(record, sp.csr_matrix(np.tile(row, (n, 1))), lengths=(4,))
    drawn = record.counts[1]
    assert (drawn.sum(axis=1) == 4).all()
    assert (drawn <= row).all()
    # Hypergeometric: mean 4 p and variance 4 p (1 - p) 6 / 9. Four standard errors of
    # either, eight times: fails by chance with 1 in 2000, but the seed is fixed.
    p = row / 10
    variance = 4 * p * (1 - p) * 6 / 9
    assert (np.abs(drawn.mean(axis=0) - 4 * p) <= 4 * np.sqrt(variance / n)).all()
    assert (np.abs(drawn.var(axis=0) - variance) <= 4 * variance * np.sqrt(3 / n)).all()


def test_first_words_are_the_first_that_are_known():
    order = [np.array([2, 0, 2, 1, 1, 0])] * 30
    counts = sp.csr_matrix(np.tile([2.0, 2.0, 2.0], (30, 1)))
    record = Recorder()
    found = calibrate_variances(record, counts, order, lengths=(3, 0.5))
    assert [part.kind for part in found.parts] == ["first"] * 2 + ["random"] * 2
    for part in record.counts[1:3]:
        np.testing.assert_array_equal(part, np.tile([1, 0, 2], (30, 1)))


def test_too_few_long_documents_are_cut_to_a_quarter_and_half():
    lengths = np.array([19] * 50 + [20] * 29)
    for extra, sizes in ((19, ["quarter", "half"]), (20, ["10 words"])):
        n = np.append(lengths, extra)
        found = calibrate_variances(
            Recorder(), sp.csr_matrix(np.outer(n, [1.0, 0.0])), lengths=(10,)
        )
        assert [part.size for part in found.parts] == sizes
        assert found.parts[0].n_documents == (80 if extra == 19 else 30)


def test_a_dimension_that_learns_nothing_has_no_ratio():
    problem = toy(2, n=60, tokens=40)
    embed = exact(problem)

    def with_prior(counts):
        q = embed(counts)
        mean, variance = q.mean.copy(), q.variance.copy()
        mean[:, 1], variance[:, 1] = 0, 1
        return GaussianPosterior(mean, variance)

    found = calibrate_variances(with_prior, problem.matrix, lengths=(10,))
    known, unknown = np.isnan(found.parts[0].by_dimension)
    assert not known.any()
    assert unknown.all()
    assert "nan" not in str(found)


def test_a_model_that_learned_nothing_is_refused():
    prior = GaussianPosterior(np.zeros((40, 2)), np.ones((40, 2)))
    with pytest.raises(InputError, match="learned nothing"):
        calibrate_variances(lambda _: prior, sp.csr_matrix(np.full((40, 2), 9.0)))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"lengths": (0,)}, "`lengths` must be .* got 0$"),
        ({"lengths": (0.6,)}, "`lengths` must be .* got 0.6"),
        ({"lengths": (True,)}, "`lengths` must be .* got True"),
        ({"lengths": ("ten",)}, "`lengths` must be .* got 'ten'"),
        ({"lengths": ()}, "`lengths` is empty"),
        ({"counts": sp.csr_matrix(np.full((40, 2), 1.5))}, "whole numbers, got 1.5"),
        ({"counts": sp.csr_matrix((40, 2))}, "at least 30 documents .* 0 of the 40"),
        ({"counts": sp.csr_matrix(np.eye(29) * 9)}, "at least 30 .* 29 of the 29"),
        ({"order": [np.array([0])] * 40}, "`order` and `counts` differ"),
    ],
)
def test_what_cannot_be_tested_is_refused(change, sentence):
    given = {"counts": sp.csr_matrix(np.full((40, 2), 9.0)), "order": None} | change
    with pytest.raises(InputError, match=sentence):
        calibrate_variances(Recorder(), **given)


@pytest.fixture(scope="module")
def texts(docstrings):
    return docstrings.train.texts


@pytest.fixture(scope="module")
def embedder(texts):
    model = BayesianSMM(max_iter=5)
    return DocumentEmbedder(3, model=model, random_state=0, device="cpu").fit(texts)


def test_embedder_cuts_texts_at_known_words(embedder, texts):
    found = embedder.calibration(texts, lengths=(10,))
    assert [part.kind for part in found.parts] == ["first", "random"]
    words = embedder.model_.vocabulary_
    long = [row for row, one in enumerate(words.in_order(texts)) if len(one) >= 20]
    analyze, known = words.vectorizer().build_analyzer(), set(words.words)
    heads = [
        " ".join([word for word in analyze(texts[row]) if word in known][:10])
        for row in long
    ]
    part, whole = (embedder.posterior(x) for x in (heads, [texts[i] for i in long]))
    moved = np.square(part.mean.astype(float) - whole.mean).sum()
    fallen = (part.variance.astype(float) - whole.variance).sum()
    assert found.parts[0].n_documents == len(long)
    # Embeddings do not depend on their neighbours beyond 1e-4.
    assert found.parts[0].ratio == pytest.approx(moved / fallen, rel=1e-3)


def test_table_json_and_figure_have_every_part(embedder, texts):
    found = embedder.calibration(texts)
    assert json.loads(json.dumps(found.to_dict()))["n_documents"] == len(texts)
    lines = str(found).splitlines()
    assert len(lines) == len(found.parts) + 2
    assert max(map(len, lines)) <= 80
    pytest.importorskip("matplotlib")
    figure = found.plot()
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_legend().get_texts()] == [
        "first words",
        "random words",
    ]
    with pytest.raises(InputError, match=r"x.txt: its suffix must be one of .*\.png"):
        plots.check_image(Path("x.txt"))


def test_seed_chooses_the_random_words(embedder, texts):
    one, same, other = (
        embedder.calibration(texts, lengths=(10,), random_state=seed).to_dict()
        for seed in (0, 0, 1)
    )
    assert one == same
    assert one["parts"][0] == other["parts"][0]
    assert one["parts"][1] != other["parts"][1]


def test_pairs_of_words_have_no_first_words(texts):
    model = BayesianSMM(max_iter=2)
    pairs = DocumentEmbedder(2, ngram_range=(1, 2), model=model, random_state=0)
    found = pairs.fit(texts[:300]).calibration(texts[:300], lengths=(10,))
    assert [part.kind for part in found.parts] == ["random"]


def test_points_have_no_variances_to_test(texts):
    points = DocumentEmbedder(2, model=SMM(max_iter=2), random_state=0)
    points.fit(texts[:100])
    with pytest.raises(InputError, match="SMM gives points"):
        points.calibration(texts[:100])
