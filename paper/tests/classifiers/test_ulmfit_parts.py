"""The parts of ULMFiT, each against what is computed by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from docsigma_paper.classifiers.ulmfit.batches import (
    TokenDocuments,
    n_batches,
    similar_lengths,
)
from docsigma_paper.classifiers.ulmfit.dropout import Dropout, DropoutRates
from docsigma_paper.classifiers.ulmfit.fine_tuning import free_groups, train_classifier
from docsigma_paper.classifiers.ulmfit.language_model import (
    LanguageModel,
    train_language_model,
)
from docsigma_paper.classifiers.ulmfit.network import DocumentNetwork, concat_pool
from docsigma_paper.classifiers.ulmfit.optimizer import SlantedAdam
from docsigma_paper.classifiers.ulmfit.schedules import (
    discriminative_rates,
    slanted_triangle,
    unfreezing_stages,
)
from docsigma_paper.classifiers.ulmfit.tokens import (
    SPECIAL_WORDS,
    WordVocabulary,
    tokenize,
)
from ulmfit_toys import CPU, random_documents, reader, seeded


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        (" \n\t", []),
        ("Rain.", ["xxmaj", "rain", "."]),
        ("I saw NASA", ["i", "saw", "xxup", "nasa"]),
        ("it's 3.5 or 1,000", ["it", "'s", "3.5", "or", "1,000"]),
        ("can\u2019t well-known", ["ca", "n't", "well", "-", "known"]),
        ("no no no no way", ["xxwrep", "4", "no", "way"]),
        ("=====", ["xxrep", "5", "="]),
        ("10000", ["10000"]),
        ("Cafe\u0301", ["xxmaj", "café"]),
        ("日本 ok \U0001f600", ["日本", "ok", "\U0001f600"]),
    ],
)
def test_tokens_by_hand(text, tokens):
    assert tokenize(text) == ["xxbos", *tokens]


def test_vocabulary_takes_the_commonest_words():
    documents = [["xxbos", "b", "b", "a", "c"], ["xxbos", "b", "a", "c", "d"]]
    words = WordVocabulary.from_tokens(documents, max_words=2, min_count=2).words
    assert words == (*SPECIAL_WORDS, "b", "a")
    words = WordVocabulary.from_tokens(documents, min_count=3).words
    assert words == (*SPECIAL_WORDS, "b")


def test_stream_runs_down_the_columns():
    documents = TokenDocuments.build([np.array([1, 2]), np.arange(3, 8)], CPU)
    stream = documents.stream(np.array([1, 0]), 2)
    assert stream.tolist() == [[3, 6], [4, 7], [5, 1]]


def test_window_is_padded_behind():
    documents = TokenDocuments.build([np.array([5, 6, 7]), np.array([8])], CPU)
    rows = np.array([1, 0])
    assert documents.window(rows, 0, documents.lengths[rows]).tolist() == [
        [8, 5],
        [1, 6],
        [1, 7],
    ]
    assert documents.window(rows[1:], 1, 3).tolist() == [[6], [7]]


@pytest.mark.parametrize("n", [2, 4, 5, 9, 16, 17, 413])
def test_every_document_is_in_one_batch_of_two_or_more(n):
    random = np.random.default_rng(n)
    batches = similar_lengths(random.integers(1, 90, n), 4, random)
    assert len(batches) == n_batches(n, 4)
    assert sorted(np.concatenate(batches)) == list(range(n))
    assert all(2 <= len(batch) <= 5 for batch in batches)


def test_batches_hold_similar_lengths():
    random = np.random.default_rng(0)
    lengths = random.integers(1, 1000, 4000)
    spread = [np.ptp(lengths[rows]) for rows in similar_lengths(lengths, 8, random)]
    assert np.mean(spread) < 50


@pytest.mark.parametrize("n", [20, 400])
def test_documents_meet_others_in_the_next_epoch(n):
    random = np.random.default_rng(0)
    lengths = random.integers(1, 1000, n)
    first, second = (
        {tuple(sorted(rows)) for rows in similar_lengths(lengths, 4, random)}
        for _ in range(2)
    )
    assert len(first & second) <= 1


def test_weight_drop_drops_the_recurrent_matrix_and_puts_it_back():
    lstm = torch.nn.LSTM(30, 40)
    before = {name: p.clone() for name, p in lstm.named_parameters()}
    x = torch.randn(5, 2, 30)
    whole = lstm(x)[0]
    with Dropout(DropoutRates(weights=0.5), seeded()).weights([lstm]):
        weight = lstm.weight_hh_l0
        dropped = weight == 0
        assert 0.45 < dropped.float().mean() < 0.55
        kept = 2 * before["weight_hh_l0"][~dropped]
        torch.testing.assert_close(weight[~dropped], kept, rtol=0, atol=0)
        assert torch.equal(lstm.weight_ih_l0, before["weight_ih_l0"])
        assert not torch.allclose(lstm(x)[0], whole)
    for name, parameter in lstm.named_parameters():
        assert torch.equal(parameter, before[name])
    assert torch.equal(lstm(x)[0], whole)


def test_weight_drop_gives_the_gradient_of_the_whole_matrix():
    lstm = torch.nn.LSTM(3, 4)
    x = torch.randn(5, 2, 3)
    raw = lstm.weight_hh_l0.detach().clone().requires_grad_()
    with Dropout(DropoutRates(weights=0.5), seeded()).weights([lstm]):
        mask = (lstm.weight_hh_l0 / raw).detach()
        lstm(x)[0].square().sum().backward()
    others = {n: p.detach() for n, p in lstm.named_parameters()}
    out = torch.func.functional_call(
        lstm, {**others, "weight_hh_l0": raw * mask}, (x,)
    )[0]
    out.square().sum().backward()
    torch.testing.assert_close(lstm.weight_hh_l0.grad, raw.grad)
    assert (lstm.weight_hh_l0.grad[mask == 0] == 0).all()


def test_weight_drop_puts_back_after_an_error():
    lstm = torch.nn.LSTM(3, 4)
    before = lstm.weight_hh_l0.clone()
    dropout = Dropout(DropoutRates(weights=0.5), seeded())
    with pytest.raises(RuntimeError, match="stop"), dropout.weights([lstm]):
        raise RuntimeError("stop")
    assert torch.equal(lstm.weight_hh_l0, before)


def test_locked_dropout_is_the_same_at_all_times():
    dropped = Dropout(DropoutRates(), seeded()).locked(torch.ones(6, 3, 50), 0.4)
    assert torch.equal(dropped, dropped[:1].expand_as(dropped))
    assert 0.2 < (dropped == 0).float().mean() < 0.6
    assert dropped.unique().tolist() == pytest.approx([0, 1 / 0.6])


def test_word_dropout_drops_a_word_wherever_it_is():
    tokens = torch.arange(200).repeat(2, 1)
    dropout = Dropout(DropoutRates(words=0.5), seeded())
    dropped = dropout.words(torch.ones(2, 200, 3), tokens, 200)
    assert torch.equal(dropped[0], dropped[1])
    assert torch.equal(dropped, dropped[:, :, :1].expand_as(dropped))
    assert 0.4 < (dropped == 0).float().mean() < 0.6


def test_no_dropout_draws_nothing():
    generator = seeded()
    state = generator.get_state()
    encoder = reader()
    tokens = torch.tensor([[4], [5]])
    dropout = Dropout(DropoutRates(), generator)
    with dropout.weights(encoder.lstms):
        noisy, _ = encoder(tokens, encoder.zero_state(1), dropout)
    plain, _ = encoder(tokens, encoder.zero_state(1))
    assert torch.equal(noisy, plain)
    assert torch.equal(generator.get_state(), state)


@pytest.mark.parametrize(
    ("step", "part"),
    [
        (0, 1 / 32),
        (5, (1 + 0.5 * 31) / 32),
        (10, 1.0),
        (55, (1 + 0.5 * 31) / 32),
        (99, (1 + 31 / 90) / 32),
    ],
)
def test_slanted_triangle_by_hand(step, part):
    assert slanted_triangle(step, 100) == pytest.approx(part)


@pytest.mark.parametrize("n_steps", [1, 2, 3, 9, 19, 29])
def test_slanted_triangle_stays_between_its_ends(n_steps):
    parts = [slanted_triangle(step, n_steps) for step in range(n_steps)]
    assert min(parts) >= 1 / 32
    assert max(parts) <= 1
    assert parts[1:2] in ([], [1.0], [pytest.approx(0.515625)])


def test_lower_groups_learn_slower():
    rates = discriminative_rates(0.01, 4)
    assert rates == pytest.approx([0.01 / 17.576, 0.01 / 6.76, 0.01 / 2.6, 0.01])


def test_optimizer_follows_rates_and_triangle():
    parameters = [torch.nn.Parameter(torch.ones(1)) for _ in range(2)]
    optimizer = SlantedAdam([[p] for p in parameters], [0.1, 0.26], 10)
    for part in (1 / 32, 1.0, 1 - 31 / 32 / 9):
        optimizer.backward(sum(p.sum() for p in parameters))
        optimizer.step()
        rates = [group["lr"] for group in optimizer.adam.param_groups]
        assert rates == pytest.approx([0.1 * part, 0.26 * part])


def test_all_epochs_are_spent():
    for n_epochs in range(1, 9):
        stages = unfreezing_stages(4, n_epochs)
        assert sum(stage.n_epochs for stage in stages) == n_epochs
        trained = [stage.n_trained for stage in stages]
        assert trained == list(range(1, min(4, n_epochs) + 1))


def test_decoder_shares_the_word_vectors():
    model = LanguageModel(reader())
    assert model.decoder_weight.data_ptr() == model.encoder.embedding.data_ptr()
    assert sum(p.shape == (11, 4) for p in model.parameters()) == 1
    hidden = torch.randn(2, 1, 4)
    by_hand = hidden @ model.encoder.embedding.T + model.bias
    torch.testing.assert_close(model(hidden), by_hand)


def test_reading_in_pieces_is_reading_at_once():
    model = LanguageModel(reader())
    documents = random_documents([37])
    perplexities = [
        model.perplexity(documents, batch_size=1, bptt=bptt) for bptt in (3, 50)
    ]
    assert perplexities[0] == pytest.approx(perplexities[1], rel=1e-5)


def test_learns_a_deterministic_text_better_than_the_unigram():
    cycle = np.arange(3, 9)
    documents = TokenDocuments.build([np.tile(cycle, 10)] * 6, CPU)
    model = LanguageModel(reader(9, 16, 24, 2))
    losses = []
    train_language_model(
        model,
        documents,
        n_epochs=20,
        rates=[0.03] * 3,
        batch_size=4,
        bptt=10,
        dropout=Dropout(DropoutRates.scaled(0.1), seeded()),
        random=np.random.default_rng(0),
        report=losses.append,
    )
    assert len(losses) == 20
    assert losses[-1] < losses[0]
    unigram = float(len(cycle))
    assert model.perplexity(documents, bptt=10) < 0.5 * unigram


def plain_pool(hidden, lengths):
    rows = []
    for column, length in enumerate(lengths):
        own = hidden[:length, column]
        rows.append(torch.cat([own[-1], own.max(dim=0).values, own.mean(dim=0)]))
    return torch.stack(rows)


def test_pooling_is_that_of_a_plain_loop():
    hidden = torch.randn(7, 4, 3, generator=seeded())
    lengths = torch.tensor([1, 7, 3, 6])
    none = torch.zeros(4, 3)
    pooled = concat_pool(hidden, lengths, none, none - torch.inf, lengths)
    torch.testing.assert_close(pooled, plain_pool(hidden, lengths))


def test_padding_is_not_pooled():
    hidden = torch.randn(7, 4, 3, generator=seeded())
    lengths = torch.tensor([1, 7, 3, 6])
    none = torch.zeros(4, 3)
    noisy = hidden.clone()
    for column, length in enumerate(lengths):
        noisy[length:, column] = 1e6
    pooled = [
        concat_pool(h, lengths, none, none - torch.inf, lengths)
        for h in (hidden, noisy)
    ]
    assert torch.equal(*pooled)


def test_long_documents_are_read_and_pooled_whole():
    documents = random_documents([3, 90, 1, 31, 30, 57])
    rows = np.arange(6)
    scores = []
    for bptt, max_tokens in ((70, 1400), (7, 20), (40, 13)):
        network = DocumentNetwork(
            reader(), 3, seeded(), bptt=bptt, max_tokens=max_tokens
        ).eval()
        scores.append(network(documents, rows).detach())
    torch.testing.assert_close(scores[1], scores[0], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(scores[2], scores[0], rtol=1e-5, atol=1e-6)


def test_no_gradient_goes_back_past_the_last_tokens():
    tokens = np.repeat(np.arange(3, 11), 5)
    documents = TokenDocuments.build([tokens, tokens[:10]], CPU)
    network = DocumentNetwork(reader(), 2, seeded(), bptt=5, max_tokens=10)
    scores = network(documents, np.array([0, 1]))
    torch.nn.functional.cross_entropy(scores, torch.tensor([0, 1])).backward()
    moved = network.encoder.embedding.grad.abs().sum(dim=1) > 0
    assert moved.tolist() == [word in (3, 4, 9, 10) for word in range(11)]


@pytest.mark.parametrize("n_epochs", [1, 2, 3, 4, 5])
def test_unfreezing_frees_one_more_group_an_epoch(n_epochs):
    network = DocumentNetwork(reader(), 2, seeded())
    groups = network.groups()
    assert sum(map(len, groups)) == len(list(network.parameters()))
    before = [[p.detach().clone() for p in group] for group in groups]
    free = []
    train_classifier(
        network,
        random_documents([5, 9, 4, 7, 8, 6]),
        np.array([0, 1, 0, 1, 0, 1]),
        n_epochs=n_epochs,
        rate=0.01,
        batch_size=3,
        dropout=Dropout(DropoutRates.scaled(0.4), seeded()),
        random=np.random.default_rng(0),
        report=lambda _: free.append([group[0].requires_grad for group in groups]),
    )
    moved = [
        any(not torch.equal(p, q) for p, q in zip(new, old, strict=True))
        for new, old in zip(groups, before, strict=True)
    ]
    expected = [
        [number >= 4 - n_trained for number in range(4)]
        for n_trained in range(1, n_epochs + 1)
    ]
    assert free == expected
    assert moved == expected[-1]
    assert all(p.requires_grad for p in network.parameters())


def test_frozen_groups_have_no_gradient():
    network = DocumentNetwork(reader(), 2, seeded())
    free_groups(network.groups(), 2)
    scores = network(random_documents([5, 9]), np.array([0, 1]))
    scores.square().sum().backward()
    *lower, last, blocks = network.groups()
    assert all(p.grad is None for group in lower for p in group)
    assert all(p.grad is not None for p in (*last, *blocks))
