from __future__ import annotations

import json
import subprocess
import sys

import pytest

from docsigma import DocumentEmbedder, InputError, Vocabulary
from docsigma.counts import _tokenizers
from docsigma.counts._unspaced import UnspacedTexts
from running import refuse, run, succeed

CHINESE = [
    "今天北京的天气非常好。我们去公园散步。",
    "股票市场今天上涨。投资者非常高兴。",
]
JAPANESE = [
    "今日は東京の天気がとても良いので公園を散歩します。",
    "株式市場が上昇した。",
]
THAI = ["วันนี้อากาศดีมากเราไปเดินเล่นที่สวนสาธารณะ", "ตลาดหุ้นวันนี้ปรับตัวขึ้นนักลงทุนดีใจ"]
LANGUAGES = {"jieba": CHINESE, "janome": JAPANESE, "pythainlp": THAI}
EXPECTED = {"jieba": "天气", "janome": "天気", "pythainlp": "อากาศ"}


def by_space(text):
    return text.split(" ")


@pytest.mark.parametrize("name", LANGUAGES)
def test_a_named_tokenizer_finds_words_and_no_punctuation(name):
    pytest.importorskip(name)
    words = Vocabulary.from_texts(LANGUAGES[name], min_df=1, tokenizer=name).words
    assert EXPECTED[name] in words
    assert max(map(len, words)) < 12
    assert all(any(map(str.isalnum, word)) for word in words)


@pytest.mark.parametrize("name", LANGUAGES)
def test_texts_without_spaces_are_told_in_one_sentence(name):
    with pytest.warns(UserWarning, match=f"2 of 2 texts .* {name}") as found:
        Vocabulary.from_texts(LANGUAGES[name], min_df=1)
    assert len(found) == 1


@pytest.mark.parametrize(
    "texts",
    [
        ["plain English", "naïve café"],
        ["서울의 날씨가 아주 좋습니다", "오늘 주식 시장이 올랐다"],
        ["今天 北京 的 天气 非常 好", "股票 市场 今天 上涨"],
        ["วันนี้ อากาศ ดี มาก", "ตลาด หุ้น ขึ้น"],
        ["an English text that quotes 今天北京的天气非常好 once in its middle"],
        ["plain English"] * 20 + CHINESE[:1],
        ["Привет, мир", "Καλημέρα κόσμε"],
    ],
)
def test_texts_with_spaces_are_left_alone(texts):
    # Warnings are errors here.
    Vocabulary.from_texts(texts, min_df=1)


def test_khmer_is_told_too():
    seen = UnspacedTexts()
    seen.add("ថ្ងៃនេះអាកាសធាតុល្អណាស់យើងទៅដើរលេង")
    with pytest.warns(UserWarning, match="pass a function"):
        seen.warn()


def test_a_model_remembers_the_name_and_imports_nothing(tmp_path):
    made = DocumentEmbedder(2, tokenizer="jieba", min_df=1, random_state=0)
    made.fit(CHINESE).save(tmp_path / "m")
    program = (
        "import sys; from docsigma import DocumentEmbedder as E\n"
        f"e = E.load({str(tmp_path / 'm')!r}); assert 'jieba' not in sys.modules\n"
        f"q = e.posterior({CHINESE!r}); assert 'jieba' in sys.modules\n"
        "print(e.tokenizer, q.n_tokens.min())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    name, n_tokens = done.stdout.split()
    assert name == "jieba"
    assert float(n_tokens) > 3


@pytest.mark.filterwarnings("ignore:nothing was learned")
def test_a_function_is_passed_again(tmp_path):
    texts = ["sun,rain and-hail", "sun,rain snow"]
    made = DocumentEmbedder(2, tokenizer=by_space, min_df=1, random_state=0).fit(texts)
    assert "sun,rain" in made.model_.vocabulary_.words
    made.save(tmp_path / "m")
    assert "by_space" in (tmp_path / "m" / "vocabulary.json").read_text()
    forgetful = DocumentEmbedder.load(tmp_path / "m")
    with pytest.raises(InputError, match=r"`by_space`.*tokenizer=by_space"):
        forgetful.posterior(texts)
    # What is saved again still knows the name.
    forgetful.save(tmp_path / "again")
    again = DocumentEmbedder.load(tmp_path / "again", tokenizer=by_space)
    assert (again.posterior(texts).mean == made.posterior(texts).mean).all()


def test_a_vectorizer_of_a_tokenizer_counts_the_same():
    words, counted = Vocabulary.fit_count(CHINESE, min_df=1, tokenizer="jieba")
    assert (words.vectorizer().transform(CHINESE) != counted.counts).nnz == 0


def test_wrong_tokenizers_are_refused(monkeypatch):
    with pytest.raises(InputError, match="jieba, janome, pythainlp.* got 'jeiba'"):
        Vocabulary.from_texts(CHINESE, tokenizer="jeiba")
    with pytest.raises(InputError, match="must return strings, got int"):
        Vocabulary.from_texts(["sun"], tokenizer=lambda text: [len(text)])
    with pytest.raises(InputError, match="`analyzer` is 'char'"):
        Vocabulary(("a",), analyzer="char", tokenizer=by_space)
    missing = ("Chinese", "no_such_module", str)
    monkeypatch.setitem(_tokenizers.TOKENIZERS, "none", missing)
    with pytest.raises(InputError, match="pip install none"):
        Vocabulary.from_texts(CHINESE, tokenizer="none")


@pytest.mark.filterwarnings("default")
def test_the_command_line_takes_a_tokenizer(tmp_path, capsys):
    file = tmp_path / "own.txt"
    file.write_text("\n".join(CHINESE * 3), "utf-8")
    code, _, err = run(capsys, "fit", file, "--out", tmp_path / "m", "--components", 2)
    assert code == 0
    assert "6 of 6 texts have no spaces between their words (Chinese)" in err
    assert len(err.splitlines()) == 1
    flags = ("--components", 2, "--tokenizer", "jieba")
    succeed(capsys, "fit", file, "--out", tmp_path / "cut", *flags)
    out = tmp_path / "e.jsonl"
    shown = succeed(capsys, "embed", tmp_path / "cut", file, "--out", out, "--json")
    assert json.loads(shown)["n_unknown"] == 0
    said = refuse(capsys, "fit", file, "--out", tmp_path / "x", "--tokenizer", "cut")
    assert "jieba, janome, pythainlp" in said
