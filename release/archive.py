"""Archive: one executable file with the command and everything it needs, for one Python on one system.

A zip application of our own rather than shiv's. Up to the first answer of a bridge, measured together: 64 ms
installed, 76 ms out of this archive, 120 ms out of shiv's, which imports more than the bridge does and reads
the list of every packed file. This one also tells which Python it was made for, and needs nothing to be made.
"""

import hashlib
import io
from pathlib import Path

from release import archive_main, packed

SHEBANG = b"#!/usr/bin/env python3\n"
EXECUTABLE = 0o755


def make(target: Path, site: Path, moment: int) -> Path:
    """Make an archive out of a folder in which the distribution and its dependencies are installed."""
    content = io.BytesIO()
    packed.write(content, packed.folder(site), moment)
    inside = {"__main__.py": _main(content.getvalue()), archive_main.CONTENT: content.getvalue()}
    with target.open("wb") as file:
        file.write(SHEBANG)
        packed.write(file, inside, moment, compressed=False)
    target.chmod(EXECUTABLE)
    return target


def _main(content: bytes) -> bytes:
    text = Path(archive_main.__file__).read_text(encoding="utf-8")
    build = hashlib.sha256(content).hexdigest()[:16]
    filled = text.replace(archive_main.BUILD, build).replace(archive_main.MADE_FOR, archive_main.machine())
    return filled.encode()
