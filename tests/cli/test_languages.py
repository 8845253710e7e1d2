"""The command line with a model of several languages."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from docsigma import ParallelEmbedder
from docsigma.cli.__main__ import main
from running import refuse, succeed

THINGS = {
    "weather": [("sun", "sonne"), ("rain", "regen"), ("wind", "sturm")],
    "food": [("bread", "brot"), ("salt", "salz"), ("wine", "wein")],
}


def write(path, n, seed=0):
    """Rows of six things of one topic, in English and in German; some are blank."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(n):
        label = ("weather", "food")[number % 2]
        some = [THINGS[label][i] for i in rng.integers(3, size=6)]
        english, german = (" ".join(thing[i] for thing in some) for i in (0, 1))
        german = "" if number % 7 == 3 else german
        rows.append((f"r{number}", english, german, label))
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("id", "english", "german", "label"), *rows])
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model of English and German, and the rows it was fitted to."""
    where = tmp_path_factory.mktemp("languages")
    table = write(where / "parallel.csv", 120)
    options = ["--components", "2", "--text-columns", "en:english,de:german"]
    with pytest.raises(SystemExit) as stop:
        main(["fit", str(table), "--out", str(where / "model"), *options])
    assert not stop.value.code
    return where


GERMAN = ("--language", "de", "--text-column", "german")
ENGLISH = ("--language", "en", "--text-column", "english")


def test_embeddings_are_those_of_python(folder, tmp_path, capsys):
    out = tmp_path / "q.npz"
    table, model = folder / "parallel.csv", folder / "model"
    succeed(capsys, "embed", model, table, "--out", out, *GERMAN)
    with table.open(encoding="utf-8") as file:
        texts = [row["german"] for row in csv.DictReader(file)]
    q = ParallelEmbedder.load(model).posterior(texts, language="de")
    with np.load(out) as arrays:
        np.testing.assert_allclose(arrays["mean"], q.mean, atol=1e-6)
        # A blank row has the prior.
        np.testing.assert_array_equal(arrays["mean"][3], 0)


def test_labels_in_english_and_texts_in_german(folder, tmp_path, capsys):
    model, test = folder / "model", write(tmp_path / "test.csv", 40, seed=1)
    clf = tmp_path / "topics"
    options = ("--kind", "evidence", *ENGLISH)
    succeed(
        capsys,
        "classifier",
        "fit",
        model,
        folder / "parallel.csv",
        "--out",
        clf,
        *options,
    )
    out = tmp_path / "labels.csv"
    succeed(capsys, "classifier", "predict", clf, test, "--out", out, *GERMAN)
    with out.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["n_tokens"] != "0"]
    assert len(rows) == 34
    assert all(row["predicted"] == row["label"] for row in rows)
    found = succeed(capsys, "classifier", "evaluate", clf, test, *GERMAN, "--json")
    assert json.loads(found)["accuracy"] > 85


def test_english_index_asked_in_german(folder, tmp_path, capsys):
    index = tmp_path / "index"
    table, model = folder / "parallel.csv", folder / "model"
    succeed(capsys, "index", model, table, "--out", index, *ENGLISH)
    asked = ("search", index, "regen regen sonne regen", "--n", 3)
    report = json.loads(succeed(capsys, *asked, "--language", "de", "--json"))
    assert report["metric"] == "same_text"
    best = report["matches"][0]
    assert best["label"] == "weather"
    assert 0 < best["probability"] < 1
    assert best["words"] == []
    shown = succeed(capsys, *asked, "--language", "de")
    assert "same text" in shown
    assert "'fr'; it has en, de" in refuse(capsys, *asked, "--language", "fr")


def test_rows_of_one_language_can_be_added_only_in_it(folder, tmp_path, capsys):
    index = tmp_path / "index"
    more = write(tmp_path / "more.csv", 8, seed=3)
    text = more.read_text("utf-8").replace("\nr", "\nm")
    more.write_text(text, "utf-8")
    succeed(
        capsys,
        "index",
        folder / "model",
        folder / "parallel.csv",
        "--out",
        index,
        *ENGLISH,
    )
    assert "are in en, not in de" in refuse(capsys, "add", index, more, *GERMAN)
    succeed(capsys, "add", index, more, *ENGLISH)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("topics", "MODEL", "TABLE"), "has the languages en, de: choose"),
        (("topics", "MODEL", "TABLE", "--language", "fr"), "got fr"),
        (("embed", "MODEL", "TABLE", "--out", "OUT.csv"), "--language"),
        (("explore", "MODEL", "TABLE", "--no-browser"), "--language"),
        (("serve", "MODEL"), "--language"),
        (("fit", "TABLE", "--out", "OUT", "--text-columns", "en"), "like en:english"),
        (
            ("fit", "TABLE", "--out", "OUT", "--text-columns", "en:english,fr:french"),
            "french",
        ),
        (
            ("fit", "TABLE", "--out", "OUT", "--text-columns", "en:english,de:german"),
            "as there are components, 200",
        ),
    ],
)
def test_wrong_languages_are_one_sentence(folder, tmp_path, capsys, arguments, message):
    places = {
        "MODEL": folder / "model",
        "TABLE": folder / "parallel.csv",
        "OUT": tmp_path / "out",
        "OUT.csv": tmp_path / "out.csv",
    }
    given = [places.get(one, one) for one in arguments]
    if "components" in message:
        given += ["--components", 200]
    assert message in refuse(capsys, *given)
    assert not list(tmp_path.iterdir())


def test_resumed_fit_is_the_same(folder, tmp_path, capsys):
    options = ("--components", 2, "--text-columns", "en:english,de:german", "--seed", 3)
    table, out = folder / "parallel.csv", tmp_path / "model"
    succeed(capsys, "fit", table, "--out", out, *options)
    before = Path(out / "model.safetensors").read_bytes()
    succeed(capsys, "fit", table, "--out", out, *options, "--force")
    assert Path(out / "model.safetensors").read_bytes() == before


def test_info_names_the_languages(folder, capsys):
    report = json.loads(succeed(capsys, "info", folder / "model", "--json"))
    assert report["languages"] == {"en": 6, "de": 6}


def test_explorer_shows_documents_of_one_language(folder):
    from docsigma.cli._common import DocumentOptions
    from docsigma.cli.explore import make_workspace
    from docsigma.cli.serve import load_engine

    engine = load_engine(folder / "model", None, None, language="de")
    reader = DocumentOptions(language="de", text_column="german")
    names = [str(folder / "parallel.csv")]
    workspace = make_workspace(engine, names, reader, n_topics=2)
    assert len(workspace) == 120
    assert set(engine.words.words) == {word for t in THINGS.values() for _, word in t}


def test_languages_have_tokenizers_of_their_own(folder, tmp_path, capsys):
    columns = "en:english,de:german:jieba"
    options = ("--components", 2, "--max-iter", 2, "--text-columns", columns)
    out = tmp_path / "model"
    succeed(capsys, "fit", folder / "parallel.csv", "--out", out, *options)
    words = json.loads((out / "vocabulary.json").read_text("utf-8"))
    assert words["de"]["tokenizer"] == "jieba"
    assert words["en"]["tokenizer"] is None
