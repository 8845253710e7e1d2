from __future__ import annotations

import gzip

import pytest

from docsigma.corpora import load_corpus, registry
from docsigma.exceptions import InputError
from docsigma_paper.corpora.fisher import clean_transcript, load_fisher

COLUMNS = (
    "CALL_ID,DATE_TIME,TOPICID,SIG_GRADE,CNV_GRADE,APIN,ASX.DL,APHNUM,APHSET,APHTYP,"
    "BPIN,BSX.DL,BPHNUM,BPHSET,BPHTYP"
)
TOPICS = {"00001": "ENG01", "00002": "ENG02", "00133": "ENG01", "00134": ""}
SPLIT = """\
# made up
fe_03_00133 test

fe_03_00002-B asr
fe_03_00001 train
fe_03_00002-A\ttrain
"""


def table(topics):
    rows = [
        f"{call},20021120_22:13:22,{topic},4,3,1,m.a,p1,4,3,2,f.o,p2,2,1"
        for call, topic in topics.items()
    ]
    return "\n".join([COLUMNS, *rows, ""])


def call(name, *lines):
    return "\n".join([f"# {name}.sph", "# Transcribed by nobody", "", *lines, ""])


CALLS = {
    "000/fe_03_00001": (
        "0.51 2.08 A: hello [laughter] i'm ((not sure)) about t._v.",
        "",
        "2.10 2.55 B: uh-huh",
        "1.90 2.30 A: (( )) the the wha- [noise]",
        "600 601.5 B: [noise]",
    ),
    "000/fe_03_00002": ("0.5 1.0 A: sports", "1.0 1.5 B: news"),
    "001/fe_03_00133": ("0.5 1.0 B: Basketball, football!",),
}
TEXTS = {
    "fe_03_00001-A": "hello i'm not sure about tv the the wha",
    "fe_03_00001-B": "uh huh",
    "fe_03_00002-A": "sports",
    "fe_03_00133-A": "",
    "fe_03_00133-B": "basketball football",
}


