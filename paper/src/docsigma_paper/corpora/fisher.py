"""Fisher English, phase 1: sides of telephone calls, labelled with their topic.

The corpus is the LDC's and needs its licence: the transcripts are LDC2004T19, the
audio, which nothing here reads, is LDC2004S13.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from docsigma.corpora import NamedCorpus
from docsigma.corpora._data import data_files, require_files
from docsigma.corpora._rows import named, table_rows
from docsigma.corpora._streams import existing_file, numbered_lines
from docsigma.corpora.documents import Corpus, Documents
from docsigma.exceptions import InputError
from docsigma_paper.corpora.switchboard import word_window

if TYPE_CHECKING:
    import os


DESCRIPTION = "Sides of telephone calls by topic (40), Fisher English phase 1"
ASR_DESCRIPTION = "The same sides, as a recogniser of yours transcribed them"
HOW = (
    "licensed, LDC2004T19: pass `root`, its folder, and `split`, a list of parts, or "
    "set DOCSIGMA_DATA to a folder with both as fisher/ and fisher/split.txt"
)
ASR_HOW = "as `fisher`, with fisher/asr or fisher/asr.txt below DOCSIGMA_DATA"
# Below DOCSIGMA_DATA: the corpus, the list, and a recogniser's transcripts.
FOLDER, FILES = "fisher", ("split.txt",)
ASR_NAMES = ("asr", "asr.txt")

TREE = "fe_03_p1_tran"
TABLE = Path("doc", "fe_03_p1_calldata.tbl")
TRANSCRIPTS = Path("data", "trans")
PARTS = ("train", "test", "asr")

_NAME = re.compile(r"(fe_03_\d{5})(?:-([AB]))?", re.ASCII)
_UTTERANCE_NAME = re.compile(r"(fe_03_\d{5}-[AB])(?:-\S+)?", re.ASCII)
_UTTERANCE = re.compile(r"[\d.]+\s+[\d.]+\s+([AB]):(.*)", re.ASCII)
_MARKER = re.compile(r"\[[^\[\]]*\]|<[^<>\s]*>")
# A letter alone, and then a letter alone or an apostrophe: part of an acronym.
_INITIAL = re.compile(r"(?<![^\W_])([^\W_])[._]+(?=[^\W_](?![^\W_])|')")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")


@dataclass(frozen=True)
class _Listed:
    """Where the split list has a side, and in which part."""

    part: str
    where: str
    line: int


def load_fisher(
    root: str | os.PathLike[str] | None = None,
    split: str | os.PathLike[str] | None = None,
    *,
    transcripts: str | os.PathLike[str] = "manual",
    words: tuple[int, int] | None = None,
) -> Corpus:
    r"""Load the sides of the calls that a list names, one document per side.

    The id of a side is such as ``fe_03_00001-A``, its label the call's TOPICID, such
    as ``ENG01``. Documents are sorted by id, whatever the order of the list.

    Parameters
    ----------
    root : path, optional
        Folder of the transcripts (LDC2004T19): ``fe_03_p1_tran``, which has ``doc``
        and ``data``, or a folder at most two levels above it. By default
        ``fisher`` in the folder that DOCSIGMA_DATA names.
    split : path, optional
        Text file with ``id part`` on each line: the id of a call (both sides) or of
        a side, and one of ``train``, ``test`` and ``asr``. What is in ``asr``, for
        training a recogniser, and what is not in the list is left out. Empty lines
        and those that begin with # are passed over. By default ``split.txt`` in
        that ``fisher``.
    transcripts : "manual" or path
        The LDC's transcripts, or a recogniser's: a folder with one file per side,
        ``fe_03_00001-A.txt``, or one file as Kaldi writes it, each line the id of a
        side or of an utterance of it (``fe_03_00001-A-000376-000554``) and then
        words; utterances are put together in the order of the lines.
    words : tuple of two int, optional
        Keep only this window of each side's words, see
        `docsigma_paper.corpora.switchboard.word_window`.

    Returns
    -------
    Corpus
        Texts as `clean_transcript` leaves them. A side without a word stays, as an
        empty text.

    Raises
    ------
    InputError
        If a file is missing or has a line that cannot be read; one sentence.

    Examples
    --------
    >>> import tempfile
    >>> root = Path(tempfile.mkdtemp())
    >>> (root / "doc").mkdir()
    >>> table = "CALL_ID,TOPICID\n00001,ENG01\n00002,ENG07\n"
    >>> _ = (root / "doc" / "fe_03_p1_calldata.tbl").write_text(table)
    >>> folder = root / "data" / "trans" / "000"
    >>> folder.mkdir(parents=True)
    >>> for call in ("fe_03_00001", "fe_03_00002"):
    ...     lines = "# made up\n0.5 1.2 A: hello [noise]\n1.3 1.9 B: ((hi)) the-\n"
    ...     _ = (folder / f"{call}.txt").write_text(lines)
    >>> split = root / "split.txt"
    >>> _ = split.write_text("fe_03_00001 train\nfe_03_00002-B test\n")
    >>> corpus = load_fisher(root, split)
    >>> corpus.train.ids, corpus.train.texts
    (['fe_03_00001-A', 'fe_03_00001-B'], ['hello', 'hi the'])
    >>> corpus.test.labels
    ['ENG07']
    """
    if root is None or split is None:
        (there,) = require_files(FOLDER, FILES, name="fisher")
        root = there.parent if root is None else root
        split = there if split is None else split
    tree = _find_tree(Path(root))
    listed = _read_split(Path(split))
    topics = _find_topics(tree / TABLE, listed)
    if transcripts == "manual":
        texts = _manual_texts(tree / TRANSCRIPTS, listed)
    else:
        texts = _recognised_texts(Path(transcripts), listed)

    def documents(part: str) -> Documents:
        ids = [side for side, one in listed.items() if one.part == part]
        found = Documents(
            ids=ids,
            texts=[texts[side] for side in ids],
            labels=[topics[side] for side in ids],
            source=f"{split}, {part}",
        )
        return word_window(found, words)

    named = ("fisher", DESCRIPTION)
    if transcripts != "manual":
        named = ("fisher-asr", ASR_DESCRIPTION)
    return Corpus(named[0], documents("train"), documents("test"), named[1])


def load_fisher_asr(
    root: str | os.PathLike[str] | None = None,
    split: str | os.PathLike[str] | None = None,
    *,
    transcripts: str | os.PathLike[str] | None = None,
    words: tuple[int, int] | None = None,
) -> Corpus:
    """Load the same sides as a recogniser heard them; see `load_fisher`.

    Parameters
    ----------
    root, split, words
        As for `load_fisher`.
    transcripts : path, optional
        The recogniser's transcripts, by default ``asr`` (a folder) or ``asr.txt`` (a
        file) in the ``fisher`` of DOCSIGMA_DATA.

    Returns
    -------
    Corpus
    """
    if transcripts is None:
        (there,) = require_files(FOLDER, FILES, name="fisher-asr")
        transcripts = _recogniser_output(there.parent)
        if transcripts is None:
            raise InputError(
                f"the corpus `fisher-asr` is not here: {there.parent} lacks "
                f"{' and '.join(ASR_NAMES)}"
            )
    return load_fisher(root, split, transcripts=transcripts, words=words)


def _recogniser_output(folder: Path) -> Path | None:
    """Return a recogniser's transcripts in a folder, if there are any."""
    paths = [folder / name for name in ASR_NAMES]
    return next((path for path in paths if path.exists()), None)


