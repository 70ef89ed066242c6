"""Corpus: the inputs that are kept, one file each, named after what they hold."""

import hashlib
from pathlib import Path

HERE = Path(__file__).parent / "corpus"


class Corpus:
    """The kept inputs of one target."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self) -> dict[str, bytes]:
        """Return every input by its name."""
        return {file.name: file.read_bytes() for file in sorted(self._folder.iterdir())}

    def add(self, data: bytes) -> Path:
        """Keep an input; the same one again changes nothing."""
        name = hashlib.sha256(data).hexdigest()[:16]
        file = self._folder / name
        self._folder.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        return file
