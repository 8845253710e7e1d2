"""ULMFiT as a classifier, and the files of its language model."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from docsigma.exceptions import InputError
from docsigma_paper.classifiers.ulmfit import ULMFiTClassifier
from docsigma_paper.classifiers.ulmfit.batches import (
    TokenDocuments,
)
from docsigma_paper.classifiers.ulmfit.history import TrainingLog
from docsigma_paper.classifiers.ulmfit.language_model import (
    LanguageModel,
)
from docsigma_paper.classifiers.ulmfit.tokens import SPECIAL_WORDS, tokenize
from docsigma_paper.classifiers.ulmfit.weights import read_weights
from ulmfit_toys import CPU, TINY, reader, toy_corpus


@pytest.fixture(scope="module")
def fitted():
    texts, labels = toy_corpus(40, seed=0)
    return ULMFiTClassifier(**TINY).fit(texts, labels)


def test_training_ends_with_the_statistics_of_whole_documents(fitted):
    texts, _ = toy_corpus(40, seed=0)
    numbers = [fitted.vocabulary_.encode(tokenize(text)) for text in texts]
    network, documents = fitted.network_, TokenDocuments.build(numbers, CPU)
    with torch.no_grad():
        pooled = network.pool(documents, np.arange(40))
    norm = network.norms[0]
    torch.testing.assert_close(norm.running_mean, pooled.mean(dim=0))
    torch.testing.assert_close(norm.running_var, pooled.var(dim=0))
    assert not network.training


def made_up_weights(folder, words, *, size=16, units=24, n_layers=2, nested=False):
    """Two files of the form that fastai publishes, of random numbers."""
    random = np.random.default_rng(0)

    def tensor(*shape):
        return torch.from_numpy(random.normal(size=shape).astype(np.float32))

    vectors = tensor(len(words), size)
    state = {"0.encoder.weight": vectors, "0.encoder_dp.emb.weight": vectors}
    widths = [size, *[units] * (n_layers - 1), size]
    for i in range(n_layers):
        n_in, n_out = widths[i], widths[i + 1]
        state[f"0.rnns.{i}.weight_hh_l0_raw"] = tensor(4 * n_out, n_out)
        state[f"0.rnns.{i}.module.weight_ih_l0"] = tensor(4 * n_out, n_in)
        state[f"0.rnns.{i}.module.weight_hh_l0"] = tensor(4 * n_out, n_out)
        state[f"0.rnns.{i}.module.bias_ih_l0"] = tensor(4 * n_out)
        state[f"0.rnns.{i}.module.bias_hh_l0"] = tensor(4 * n_out)
    state["1.decoder.weight"] = vectors
    state["1.decoder.bias"] = tensor(len(words))
    folder.mkdir(exist_ok=True)
    stored = {"model": state, "opt": {}} if nested else state
    torch.save(stored, folder / "lstm_wt103.pth")
    (folder / "itos_wt103.pkl").write_bytes(pickle.dumps(list(words)))
    return state


THEIR_WORDS = ["xxunk", "xxpad", "xxbos", "xxfld", "rain", "the", "sun"]


@pytest.mark.parametrize("nested", [False, True])
def test_made_up_files_give_exactly_these_weights(tmp_path, nested):
    state = made_up_weights(tmp_path, THEIR_WORDS, nested=nested)
    words = [*SPECIAL_WORDS, "sun", "hail", "rain"]
    model = LanguageModel(reader(len(words), 16, 24, 2))
    published = read_weights(tmp_path)
    published.load_into(model, words)
    vectors, bias = state["0.encoder.weight"], state["1.decoder.bias"]
    for number, word in enumerate(words):
        own = model.encoder.embedding[number], model.bias[number]
        if word in THEIR_WORDS:
            there = THEIR_WORDS.index(word)
            assert torch.equal(own[0], vectors[there])
            assert torch.equal(own[1], bias[there])
        else:
            torch.testing.assert_close(own[0], vectors.mean(dim=0))
            torch.testing.assert_close(own[1], bias.mean())
    for number, lstm in enumerate(model.encoder.lstms):
        raw = state[f"0.rnns.{number}.weight_hh_l0_raw"]
        assert torch.equal(lstm.weight_hh_l0, raw)
        for name in ("weight_ih_l0", "bias_ih_l0", "bias_hh_l0"):
            theirs = state[f"0.rnns.{number}.module.{name}"]
            assert torch.equal(getattr(lstm, name), theirs)
    assert published.pretrained_on == f"wt103 ({tmp_path / 'lstm_wt103.pth'})"


def test_files_may_be_named(tmp_path):
    made_up_weights(tmp_path, THEIR_WORDS)
    files = tmp_path / "lstm_wt103.pth", tmp_path / "itos_wt103.pkl"
    assert read_weights(files).words == read_weights(files[0]).words == THEIR_WORDS
    (tmp_path / "other.pkl").write_bytes(b"")
    assert read_weights(files).words == THEIR_WORDS
    with pytest.raises(InputError, match=r"must have one .pkl file, .* has 2$"):
        read_weights(files[0])


@pytest.mark.parametrize("name", ["lstm_wt103.pth", "itos_wt103.pkl"])
@pytest.mark.parametrize("damage", ["cut", "empty", "text", "code"])
def test_damaged_files_are_named_in_one_sentence(tmp_path, name, damage):
    made_up_weights(tmp_path, THEIR_WORDS)
    path = tmp_path / name
    whole = path.read_bytes()
    path.write_bytes(
        {
            "cut": whole[: len(whole) // 2],
            "empty": b"",
            "text": b"not found",
            "code": pickle.dumps(print),
        }[damage]
    )
    with pytest.raises(InputError) as caught:
        read_weights(tmp_path)
    assert str(path) in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"hidden_units": 23},
            r"shape \(96, 24\), but .* ask for \(92, 23\)",
        ),
        ({"embedding_size": 11}, r"shape \(7, 16\), but .* ask for \(7, 11\)"),
        ({"n_layers": 3}, r"has `0.rnns.1.weight_hh_l0_raw` of shape \(64, 16\)"),
        ({"n_layers": 1}, "has more than the 1 layers of `n_layers`"),
    ],
)
def test_files_of_other_sizes_are_refused(tmp_path, changes, sentence):
    made_up_weights(tmp_path, THEIR_WORDS)
    ulmfit = ULMFiTClassifier(tmp_path, **{**TINY, **changes})
    with pytest.raises(InputError, match=sentence) as caught:
        ulmfit.fit(["sun", "rain"], ["a", "b"])
    assert str(tmp_path / "lstm_wt103.pth") in str(caught.value)


def test_other_contents_are_refused(tmp_path):
    state = made_up_weights(tmp_path, THEIR_WORDS)
    path = tmp_path / "lstm_wt103.pth"
    model = LanguageModel(reader(7, 16, 24, 2))
    torch.save([1, 2], path)
    with pytest.raises(InputError, match="holds a list, not named tensors"):
        read_weights(tmp_path)
    torch.save({"encoder": state["0.encoder.weight"]}, path)
    with pytest.raises(InputError, match="has no tensor `0.encoder.weight`"):
        read_weights(tmp_path).load_into(model, THEIR_WORDS)
    torch.save({**state, "1.decoder.bias": torch.full((7,), torch.nan)}, path)
    with pytest.raises(InputError, match="non-finite values in `1.decoder.bias`"):
        read_weights(tmp_path).load_into(model, THEIR_WORDS)
    (tmp_path / "itos_wt103.pkl").write_bytes(pickle.dumps({"the": 0}))
    with pytest.raises(InputError, match="itos_wt103.pkl must hold a list of str"):
        read_weights(tmp_path)


def test_missing_files_are_named(tmp_path):
    with pytest.raises(InputError, match="no weights file .*nowhere.pth"):
        read_weights(tmp_path / "nowhere.pth")
    with pytest.raises(InputError, match="must have one .pth file, .* has 0"):
        read_weights(tmp_path)


def test_training_starts_from_them(tmp_path):
    made_up_weights(tmp_path, THEIR_WORDS)
    texts, labels = toy_corpus(8, seed=1)
    settings = {**TINY, "lm_epochs": 0, "classifier_epochs": 1}
    ulmfit = ULMFiTClassifier(str(tmp_path), **settings).fit(texts, labels)
    assert ulmfit.pretrained_on_ == f"wt103 ({tmp_path / 'lstm_wt103.pth'})"
    assert [row["phase"] for row in ulmfit.history_] == ["classifier"]
    model = LanguageModel(reader(len(ulmfit.vocabulary_), 16, 24, 2))
    read_weights(tmp_path).load_into(model, ulmfit.vocabulary_.words)
    expected = model.state_dict()
    for name, value in ulmfit.language_model_.state_dict().items():
        assert torch.equal(value, expected[name])


def test_a_saved_language_model_comes_back(fitted, tmp_path):
    fitted.save_language_model(tmp_path / "lm")
    texts, labels = toy_corpus(40, seed=0)
    settings = {**TINY, "lm_epochs": 0, "classifier_epochs": 1}
    again = ULMFiTClassifier(tmp_path / "lm", **settings).fit(texts, labels)
    assert again.pretrained_on_ == fitted.pretrained_on_
    expected = fitted.language_model_.state_dict()
    for name, value in again.language_model_.state_dict().items():
        assert torch.equal(value, expected[name])


def test_learns_two_topics(fitted):
    texts, labels = toy_corpus(60, seed=1)
    assert fitted.score(texts, labels) > 0.9
    assert fitted.classes_.tolist() == ["sport", "weather"]
    assert fitted.pretrained_on_ == "the 40 texts of the training set"
    phases = [row["phase"] for row in fitted.history_]
    assert phases == (
        ["pre-training"] * 6 + ["language model"] * 2 + ["classifier"] * 8
    )


def test_probabilities_add_up(fitted):
    texts, _ = toy_corpus(9, seed=2)
    proba = fitted.predict_proba(texts)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_allclose(np.log(proba), fitted.predict_log_proba(texts))
    best = fitted.classes_[proba.argmax(axis=1)]
    np.testing.assert_array_equal(fitted.predict(texts), best)


def test_probabilities_do_not_depend_on_neighbours(fitted):
    texts, _ = toy_corpus(13, seed=3)
    together = fitted.predict_proba(texts)
    alone = np.concatenate([fitted.predict_proba([text]) for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-6)
    backwards = fitted.predict_proba([*texts[::-1], "sun " * 300])
    np.testing.assert_allclose(together, backwards[:-1][::-1], atol=1e-6)


def test_seed_gives_the_same_result_and_leaves_torch_alone(fitted):
    texts, labels = toy_corpus(40, seed=0)
    before = torch.random.get_rng_state()
    again = clone(fitted).fit(texts, labels)
    assert torch.equal(torch.random.get_rng_state(), before)
    np.testing.assert_array_equal(
        again.predict_log_proba(texts), fitted.predict_log_proba(texts)
    )
    other = clone(fitted).set_params(random_state=1, classifier_epochs=1)
    other.fit(texts, labels)
    assert not np.allclose(other.predict_proba(texts), fitted.predict_proba(texts))


def test_unicode_empty_texts_and_rare_classes():
    texts = ["", "日本 naïve \U0001f600 \ud800", "\x00", "Ünï cödé"] * 2
    labels = [0, 1, 1, 2, 0, 1, 1, 7]
    settings = {**TINY, "classifier_epochs": 2}
    ulmfit = ULMFiTClassifier(**settings).fit(texts, labels)
    assert ulmfit.classes_.tolist() == [0, 1, 2, 7]
    proba = ulmfit.predict_proba(["", "never seen", "\u0301"])
    assert proba.shape == (3, 4)
    assert np.isfinite(proba).all()
    assert ulmfit.predict([]).shape == (0,)


def test_nothing_but_empty_texts():
    settings = {**TINY, "classifier_epochs": 1}
    ulmfit = ULMFiTClassifier(**settings).fit(["", ""], ["a", "b"])
    assert np.isfinite(ulmfit.predict_log_proba([""])).all()


def test_extra_texts_teach_the_language_model():
    texts, labels = toy_corpus(8, seed=0)
    settings = {**TINY, "classifier_epochs": 1, "lm_epochs": 1}
    ulmfit = ULMFiTClassifier(**settings)
    ulmfit.fit(texts, labels, extra_texts=["hail and hail"] * 3)
    assert "hail" in ulmfit.vocabulary_.words
    assert ulmfit.pretrained_on_ == (
        "the 8 texts of the training set and 3 further texts"
    )
    ulmfit.set_params(pretrain_epochs=0).fit(texts, labels)
    assert ulmfit.pretrained_on_ == "nothing"


def test_a_language_model_can_be_trained_alone(tmp_path):
    texts, labels = toy_corpus(20, seed=0)
    alone = ULMFiTClassifier(**TINY).fit_language_model(texts)
    assert alone.pretrained_on_ == "20 texts"
    phases = [row["phase"] for row in alone.history_]
    assert phases == ["pre-training"] * 6 + ["language model"] * 2
    with pytest.raises(NotFittedError):
        alone.predict(texts)
    alone.save_language_model(tmp_path)
    settings = {**TINY, "lm_epochs": 0}
    ulmfit = ULMFiTClassifier(tmp_path, **settings).fit(texts, labels)
    assert ulmfit.pretrained_on_ == "20 texts"
    with_both = ULMFiTClassifier(**TINY).fit(texts, labels)
    for one, other in zip(
        ulmfit.language_model_.parameters(),
        with_both.language_model_.parameters(),
        strict=True,
    ):
        assert torch.equal(one, other)
    # What cannot predict any more says so, and does not use its old classifier.
    with pytest.raises(NotFittedError):
        ulmfit.fit_language_model(texts).predict(texts)
    with pytest.raises(InputError, match="`X` has 0 texts"):
        alone.fit_language_model([])


def test_words_behind_the_greatest_length_are_not_read():
    texts, labels = toy_corpus(8, seed=0)
    # The mark of the beginning counts as a word.
    begun = [" ".join(text.split()[:4]) for text in texts]
    settings = {**TINY, "classifier_epochs": 1, "lm_epochs": 1}
    short = ULMFiTClassifier(**settings, max_length=5).fit(texts, labels)
    by_hand = ULMFiTClassifier(**settings).fit(begun, labels)
    assert short.vocabulary_ == by_hand.vocabulary_
    np.testing.assert_array_equal(
        short.predict_proba(texts), by_hand.predict_proba(begun)
    )
    assert not np.array_equal(short.predict_proba(begun), by_hand.predict_proba(texts))


def test_survives_a_pickle(fitted):
    texts, _ = toy_corpus(5, seed=4)
    back = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(
        back.predict_proba(texts), fitted.predict_proba(texts)
    )


def test_bad_input(fitted):
    with pytest.raises(InputError, match="`X` must be a list of strings, got one"):
        fitted.predict("sun")
    with pytest.raises(InputError, match="document 2 of `X` must be a string, got"):
        fitted.predict(["sun", None])
    ulmfit = ULMFiTClassifier(**TINY)
    with pytest.raises(NotFittedError):
        ulmfit.predict(["sun"])
    with pytest.raises(InputError, match="1 labels, but `X` has 2 documents"):
        ulmfit.fit(["sun", "rain"], ["a"])
    with pytest.raises(InputError, match="at least 2 classes, got 1 class: a"):
        ulmfit.fit(["sun", "rain"], ["a", "a"])
    with pytest.raises(InputError, match="of `extra_texts` must be a string"):
        ulmfit.fit(["sun", "rain"], ["a", "b"], extra_texts=[1])


@pytest.mark.parametrize(
    "changes",
    [
        {"batch_size": 1},
        {"lm_dropout": 0.8},
        {"classifier_epochs": 0},
        {"max_length": 0},
    ],
)
def test_bad_parameters(changes):
    with pytest.raises(ValueError, match=f"'{next(iter(changes))}' parameter"):
        ULMFiTClassifier(**{**TINY, **changes}).fit(["sun", "rain"], ["a", "b"])


def test_a_loss_that_is_not_finite_ends_the_training():
    with TrainingLog(3, show=False) as log:
        report = log.phase("language model", "lm_learning_rate")
        report(3.0)
        with pytest.raises(InputError, match="is nan after epoch 2: lower `lm_lea"):
            report(float("nan"))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_learns_on_a_gpu():
    texts, labels = toy_corpus(40, seed=0)
    ulmfit = ULMFiTClassifier(**{**TINY, "device": "cuda"}).fit(texts, labels)
    assert ulmfit.score(*toy_corpus(60, seed=1)) > 0.9
    there = ulmfit.predict_proba(texts)
    here = ulmfit.set_params(device="cpu").predict_proba(texts)
    np.testing.assert_allclose(here, there, atol=1e-2)
