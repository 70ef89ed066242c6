"""Durable: folders that are made for good."""

from pathlib import Path

import pytest

from bridgehead.runtime import durable


def test_a_folder_is_made_with_those_it_is_in(tmp_path: Path) -> None:
    durable.make_folder(tmp_path / "a" / "b")
    durable.make_folder(tmp_path / "a" / "b")

    assert (tmp_path / "a" / "b").is_dir()


def test_a_file_in_the_way_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")

    with pytest.raises(OSError, match="a"):
        durable.make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a").read_text() == "x"