def _status() -> tuple[bool, str]:
    there = data_files(FOLDER, FILES) is not None
    return there, "at hand" if there else HOW


def _asr_status() -> tuple[bool, str]:
    files = data_files(FOLDER, FILES)
    there = bool(files and _recogniser_output(files[0].parent))
    return there, "at hand" if there else ASR_HOW


def clean_transcript(text: str) -> str:
    """Return the words of a transcript, in lower case, with one space between.

    Markers in brackets such as [laughter] and <unk> are left out. Punctuation and
    special characters go, among them the double parentheses around words that the
    transcriber was not sure of and the hyphen at the end of a word broken off; the
    words themselves stay. An apostrophe inside a word stays, and letters of an
    acronym are joined. No stop word is removed.

    Examples
    --------
    >>> clean_transcript("[noise] Uh-huh, I don't ((know)) wha- [laughter]")
    "uh huh i don't know wha"
    >>> clean_transcript("(( )) on t._v. in the u.s.")
    'on tv in the us'
    """
    text = _MARKER.sub(
        " ", text.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    )
    return " ".join(_WORD.findall(_INITIAL.sub(r"\1", text)))


def _find_tree(root: Path) -> Path:
    """Return the folder that holds doc and data."""
    if not root.is_dir():
        raise InputError(f"`root` must be a folder, got {root}")
    folders = [root]
    for pattern in (f"{TREE}*", f"*/{TREE}*"):
        folders += sorted(root.glob(pattern))
    for folder in folders:
        if (folder / TABLE).is_file():
            return folder
    raise InputError(
        f"{root} is not Fisher English, phase 1: neither it nor a folder "
        f"{TREE}* in it has {TABLE.as_posix()}"
    )


def _read_split(path: Path) -> dict[str, _Listed]:
    """Return the sides to train and to test on, sorted."""
    listed: dict[str, _Listed] = {}
    for number, line in numbered_lines(path):
        fields = line.split()
        if not fields or fields[0].startswith("#"):
            continue
        where = f"{path}, line {number}"
        if len(fields) != 2:
            raise InputError(
                f"{where}: must be 2 words, id and part, got {len(fields)}"
            )
        name, part = fields
        found = _NAME.fullmatch(name)
        if found is None:
            raise InputError(
                f"{where}: the id must be a call such as fe_03_00001 or a side such "
                f"as fe_03_00001-A, got {name!r:.80}"
            )
        if part not in PARTS:
            raise InputError(
                f"{where}: the part of {name} must be one of {', '.join(PARTS)}, "
                f"got {part!r:.80}"
            )
        call, letter = found.groups()
        for side in [f"{call}-{one}" for one in (letter or "AB")]:
            before = listed.get(side)
            if before is not None:
                raise InputError(
                    f"{where}: {side} comes again, in {part}; line {before.line} "
                    f"has it in {before.part}"
                )
            listed[side] = _Listed(part, where, number)
    sizes = [sum(one.part == part for one in listed.values()) for part in PARTS[:2]]
    if not all(sizes):
        raise InputError(
            f"{path} must name documents to train on and to test on, got "
            f"{sizes[0]} and {sizes[1]}"
        )
    return {side: one for side, one in sorted(listed.items()) if one.part != "asr"}


