"""Everything that people get wrong: one sentence, exit code 2, and nothing is lost.

Each case is a command line in a folder of good and bad files. `{x}` is a path in it.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import socket

import numpy as np
import pytest
import scipy.sparse as sp

from counting import TEXTS, write_documents
from running import refuse, run, succeed

pytest.importorskip("pyarrow")


def _write_good(root, capsys):
    write_documents(root / "good.jsonl", TEXTS)
    quick = ("--components", 2, "--max-iter", 2)
    succeed(capsys, "fit", root / "good.jsonl", "--out", root / "model", *quick)
    succeed(capsys, "count", root / "good.jsonl", "--out", root / "counts")
    args = ("classifier", "fit", root / "model", root / "good.jsonl")
    succeed(capsys, *args, "--out", root / "clf")


def _write_bad(root):
    files = {
        "semicolons.csv": "id;text\n1;sun and rain\n",
        "Text.csv": "id,Text\n1,sun and rain\n",
        "twice.csv": "text,text\nsun,rain\n",
        "ragged.csv": "id,text\n1,sun\n2,rain,hail\n",
        "quote.csv": 'text\n"sun\n',
        "headers.csv": "id,text\n",
        "later.csv": 'text,label\nsun,a\n"rain\nhail,b\n',
        "table.xlsx": "PK",
        "intents.csv": "text,intent\nsun and rain,weather\n",
        "empty.csv": "",
        "broken.jsonl": '{"text": "sun"}\n{"text": \n',
        "list.jsonl": "[1, 2]\n",
        "number.jsonl": '{"text": 7}\n',
        "missing.jsonl": '{"body": "sun"}\n',
        "blank.txt": "\n\n",
        "stops.txt": "a\n.\n!\n",
        "one.txt": "sun\n",
        "notes.docx": "sun",
        "bad.toml": "components = \n",
        "unknown.toml": "colour = 3\n",
        "wrong.toml": 'n_components = "many"\n',
        "other.json": "{}",
        "words.txt": "sun\nsun\n",
        "bare.jsonl": '{"text": "cats and dogs"}\n' * 3,
        "single.jsonl": '{"text": "cats dogs", "label": "a"}\n' * 3,
        "strange.jsonl": '{"text": "cats dogs", "label": "new"}\n' * 3,
    }
    for name, text in files.items():
        (root / name).write_text(text)
    (root / "wide.csv").write_bytes("text\nsun\n".encode("utf-16-le"))
    (root / "stopped.checkpoint.safetensors").write_bytes(b"precious")
    (root / "plots").mkdir()
    (root / "plots" / "confusion.png").write_bytes(b"precious")
    (root / "latin.txt").write_bytes("café\n".encode("latin-1"))
    (root / "cut.jsonl.gz").write_bytes(gzip.compress(b'{"text": "sun"}\n' * 99)[:-9])
    (root / "fake.parquet").write_bytes(b"PAR1 not really")
    (root / "nothing").mkdir()
    (root / "pictures").mkdir()
    (root / "pictures" / "a.png").write_bytes(b"\x89PNG\0\0")
    sp.save_npz(root / "negative.npz", sp.csr_matrix([[1.0, -2.0]]))
    sp.save_npz(root / "nan.npz", sp.csr_matrix([[1.0, np.nan]]))
    sp.save_npz(root / "narrow.npz", sp.csr_matrix(np.ones((3, 2))))
    np.savez(root / "arrays.npz", mean=np.ones(3))
    shutil.copytree(root / "model", root / "halved")
    (root / "halved" / "model.safetensors").unlink()
    shutil.copytree(root / "model", root / "edited")
    tensors = bytearray((root / "edited" / "model.safetensors").read_bytes())
    tensors[-1] ^= 1
    (root / "edited" / "model.safetensors").write_bytes(tensors)
    shutil.copytree(root / "model", root / "future")
    config = json.loads((root / "future" / "config.json").read_text())
    config["schema_version"] = 99
    (root / "future" / "config.json").write_text(json.dumps(config))
    (root / "thesis").mkdir()
    (root / "thesis" / "chapter.tex").write_text("precious")


# What is typed, and what the sentence must name.
CASES = {
    # Documents
    "no such file": ("fit none.csv --out new", "none.csv"),
    "no such corpus": ("fit newsgroup --out new", "20newsgroups"),
    "unknown suffix": ("fit notes.docx --out new", ".jsonl"),
    "semicolons": ("fit semicolons.csv --out new", "semicolons"),
    "another case": ("fit Text.csv --out new", "`Text`"),
    "no such column": ("fit good.jsonl --text-column body --out new", "`body`"),
    "no label column": (
        "fit Text.csv --text-column Text --label-column x --out new",
        "x",
    ),
    "a column twice": ("fit twice.csv --out new", "more than once"),
    "a ragged row": ("fit ragged.csv --out new", "line 3"),
    "an open quote": ("fit quote.csv --out new", "quote.csv, line"),
    "a quote that never closes": ("fit later.csv --out new", "line 3: a quote"),
    "a spreadsheet": ("fit table.xlsx --out new", "CSV UTF-8"),
    "a spreadsheet that is not there": ("fit none.xlsx --out new", "no such file"),
    "UTF-16 without a mark": ("fit wide.csv --out new", "utf-16-le"),
    "only a header": ("fit headers.csv --out new", "no documents"),
    "an empty file": ("fit empty.csv --out new", "no documents"),
    "broken JSON": ("fit broken.jsonl --out new", "line 2"),
    "a list as a row": ("fit list.jsonl --out new", "line 1"),
    "a number as a text": ("fit number.jsonl --out new", "must be a string"),
    "a row without text": ("fit missing.jsonl --out new", "`body`"),
    "blank lines": ("fit blank.txt --out new", "no documents"),
    "no words": ("fit stops.txt --out new", "word"),
    "one document": ("fit one.txt --out new", "min_df"),
    "another encoding": ("fit latin.txt --out new", "cp1252"),
    "no such encoding": ("fit latin.txt --encoding klingon --out new", "klingon"),
    "a wrong encoding": ("fit latin.txt --encoding ascii --out new", "ascii"),
    "a long delimiter": ("fit Text.csv --delimiter ;; --out new", "one character"),
    "a delimiter for text": ("fit one.txt --delimiter ; --out new", ".csv"),
    "a file cut off": ("fit cut.jsonl.gz --out new", "ends too early"),
    "no Parquet": ("fit fake.parquet --out new", "Parquet"),
    "an empty folder": ("fit nothing --out new", "without files"),
    "pictures only": ("fit pictures --out new", "a.png"),
    "negative counts": ("fit negative.npz --out new", "-2"),
    "counts not a number": ("fit nan.npz --out new", "nan.npz"),
    "arrays, no counts": ("fit arrays.npz --out new", "arrays.npz"),
    "words for texts": ("fit good.jsonl --vocabulary words.txt --out new", "texts"),
    # Settings
    "no components": ("fit good.jsonl --components 0 --out new", "1 or more, got 0"),
    "too many": ("fit good.jsonl --components 100000000 --out new", "GiB"),
    "words for a number": ("fit good.jsonl --components many --out new", "many"),
    "a negative penalty": ("fit good.jsonl --l1 -1 --out new", "l1"),
    "an unknown solver": ("fit good.jsonl --solver magic --out new", "fast"),
    "an unknown device": ("fit good.jsonl --device tpu9 --out new", "tpu9"),
    "an unknown tokenizer": ("fit good.jsonl --tokenizer cut --out new", "jieba"),
    "unknown stop words": ("fit good.jsonl --stop-words klingon --out new", "klingon"),
    "rare words only": ("fit good.jsonl --min-df 1000 --out new", "1000"),
    "no passes": ("fit good.jsonl --max-iter 0 --out new", "max_iter"),
    "no checkpoints": ("fit good.jsonl --checkpoint-every 0 --out new", "1 or more"),
    "nothing to resume": ("fit good.jsonl --resume --out new", "no checkpoint"),
    "an unknown option": ("fit good.jsonl --colour red --out new", "--colour"),
    "no output": ("fit good.jsonl", "--out"),
    "broken settings": ("fit good.jsonl --config bad.toml --out new", "bad.toml"),
    "unknown settings": ("fit good.jsonl --config unknown.toml --out new", "colour"),
    "settings of a kind": ("fit good.jsonl --config wrong.toml --out new", "'many'"),
    "not of tune": ("fit good.jsonl --config other.json --out new", "tune"),
    "no settings": ("fit good.jsonl --config none.toml --out new", "none.toml"),
    # Outputs
    "an input as output": ("embed model good.jsonl --out good.jsonl", "input"),
    "an output that exists": ("fit good.jsonl --out model", "--force"),
    "an older table": ("embed model good.jsonl --out bare.jsonl", "--force"),
    "someone's folder": ("fit good.jsonl --out thesis --force", "thesis"),
    "a file as folder": ("fit good.jsonl --out one.txt --force", "one.txt"),
    "a folder as file": ("embed model good.jsonl --out nothing.csv/x.csv", "no folder"),
    "no such folder": ("fit good.jsonl --out none/new", "none"),
    "an unknown table": ("embed model good.jsonl --out new.xlsx", ".parquet"),
    "a name and a journal": ("tune good.jsonl --out new.journal", ".json"),
    "a checkpoint of a fit": ("fit good.jsonl --out stopped", "--resume"),
    "plots that exist": (
        "classifier evaluate clf good.jsonl --plots plots",
        "confusion.png",
    ),
    "an index to add to": ("add model good.jsonl", "index"),
    # Models
    "no such model": ("embed none good.jsonl --out new.csv", "none"),
    "documents as model": ("embed thesis good.jsonl --out new.csv", "config.json"),
    "half a model": ("embed halved good.jsonl --out new.csv", "model.safetensors"),
    "a changed model": ("embed edited good.jsonl --out new.csv", "checksum"),
    "a model to come": ("embed future good.jsonl --out new.csv", "99"),
    "a classifier as model": ("embed clf good.jsonl --out new.csv", "classifier"),
    "a model as classifier": (
        "classifier predict model good.jsonl --out new.csv",
        "BayesianSMM",
    ),
    "counts as model": ("topics counts", "counts"),
    "a file to describe": ("info good.jsonl", "is a file, and `info`"),
    "p-values of counts": (
        "embed model counts --calibration good.jsonl --out new.csv",
        "DOCS has counts",
    ),
    "p-values by counts": (
        "embed model good.jsonl --calibration counts --out new.csv",
        "--calibration has counts",
    ),
    "other columns": ("embed model narrow.npz --out new.csv", "2 columns"),
    "no clusters": ("topics model good.jsonl --clusters 0", "0"),
    "too many clusters": ("topics model good.jsonl --clusters 99", "99"),
    "no words shown": ("topics model --words 0", "--words"),
    "an unknown estimator": ("perplexity model good.jsonl --estimator best", "best"),
    "too few to test": ("calibration model good.jsonl", "30 documents"),
    "no image": ("calibration model good.jsonl --plot new.txt", ".png"),
    "an image in no folder": ("calibration model good.jsonl --plot no/a.png", "no"),
    "a corpus as model": ("calibration thesis good.jsonl", "config.json"),
    "no draws": ("perplexity model good.jsonl --draws 0", "0"),
    # Labels
    "no labels": ("classifier fit model bare.jsonl --out new", "no labels"),
    "one class": ("classifier fit model single.jsonl --out new", "class"),
    "an unknown kind": ("classifier fit model good.jsonl --kind svm --out new", "svm"),
    "all for calibration": (
        "classifier fit model good.jsonl --calibration 1 --out new",
        "a share between 0 and 1, got 1",
    ),
    "too little for calibration": (
        "classifier fit model good.jsonl --calibration 0.001 --out new",
        "holds out none",
    ),
    "counts to hold out": (
        "classifier fit model counts --calibration 0.2 --out new",
        "needs texts",
    ),
    "no coverage": ("classifier evaluate clf good.jsonl --coverage 2", "--coverage"),
    "unseen classes": ("classifier evaluate clf strange.jsonl", "labels are new"),
    "no column of labels": ("classifier fit model intents.csv --out new", "intent"),
    "nothing to explain": ("classifier explain clf counts", "only texts"),
    "no documents to explain": (
        "classifier explain clf good.jsonl --documents 0",
        "--documents",
    ),
    # Searches
    "no trials": ("tune good.jsonl --out new.json --trials 0", "--trials"),
    "an unknown aim": ("tune good.jsonl --out new.json --objective joy", "joy"),
    "a range reversed": ("tune good.jsonl --out new.json --l1 3,1", "--l1"),
    "no command": ("fitt good.jsonl", "fitt"),
}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    root = tmp_path_factory.mktemp("wrong")
    capsys = _Silent()
    _write_good(root, capsys)
    _write_bad(root)
    return root


class _Silent:
    """What `run` asks of capsys, for a fixture of the module."""

    def readouterr(self):
        return type("Shown", (), {"out": "", "err": ""})


def contents(root):
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in root.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("case", CASES)
def test_a_wrong_input_gets_one_sentence_and_costs_nothing(
    prepared, case, capsys, monkeypatch
):
    command, named = CASES[case]
    monkeypatch.chdir(prepared)
    before = contents(prepared)
    sentence = refuse(capsys, *command.split())
    assert named in sentence
    assert len(sentence) < 400
    assert contents(prepared) == before


def test_good_input_is_not_refused(prepared, capsys, tmp_path):
    out = tmp_path / "e.csv"
    args = ("embed", prepared / "model", prepared / "good.jsonl", "--out", out)
    assert run(capsys, *args)[0] == 0


def test_there_are_enough_cases():
    assert len(CASES) >= 40


def test_a_port_that_is_taken_is_one_sentence(capsys, tmp_path):
    pytest.importorskip("fastapi")
    write_documents(tmp_path / "good.jsonl", TEXTS)
    model, documents = tmp_path / "model", tmp_path / "good.jsonl"
    quick = ("--components", 2, "--max-iter", 2)
    succeed(capsys, "fit", documents, "--out", model, *quick)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        for command in (["serve", model], ["explore", model, documents]):
            said = refuse(capsys, *command, "--port", port)
            assert f"cannot listen on --port {port} of 127.0.0.1" in said
