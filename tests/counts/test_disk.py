"""Counts on disk: what comes back, what is left after a failure, what it costs."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from docsigma import InputError, Vocabulary
from docsigma.counts import CountsWriter, DiskCounts, disk, writer
from storing import random_counts, write

CSR = ("data", "indices", "indptr")


def assert_same(got, expected):
    assert got.format == "csr"
    assert got.dtype == np.float32
    assert got.shape == expected.shape
    got.check_format(full_check=True)
    assert got.has_sorted_indices
    np.testing.assert_array_equal(got.toarray(), expected.toarray())


@settings(max_examples=60, deadline=None)
@given(data=st.data(), seed=st.integers(0, 2**16))
def test_any_rows_come_back_as_scipy_has_them(data, seed):
    n = data.draw(st.integers(1, 40))
    counts = random_counts(n, data.draw(st.integers(1, 12)), seed)
    with tempfile.TemporaryDirectory() as root:
        block = data.draw(st.integers(1, 45))
        stored = write(Path(root) / "counts", counts, block=block)
        bound = st.none() | st.integers(-n - 2, n + 2)
        step = data.draw(st.sampled_from([None, 1, 2, -1]))
        rows = slice(data.draw(bound), data.draw(bound), step)
        assert_same(stored[rows], counts[rows])
        rows = np.array(data.draw(st.lists(st.integers(-n, n - 1))), dtype=int)
        assert_same(stored[rows], counts[rows])
        mask = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
        assert_same(stored[mask], counts[np.flatnonzero(mask)])
        blocks = list(stored.iter_blocks(data.draw(st.integers(1, 45))))
        assert_same(sp.vstack(blocks, format="csr"), counts)


@pytest.mark.parametrize("size", [1, 3, 10])
def test_rows_are_read_in_pieces(tmp_path, monkeypatch, size):
    monkeypatch.setattr(disk, "BLOCK", size)
    monkeypatch.setattr(disk, "SCATTERED", size)
    counts = random_counts(30, 5)
    stored = write(tmp_path / "counts", counts)
    for rows in (slice(2, 29), [0, 1, 2, 9, 9, 10, 11, 20, 29], [7, 3, 4, 5, 6]):
        assert_same(stored[rows], counts[rows])


def test_shape_totals_and_words_are_known_without_reading_counts(tmp_path):
    counts = random_counts(23, 7)
    words = [f"word{i}" for i in range(7)]
    stored = write(tmp_path / "counts", counts, words=words)
    assert (stored.shape, stored.n_documents, len(stored)) == ((23, 7), 23, 23)
    assert stored.nnz == counts.nnz
    assert stored.dtype == np.float32
    (tmp_path / "counts" / "indices.npy").write_bytes(b"")
    assert stored.n_tokens.dtype == stored.word_totals.dtype == np.float64
    np.testing.assert_array_equal(stored.n_tokens, counts.sum(axis=1).A1)
    np.testing.assert_array_equal(stored.word_totals, counts.sum(axis=0).A1)
    assert stored.vocabulary == Vocabulary.from_words(words)
    assert stored.labels() is None
    assert stored.n_unknown.tolist() == [0] * 23
    assert repr(stored) == "DiskCounts(23 documents x 7 words)"


def test_labels_ids_and_unknown_tokens_come_back(tmp_path):
    counts = random_counts(9, 3)
    labels = ["sun", "rain\nand", "h\u00e9"] * 3
    ids = [f"d{i}" for i in range(9)]
    stored = write(
        tmp_path / "counts",
        counts,
        block=5,
        labels=labels,
        ids=ids,
        n_unknown=np.arange(9),
    )
    assert stored.labels() == labels
    assert stored.labels([7, 0]) == [labels[7], labels[0]]
    assert stored.classes == labels[:3]
    assert stored.ids() == ids
    assert stored.ids(slice(3, 6)) == ids[3:6]
    assert stored.ids([8, 2]) == ["d8", "d2"]
    np.testing.assert_array_equal(stored.n_unknown, np.arange(9))
    nameless = write(tmp_path / "nameless", counts)
    assert nameless.ids(slice(3, 6)) == ["4", "5", "6"]


def test_labels_that_are_missing_come_back_missing(tmp_path):
    with CountsWriter(tmp_path / "counts", 3) as out:
        out.add(random_counts(2, 3))
        out.add(random_counts(3, 3), labels=[None, "sun", None])
        out.add(random_counts(1, 3), labels=["rain"])
    stored = DiskCounts(tmp_path / "counts")
    assert stored.labels() == [None, None, None, "sun", None, "rain"]
    assert stored.label_codes.tolist() == [-1, -1, -1, 0, -1, 1]
    bare = write(tmp_path / "bare", random_counts(2, 3), labels=[None, None])
    assert bare.labels() is None
    assert not (tmp_path / "bare" / "labels.npy").exists()


def test_settings_of_a_vocabulary_are_kept(tmp_path):
    words = Vocabulary.from_texts(["Sun Rain", "Sun Rain"], lowercase=False)
    counts = words.count(["Sun Sun"]).counts
    stored = write(tmp_path / "counts", counts, words=words)
    assert stored.vocabulary == words


def test_a_corpus_of_empty_documents_comes_back(tmp_path):
    counts = sp.csr_matrix((5, 3), dtype=np.float32)
    stored = write(tmp_path / "counts", counts)
    assert_same(stored[:], counts)
    assert_same(stored[[4, 0]], counts[[4, 0]])
    assert stored.n_tokens.tolist() == [0.0] * 5


@pytest.mark.parametrize(
    ("largest", "dtype"), [(255, "uint8"), (65535, "uint16"), (2**24, "float32")]
)
def test_counts_take_the_smallest_type_that_holds_them(tmp_path, largest, dtype):
    counts = sp.csr_matrix(np.array([[1, 0, largest]], dtype=np.float64))
    stored = write(tmp_path / "counts", counts)
    assert_same(stored[:], counts)
    assert np.load(tmp_path / "counts" / "data.npy").dtype.name == dtype


def test_a_large_count_widens_what_is_written_already(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "CHUNK", 3)
    counts = sp.csr_matrix([[1, 0], [3, 9], [2, 255], [0, 256], [7, 1], [2**24, 1]])
    stored = write(tmp_path / "counts", counts, block=1)
    assert_same(stored[:], counts)
    assert np.load(tmp_path / "counts" / "data.npy").dtype == np.float32
    stored.verify()
    names = {path.name for path in (tmp_path / "counts").iterdir()}
    assert names == {*disk.REQUIRED, "config.json"}


def test_the_arrays_are_those_of_scipy(tmp_path):
    counts = random_counts(9, 4)
    write(tmp_path / "counts", counts, block=2)
    arrays = (np.load(tmp_path / "counts" / f"{name}.npy") for name in CSR)
    assert_same(sp.csr_matrix(tuple(arrays), counts.shape, np.float32), counts)


def test_counts_may_come_unsorted_and_twice(tmp_path):
    indices = np.array([2, 0, 2])
    counts = sp.csr_matrix((np.ones(3), indices, np.array([0, 3])), shape=(1, 3))
    stored = write(tmp_path / "counts", counts)
    assert stored[:].toarray().tolist() == [[1, 0, 2]]
    assert counts.nnz == 3


def test_stored_counts_can_be_pickled(tmp_path):
    counts = random_counts(6, 4)
    stored = pickle.loads(pickle.dumps(write(tmp_path / "counts", counts)))
    assert_same(stored[:], counts)


@pytest.mark.parametrize("rows", [[5], [-6], np.array([0, 99])])
def test_rows_that_are_not_there_are_an_index_error(tmp_path, rows):
    stored = write(tmp_path / "counts", random_counts(5, 3))
    with pytest.raises(IndexError, match=f"there is no row {rows[-1]} in 5 rows"):
        stored[rows]
    with pytest.raises(IndexError, match="mask has 2 entries for 5 rows"):
        stored[[True, False]]
    for wrong in (0, [0.5], [[0]]):
        with pytest.raises(TypeError, match="a slice, whole numbers or a mask"):
            stored[wrong]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda w, x: w.add(x[:, :2]), "2 columns but `n_features` is 3"),
        (lambda w, x: w.add(x, labels=["a"]), "4 rows but `labels` has 1"),
        (lambda w, x: w.add(x, ids=["a"] * 9), "4 rows but `ids` has 9"),
        (lambda w, x: w.add(-x), "which is negative"),
        (lambda w, x: w.add(x / 2), "which is not a whole number"),
        (
            lambda w, x: (w.add(x), w.add(x, ids=["a"] * 4)),
            "documents 1 to 4 were added without `ids`, those after them with",
        ),
        (
            lambda w, x: (w.add(x, n_unknown=[1] * 4), w.add(x)),
            "documents 1 to 4 were added with `n_unknown`, those after them without",
        ),
        (lambda *_: None, "it has no documents"),
    ],
)
def test_what_cannot_be_added_is_told_and_leaves_nothing(tmp_path, call, sentence):
    counts = sp.csr_matrix(np.ones((4, 3)))
    with (
        pytest.raises(InputError, match=sentence),
        CountsWriter(tmp_path / "counts", 3) as writer,
    ):
        call(writer, counts)
    assert list(tmp_path.iterdir()) == []


def test_bad_arguments_are_told_with_both_numbers(tmp_path):
    with pytest.raises(InputError, match="2 words but `n_features` is 3"):
        CountsWriter(tmp_path / "counts", 3, words=["sun", "rain"])
    with pytest.raises(InputError, match="`n_features` must be from 1 .* got 0"):
        CountsWriter(tmp_path / "counts", 0)
    with pytest.raises(InputError, match="`n_features` must be a whole number"):
        CountsWriter(tmp_path / "counts", 3.0)
    with pytest.raises(RuntimeError, match="use CountsWriter in a with block"):
        CountsWriter(tmp_path / "counts", 3).add(sp.csr_matrix([[1, 0, 0]]))


@pytest.mark.parametrize("error", [KeyError("x"), OSError("of the caller"), SystemExit])
def test_a_failing_block_leaves_nothing_and_tells_its_own_error(tmp_path, error):
    def failing():
        with CountsWriter(tmp_path / "counts", 3) as writer:
            writer.add(random_counts(9, 3))
            raise error

    kind = error if isinstance(error, type) else type(error)
    with pytest.raises(kind) as caught:
        failing()
    assert not isinstance(caught.value, InputError)
    assert list(tmp_path.iterdir()) == []


def test_an_older_folder_stays_until_the_new_one_is_whole(tmp_path):
    folder = tmp_path / "counts"
    first = write(folder, random_counts(6, 3)).digest

    def failing():
        with CountsWriter(folder, 3) as writer:
            writer.add(random_counts(9, 3))
            raise KeyError

    with pytest.raises(KeyError):
        failing()
    assert DiskCounts(folder).digest == first
    assert len(write(folder, random_counts(9, 3))) == 9
    assert [path.name for path in tmp_path.iterdir()] == ["counts"]


def test_folders_that_cannot_be_written_get_one_sentence(tmp_path):
    counts = random_counts(3, 2)
    with pytest.raises(InputError, match="cannot write .*nowhere"):
        write(tmp_path / "nowhere" / "counts", counts)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "a.tex").write_text("precious")
    with pytest.raises(InputError, match="not a docsigma folder"):
        write(tmp_path / "thesis", counts)


def run_python(script, *arguments):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


def test_a_full_disk_gets_one_sentence_and_leaves_nothing(tmp_path):
    done = run_python(
        """
        import resource, signal, sys
        import numpy as np
        import scipy.sparse as sp
        from docsigma import InputError
        from docsigma.counts import CountsWriter
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
        try:
            with CountsWriter(sys.argv[1], 50) as writer:
                writer.add(sp.csr_matrix(np.ones((1000, 50))))
        except InputError as error:
            print(error)
        """,
        tmp_path / "counts",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"cannot write {tmp_path / 'counts'}: File too large\n"
    assert list(tmp_path.iterdir()) == []


def test_kill_9_leaves_no_folder_of_that_name(tmp_path):
    script = """
        import sys, time
        import numpy as np
        import scipy.sparse as sp
        from docsigma.counts import CountsWriter
        with CountsWriter(sys.argv[1], 5) as writer:
            writer.add(sp.csr_matrix(np.ones((35, 5))))
            print("written", flush=True)
            time.sleep(60)
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(tmp_path / "counts")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "written\n"
        os.kill(process.pid, signal.SIGKILL)
    assert not (tmp_path / "counts").exists()
    assert all(path.name.startswith(".counts.") for path in tmp_path.iterdir())
    assert len(write(tmp_path / "counts", random_counts(3, 2))) == 3