def _find_topics(table: Path, listed: dict[str, _Listed]) -> dict[str, str]:
    """Return the topic of each side."""
    rows: dict[str, tuple[int, str]] = {}
    for number, _, row in table_rows(table, delimiter=",", wanted={"TOPICID": "topic"}):
        if "CALL_ID" not in row:
            raise InputError(f"{table}: no column `CALL_ID`, found {named(row)}")
        # A spreadsheet reads 00001 as a number.
        call = f"fe_03_{str(row['CALL_ID']).strip().zfill(5)}"
        if call in rows:
            raise InputError(
                f"{table}, line {number}: the call {call} comes again, line "
                f"{rows[call][0]} has it"
            )
        rows[call] = number, str(row["TOPICID"]).strip()
    topics = {}
    for side, one in listed.items():
        call = _call(side)
        if call not in rows:
            raise InputError(f"{one.where}: the call {call} is not in {table}")
        number, topic = rows[call]
        if not topic:
            raise InputError(
                f"{one.where}: {side} is in {one.part}, but {table}, line {number}, "
                "has no TOPICID for its call"
            )
        topics[side] = topic
    return topics


def _manual_texts(folder: Path, listed: dict[str, _Listed]) -> dict[str, str]:
    """Return the text of each side, from the files of the calls."""
    texts: dict[str, str] = {}
    for side, one in listed.items():
        if side in texts:
            continue
        call = _call(side)
        file = folder / _shelf(call) / f"{call}.txt"
        if not file.is_file():
            raise InputError(
                f"{one.where}: {side} has no transcript, there is no {file}"
            )
        for letter, text in _read_call(file).items():
            texts[f"{call}-{letter}"] = text
    return texts


def _read_call(file: Path) -> dict[str, str]:
    """Return the transcripts of the sides A and B."""
    said: dict[str, list[str]] = {"A": [], "B": []}
    for number, line in numbered_lines(file):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        found = _UTTERANCE.fullmatch(line)
        if found is None:
            raise InputError(
                f"{file}, line {number}: must be `start end A: words` or "
                f"`start end B: words`, got {line!r:.80}"
            )
        said[found[1]].append(clean_transcript(found[2]))
    return {letter: _joined(texts) for letter, texts in said.items()}


def _recognised_texts(path: Path, listed: dict[str, _Listed]) -> dict[str, str]:
    """Return the text of each side, from a folder or a file of a recogniser."""
    if not path.is_dir():
        return _kaldi_texts(existing_file(path), listed)
    texts = {}
    for side, one in listed.items():
        names = (Path(f"{side}.txt"), Path(_shelf(side), f"{side}.txt"))
        file = next((path / name for name in names if (path / name).is_file()), None)
        if file is None:
            raise InputError(
                f"{one.where}: {side} has no transcript, there is no {path / names[0]}"
            )
        lines = [clean_transcript(line) for _, line in numbered_lines(file)]
        texts[side] = _joined(lines)
    return texts


def _kaldi_texts(file: Path, listed: dict[str, _Listed]) -> dict[str, str]:
    """Return the text of each side, from lines of id and words."""
    seen: dict[str, int] = {}
    said: dict[str, list[str]] = {}
    for number, line in numbered_lines(file):
        if not line.strip():
            continue
        name, *words = line.split()
        found = _UTTERANCE_NAME.fullmatch(name)
        if found is None:
            raise InputError(
                f"{file}, line {number}: must begin with a side such as "
                f"fe_03_00001-A, got {name!r:.80}"
            )
        if name in seen:
            raise InputError(
                f"{file}, line {number}: {name} comes again, line {seen[name]} has it"
            )
        seen[name] = number
        if found[1] in listed:
            said.setdefault(found[1], []).append(clean_transcript(" ".join(words)))
    for side, one in listed.items():
        if side not in said:
            raise InputError(
                f"{one.where}: {side} has no transcript, {file} has no line for it"
            )
    return {side: _joined(texts) for side, texts in said.items()}


def _call(side: str) -> str:
    return side[: len("fe_03_00001")]


def _shelf(name: str) -> str:
    """Return the subfolder of a call: the first three of its five digits."""
    return name[len("fe_03_") :][:3]


def _joined(texts: list[str]) -> str:
    return " ".join(text for text in texts if text)


FISHER = NamedCorpus(load_fisher, DESCRIPTION, _status)
FISHER_ASR = NamedCorpus(load_fisher_asr, ASR_DESCRIPTION, _asr_status)
