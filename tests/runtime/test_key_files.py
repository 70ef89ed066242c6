"""Key files: one secret, however many processes ask for it first."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bridgehead.runtime.key_files import read_or_create
from tests.support.posix import is_private


def test_all_who_start_at_once_get_the_same_key_which_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.key"
    with ThreadPoolExecutor(8) as threads:
        keys = set(threads.map(read_or_create, [path] * 8))

    assert keys == {read_or_create(path)}
    assert len(keys.pop()) == 32
    assert is_private(path)