@pytest.fixture
def write(tmp_path):
    """Write a text file under the test's folder."""

    def write(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        raw = content if isinstance(content, bytes) else content.encode()
        path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
        return path

    return write


@pytest.fixture
def tree(write, tmp_path):
    """Write the corpus and give its folder."""
    write("ldc/fe_03_p1_tran/doc/fe_03_p1_calldata.tbl", table(TOPICS))
    for name, lines in CALLS.items():
        text = call(name.split("/")[1], *lines)
        write(f"ldc/fe_03_p1_tran/data/trans/{name}.txt", text)
    return tmp_path / "ldc" / "fe_03_p1_tran"


@pytest.fixture
def split(write):
    return write("split.txt", SPLIT)


def refusal(*arguments, **options) -> str:
    with pytest.raises(InputError) as caught:
        load_fisher(*arguments, **options)
    sentence = str(caught.value)
    assert "\n" not in sentence
    return sentence


def test_each_side_of_a_listed_call_is_a_document(tree, split):
    corpus = load_fisher(tree, split)
    assert corpus.name == "fisher"
    assert corpus.train.ids == ["fe_03_00001-A", "fe_03_00001-B", "fe_03_00002-A"]
    assert corpus.train.labels == ["ENG01", "ENG01", "ENG02"]
    assert corpus.test.ids == ["fe_03_00133-A", "fe_03_00133-B"]
    assert corpus.test.labels == ["ENG01", "ENG01"]
    for half in (corpus.train, corpus.test):
        assert half.texts == [TEXTS[side] for side in half.ids]


def test_the_order_of_the_list_does_not_matter(tree, split, write):
    backward = write("backward.txt", "\n".join(reversed(SPLIT.splitlines())))
    one, other = load_fisher(tree, split), load_fisher(tree, backward)
    assert one.train.ids == other.train.ids
    assert one.test.texts == other.test.texts


@pytest.mark.parametrize("above", [0, 1, 2])
def test_the_tree_is_found_in_the_folders_above(tree, split, above):
    root = [tree, *tree.parents][above]
    assert len(load_fisher(str(root), str(split)).train) == 3


def test_the_tree_may_have_a_longer_name(tree, split):
    renamed = tree.rename(tree.with_name("fe_03_p1_tran_LDC2004T19"))
    assert len(load_fisher(renamed.parent, split).train) == 3


def test_call_numbers_may_have_lost_their_zeros(tree, split, write):
    short = {number.lstrip("0"): topic for number, topic in TOPICS.items()}
    write("ldc/fe_03_p1_tran/doc/fe_03_p1_calldata.tbl", table(short))
    assert load_fisher(tree, split).train.labels == ["ENG01", "ENG01", "ENG02"]


def test_a_window_keeps_every_side(tree, split):
    corpus = load_fisher(tree, split, words=(2, 3))
    assert corpus.train.texts == ["i'm not", "huh", ""]
    assert corpus.test.texts == ["", "football"]
    assert "`words` must have 1 <= first" in refusal(tree, split, words=(0, 3))


@pytest.mark.parametrize("shelf", ["", "000/"])
def test_recognised_sides_come_from_a_folder(tree, split, write, tmp_path, shelf):
    for side in TEXTS:
        name = side if not shelf else f"{side[6:9]}/{side}"
        write(f"asr/{name}.txt", f"{side[-1]} SIDE\n<unk> of [noise]\n\n{side[6:11]}\n")
    corpus = load_fisher(tree, split, transcripts=tmp_path / "asr")
    assert corpus.train.texts[:2] == ["a side of 00001", "b side of 00001"]
    assert corpus.test.labels == ["ENG01", "ENG01"]


def test_recognised_sides_come_from_one_file(tree, split, write):
    lines = [f"{side} so {side[-1]}\t[laughter] it's" for side in TEXTS]
    lines += ["fe_03_09999-A not listed", "", "fe_03_00002-B"]
    for name in ("text", "text.gz"):
        file = write(name, "\n".join(lines))
        corpus = load_fisher(tree, split, transcripts=str(file))
        assert corpus.train.texts == ["so a it's", "so b it's", "so a it's"]
    lines[0] = "fe_03_00001-A"
    corpus = load_fisher(tree, split, transcripts=write("text", "\n".join(lines)))
    assert corpus.train.texts[0] == ""


def test_utterances_of_a_side_are_put_together(tree, split, write):
    lines = [f"{side}-000100-000200 one" for side in TEXTS]
    lines += [f"{side}-000300-000400 two" for side in TEXTS]
    corpus = load_fisher(tree, split, transcripts=write("text", "\n".join(lines)))
    assert corpus.train.texts == ["one two"] * 3


def test_recognised_sides_need_no_manual_transcripts(tree, split, write):
    text = write("text", "\n".join(f"{side} word" for side in TEXTS))
    for file in (tree / "data").rglob("*.txt"):
        file.unlink()
    assert load_fisher(tree, split, transcripts=text).test.texts == ["word", "word"]


def test_it_goes_by_its_name(tree, split):
    corpus = load_corpus("fisher", root=tree, split=split)
    assert len(corpus.train) == 3
    with pytest.raises(InputError, match=r"no option `part`.*`root`, `split`"):
        load_corpus("fisher", root=tree, split=split, part="train")


def test_it_is_found_in_the_data_folder(tree, split, write, monkeypatch, tmp_path):
    folder = tmp_path / "data" / "fisher"
    folder.mkdir(parents=True)
    (folder / "fe_03_p1_tran").symlink_to(tree)
    monkeypatch.setenv("DOCSIGMA_DATA", str(folder.parent))
    at_hand = {info.name for info in registry.available_corpora() if info.available}
    assert not at_hand & {"fisher", "fisher-asr"}
    split.rename(folder / "split.txt")
    assert load_corpus("fisher").test.ids == ["fe_03_00133-A", "fe_03_00133-B"]
    with pytest.raises(InputError, match="fisher lacks asr and asr.txt"):
        load_corpus("fisher-asr")
    sides = ["00001-A", "00001-B", "00002-A", "00133-A", "00133-B"]
    lines = "".join(f"fe_03_{side} heard {side[-1]}\n" for side in sides)
    write("data/fisher/asr.txt", lines)
    heard = load_corpus("fisher-asr")
    assert heard.test.texts == ["heard a", "heard b"]
    assert (heard.name, "recogniser" in heard.description) == ("fisher-asr", True)
    at_hand = {info.name for info in registry.available_corpora() if info.available}
    assert at_hand >= {"fisher", "fisher-asr"}


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("Hello, WORLD!", "hello world"),
        ("[laughter] well[noise]yes [[skip]] no", "well yes no"),
        ("<unk> so <eps>", "so"),
        ("((i think)) (( )) so", "i think so"),
        ("an- so th-", "an so th"),
        ("twenty-one uh-huh", "twenty one uh huh"),
        ("don't 'cause the parents' o'clock", "don't cause the parents o'clock"),
        ("it\N{RIGHT SINGLE QUOTATION MARK}s", "it's"),
        ("t._v. c.n.n.'s u.s.a. a.m.", "tv cnn's usa am"),
        ("it is i. we", "it is i we"),
        ("okay.so a.then", "okay so a then"),
        ("caf\N{LATIN SMALL LETTER E WITH ACUTE} 99 %", "café 99"),
        ("a < b and b > c [ and ]", "a b and b c"),
        ("the and of", "the and of"),
        ("", ""),
    ],
)
def test_a_transcript_becomes_plain_words(raw, clean):
    assert clean_transcript(raw) == clean
    assert clean_transcript(clean) == clean