def test_the_digest_follows_what_is_stored(tmp_path):
    counts = random_counts(20, 5)
    first = write(tmp_path / "a", counts, block=4)
    again = write(tmp_path / "b", counts, block=7)
    assert first.digest == again.digest == DiskCounts(tmp_path / "a").digest
    other = counts.copy()
    other.data[3] += 1
    moved = counts[[1, 0, *range(2, 20)]]
    labelled = {"labels": ["x"] * 20}
    digests = {
        first.digest,
        write(tmp_path / "c", other).digest,
        write(tmp_path / "d", moved).digest,
        write(tmp_path / "e", counts, words=list("abcde")).digest,
        write(tmp_path / "f", counts, **labelled).digest,
        write(tmp_path / "g", counts[:19]).digest,
    }
    assert len(digests) == 6


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/status")
def test_memory_does_not_grow_with_the_corpus(tmp_path):
    """300 MB on disk; writing and reading them takes less than 100 MB more."""
    common = """
        import re, sys
        from pathlib import Path
        import numpy as np
        import scipy.sparse as sp
        from docsigma.counts import DiskCounts, CountsWriter

        def peak():
            # Not ru_maxrss: a child starts with its parent's, which may be larger.
            status = Path("/proc/self/status").read_text()
            return int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]) / 1024
    """
    writing = """
        random = np.random.default_rng(0)
        n, v, per = 8192, 50_000, 100
        columns = np.sort(random.integers(0, v, (n, per)), axis=1)
        ones = np.ones(n * per, dtype=np.float32)
        block = sp.csr_matrix((ones, columns.ravel(), np.arange(n + 1) * per), (n, v))
        block.sum_duplicates()
        before = peak()
        with CountsWriter(sys.argv[1], v) as writer:
            for _ in range(75):
                writer.add(block)
        print(peak() - before)
    """
    reading = """
        counts = DiskCounts(sys.argv[1])
        random = np.random.default_rng(0)
        before = peak()
        total = sum(block.nnz for block in counts.iter_blocks())
        for _ in range(20):
            rows = random.integers(len(counts), size=2000)
            assert counts[rows].shape == (2000, counts.shape[1])
        assert total == counts.nnz
        print(peak() - before)
    """
    folder = tmp_path / "counts"
    for script in (writing, reading):
        done = run_python(textwrap.dedent(common) + textwrap.dedent(script), folder)
        assert done.returncode == 0, done.stderr
        assert float(done.stdout) < 100
    assert DiskCounts(folder).nbytes > 300e6
