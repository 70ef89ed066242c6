"""The files that this process has open, for tests of what is closed (Linux)."""

from contextlib import suppress
from pathlib import Path


def files_open_in(folder: Path) -> list[str]:
    """Return the files of a folder that this process has open, also those that were deleted."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # the one that lists them is closed by now
            found.append(str(descriptor.readlink()))
    return [name for name in found if name.startswith(f"{folder}/")]