@pytest.mark.parametrize(
    ("content", "fact"),
    [
        ("fe_03_00001\n", "line 1: must be 2 words, id and part, got 1"),
        ("\nfe_03_00001 train A\n", "line 2: must be 2 words, id and part, got 3"),
        ("00001 train\n", "line 1: the id must be a call such as .* got '00001'"),
        ("fe_03_00001-C train\n", "or a side such as .* got 'fe_03_00001-C'"),
        (
            "fe_03_00001 dev\n",
            "part of fe_03_00001 must be one of train, test, asr, got 'dev'",
        ),
        (
            "fe_03_00001 train\nfe_03_00001-B test\n",
            "line 2: fe_03_00001-B comes again, in test; line 1 has it in train",
        ),
        (
            "fe_03_00001-A asr\nfe_03_00001 test\n",
            "line 2: fe_03_00001-A comes again, in test; line 1 has it in asr",
        ),
        ("fe_03_00001 train\n", "to train on and to test on, got 2 and 0"),
        ("fe_03_00001-A test\n", "to train on and to test on, got 0 and 1"),
        ("# nothing\n", "to train on and to test on, got 0 and 0"),
        (
            "fe_03_00001 train\nfe_03_04711-A test\n",
            "line 2: the call fe_03_04711 is not in .*calldata.tbl",
        ),
        (
            "fe_03_00001 train\nfe_03_00134-B test\n",
            "line 2: fe_03_00134-B is in test, but .*calldata.tbl, line 5, has no",
        ),
        (b"fe_03_00001 train\n\xff\n", "line 2, byte 1: not UTF-8"),
    ],
)
def test_a_bad_list_is_refused(tree, write, content, fact):
    path = write("split.txt", content)
    with pytest.raises(InputError, match=fact):
        load_fisher(tree, path)
    assert str(path) in refusal(tree, path)


