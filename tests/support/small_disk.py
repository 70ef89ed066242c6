"""A file system with little room, which a test can fill and empty."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.posix import is_root


class SmallDisk:
    """A mounted file system."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._filler = path / "filler"

    def fill(self) -> None:
        """Leave no room for another byte."""
        with self._filler.open("ab", buffering=0) as filler, suppress(OSError):
            while filler.write(bytes(4096)):
                pass

    def make_room(self) -> None:
        """Remove what filled it."""
        self._filler.unlink()


@contextmanager
def mount_small_disk(size: str = "24m") -> Iterator[SmallDisk]:
    """Mount one; skip the test where that needs rights that we lack."""
    if not is_root or sys.platform != "linux":
        pytest.skip("only root can mount a file system with little room")
    folder = Path(tempfile.mkdtemp(prefix="bridgehead-disk-"))
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0777", "tmpfs", str(folder)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        folder.rmdir()
        pytest.skip("no file system can be mounted here")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
        folder.rmdir()
