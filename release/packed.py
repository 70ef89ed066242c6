"""Packed: zip files whose bytes depend on their content alone, not on when or where they were made."""

import time
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

FIRST_ZIP_YEAR = 1980
_FILE = 0o100644 << 16
_UNIX = 3


def write(target: BinaryIO, contents: Mapping[str, bytes], moment: int, *, compressed: bool = True) -> None:
    """Write files by name, in the order of their names, all of them from one moment (seconds since 1970)."""
    with zipfile.ZipFile(target, "w") as archive:
        for name in sorted(contents):
            entry = zipfile.ZipInfo(name, _date(moment))
            entry.compress_type = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
            entry.create_system = _UNIX
            entry.external_attr = _FILE
            archive.writestr(entry, contents[name])


def folder(root: Path) -> dict[str, bytes]:
    """Read every file under a folder that belongs into a package: no compiled Python, no scripts."""
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in _files(root)}


def _files(root: Path) -> Iterator[Path]:
    for path in root.rglob("*"):
        parts = path.relative_to(root).parts
        if path.is_file() and parts[0] != "bin" and "__pycache__" not in parts:
            yield path


def _date(moment: int) -> tuple[int, int, int, int, int, int]:
    date = time.gmtime(moment)
    return max(date.tm_year, FIRST_ZIP_YEAR), *date[1:6]