def test_calls_of_the_asr_part_need_no_files(tree, split, write):
    path = write("split.txt", SPLIT + "fe_03_04711 asr\nfe_03_00134 asr\n")
    assert len(load_fisher(tree, path).train) == 3


def test_a_missing_transcript_is_named_with_its_line(tree, split):
    file = tree / "data" / "trans" / "001" / "fe_03_00133.txt"
    file.unlink()
    sentence = refusal(tree, split)
    assert f"{split}, line 2: fe_03_00133-A has no transcript" in sentence
    assert str(file) in sentence


def test_a_missing_recognised_side_is_named_with_its_line(tree, split, write):
    text = write("text", "\n".join(f"{side} word" for side in list(TEXTS)[:-1]))
    fact = f"{split}, line 2: fe_03_00133-B has no transcript, {text} has no line"
    assert fact in refusal(tree, split, transcripts=text)
    folder = write("asr/fe_03_00001-A.txt", "word").parent
    sentence = refusal(tree, split, transcripts=folder)
    assert f"{split}, line 5: fe_03_00001-B has no transcript" in sentence
    assert str(folder / "fe_03_00001-B.txt") in sentence


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("0.5 A: words", "'0.5 A: words'"),
        ("0.5 1.0 C: words", "'0.5 1.0 C: words'"),
        ("words alone", "'words alone'"),
        ("0.5 one A: words", "'0.5 one A: words'"),
    ],
)
def test_a_bad_line_of_a_transcript_is_named(tree, split, write, line, shown):
    name = "ldc/fe_03_p1_tran/data/trans/000/fe_03_00002.txt"
    file = write(name, call("fe_03_00002", "0.1 0.2 A: fine", line))
    sentence = refusal(tree, split)
    assert f"{file}, line 5: must be `start end A: words`" in sentence
    assert sentence.endswith(f"got {shown}")


@pytest.mark.parametrize(
    ("content", "fact"),
    [
        ("fe_03_00001-A so\nsw02001-A so\n", "line 2: must begin .* got 'sw02001-A'"),
        ("fe_03_00001 so\n", "line 1: must begin with a side .* got 'fe_03_00001'"),
        (
            "fe_03_00001-A so\n\nfe_03_00001-A yes\n",
            "line 3: fe_03_00001-A comes again, line 1 has it",
        ),
    ],
)
def test_a_bad_file_of_recognised_sides_is_refused(tree, split, write, content, fact):
    file = write("text", content)
    with pytest.raises(InputError, match=fact):
        load_fisher(tree, split, transcripts=file)


@pytest.mark.parametrize(
    ("content", "fact"),
    [
        ("CALL_ID,DATE_TIME\n00001,x\n", "line 1: no column `TOPICID`"),
        ("CALL,TOPICID\n00001,ENG01\n", "no column `CALL_ID`, found `CALL`, `TOPICID`"),
        ("CALL_ID,TOPICID\n00001\n", "line 2: 1 fields, but the header names 2"),
        (
            "CALL_ID,TOPICID\n00001,ENG01\n1,ENG02\n",
            "line 3: the call fe_03_00001 comes again, line 2 has it",
        ),
    ],
)
def test_a_bad_table_of_calls_is_refused(tree, split, write, content, fact):
    path = write("ldc/fe_03_p1_tran/doc/fe_03_p1_calldata.tbl", content)
    with pytest.raises(InputError, match=fact):
        load_fisher(tree, split)
    assert str(path) in refusal(tree, split)


def test_a_folder_without_the_corpus_is_refused(tree, split, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    assert f"{empty} is not Fisher English, phase 1" in refusal(empty, split)
    nowhere = tmp_path / "nowhere"
    assert f"`root` must be a folder, got {nowhere}" in refusal(nowhere, split)
    assert f"{nowhere}: there is no such file" in refusal(tree, nowhere)
    sentence = refusal(tree, split, transcripts=nowhere)
    assert f"{nowhere}: there is no such file" in sentence
