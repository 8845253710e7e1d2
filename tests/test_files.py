"""Leftovers of a killed writer are found by their name, and nothing else is."""

from __future__ import annotations

import pytest

from docsigma._files import _temporary
from docsigma.models._storage import remove_others


@pytest.mark.parametrize("name", ["model.checkpoint.safetensors", "plain", "a[b]*.x"])
def test_temporary_files_of_that_name_alone_are_removed(tmp_path, name):
    target = tmp_path / name
    stem, suffix = target.stem, target.suffix
    kept = [
        name,
        f".{stem}.0123456g.tmp{suffix}",
        f".{stem}.0123ABCD.tmp{suffix}",
        f".{stem}.012345678.tmp{suffix}",
        f".{stem}.01234567.tmp{suffix}.old",
        f".{stem}.01234567{suffix}",
        f".{stem}X.01234567.tmp{suffix}",
        f".other.01234567.tmp{suffix}",
        f"{stem}.01234567.tmp{suffix}",
        f".{stem}.01234567.tmp.other",
    ]
    for other in kept:
        (tmp_path / other).write_text("precious")
    folder, link = _temporary(target), _temporary(target)
    folder.mkdir()
    link.symlink_to(target)
    for _ in range(2):
        _temporary(target).write_text("half of")
    assert len(list(tmp_path.iterdir())) == len(kept) + 4
    remove_others(target)
    left = {file.name for file in tmp_path.iterdir()}
    assert left == {*kept, folder.name, link.name}


def test_a_folder_that_is_not_there_is_no_error(tmp_path):
    remove_others(tmp_path / "nowhere" / "file")
