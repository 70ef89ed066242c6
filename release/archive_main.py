"""The first file of a single-file archive: makes sure that its content is unpacked, and runs the command.

Compiled modules cannot be loaded out of a zip file, so the content is unpacked once for each build, into the
user's cache, and found there from then on. Runs on every start and therefore imports next to nothing; the
content is one file inside of the archive, because Python reads the list of all files of an archive it starts.
"""

# ruff: noqa: PTH100, PTH103, PTH104, PTH111, PTH112, PTH118, PTH120 - pathlib would delay every start

import os
import sys

# Filled in when the archive is made.
BUILD = "@BUILD@"
MADE_FOR = "@MADE_FOR@"

CONTENT = "content.zip"
WRONG_USAGE = 2


def main() -> int:
    """Run the command out of the unpacked content, and return its exit status."""
    made_for = machine()
    if made_for != MADE_FOR:
        sys.stderr.write(
            f"bridgehead: this archive was made for {MADE_FOR}, and this Python is {made_for}; "
            "run it with that Python, or install with pip or uv instead\n"
        )
        return WRONG_USAGE
    content = os.path.join(cache(), BUILD)
    if not os.path.isdir(content):
        try:
            unpack(content)
        except OSError as failure:
            sys.stderr.write(
                f"bridgehead: this archive cannot be unpacked to {content}: {failure.strerror or failure}; "
                "set BRIDGEHEAD_CACHE_DIR to a folder that can be written to\n"
            )
            return WRONG_USAGE
    sys.path.insert(0, content)
    # What this process starts with the same Python finds the same content.
    others = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{content}{os.pathsep}{others}" if others else content
    import bridgehead
    from bridgehead.cli import main as command

    # Tells where the package came from, as the loader of a zip file does: that is what a client has to start.
    bridgehead.__spec__.loader.archive = os.path.abspath(sys.argv[0])  # type: ignore[union-attr]
    return command()


def machine() -> str:
    """Name what compiled modules depend on: this Python, this system, this processor."""
    processor = os.uname().machine if hasattr(os, "uname") else os.environ.get("PROCESSOR_ARCHITECTURE", "")
    return f"{sys.implementation.cache_tag}-{sys.platform}-{processor.lower()}"


def cache() -> str:
    """Return the folder for unpacked builds."""
    chosen = os.environ.get("BRIDGEHEAD_CACHE_DIR")
    if chosen:
        return os.path.abspath(os.path.expanduser(chosen))
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        caches = os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
    elif sys.platform == "darwin":
        caches = os.path.join(home, "Library", "Caches")
    else:
        caches = os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    return os.path.join(caches, "bridgehead")


def unpack(content: str) -> None:
    """Unpack beside the place and then take its name, so that nobody ever finds half of it."""
    import io
    import shutil
    import tempfile
    import zipfile

    os.makedirs(os.path.dirname(content), mode=0o700, exist_ok=True)
    beside = tempfile.mkdtemp(prefix=".unpacking-", dir=os.path.dirname(content))
    try:
        with zipfile.ZipFile(sys.argv[0]) as archive:
            packed = io.BytesIO(archive.read(CONTENT))
        with zipfile.ZipFile(packed) as inner:
            inner.extractall(beside)
        os.rename(beside, content)
    except OSError:
        shutil.rmtree(beside, ignore_errors=True)
        if not os.path.isdir(content):  # if it is there, another process was faster, with the same content
            raise


if __name__ == "__main__":
    sys.exit(main())
