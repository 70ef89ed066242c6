"""Runs tests on every newer Python that is found: `python -m tests.pythons [PLACE…]`.

We found no package of PyPI, npm or Debian 12 that carries one of them for Linux (npm's portable-python is a
downloader), so what the machine has is taken, from the PATH or from pyenv. A version that is not there is
named, and does not fail.
"""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
HOME = ROOT / "build" / "pythons"
VERSIONS = ("3.12", "3.13", "3.14")
PLACES = [
    "tests/mcp/stdio",
    "tests/mcp/test_both_transports.py",
    "tests/mcp/test_lifespan.py",
    "tests/runtime",
]


def main(words: Sequence[str]) -> int:
    """Run the tests on each version, and return the status."""
    parser = argparse.ArgumentParser(prog="python -m tests.pythons", description=__doc__)
    parser.add_argument("places", nargs="*", metavar="PLACE", help="test files or folders")
    parser.add_argument("--python", choices=VERSIONS, help="only this version")
    options = parser.parse_args(words)
    failed = []
    for version in [options.python] if options.python else VERSIONS:
        found = find(version)
        if found is None:
            sys.stdout.write(f"Python {version}: not on this machine, so not tried.\n")
        elif not run(set_up(found, version), options.places or PLACES):
            failed.append(version)
    if failed:
        sys.stdout.write(f"Failed on Python {', '.join(failed)}.\n")
    return 1 if failed else 0


def find(version: str, folders: Sequence[Path] = ()) -> str | None:
    """Return an interpreter of this version; None where the machine has none."""
    on_path = shutil.which(f"python{version}")
    if on_path is not None and _is(on_path, version):
        return on_path
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    candidates = [
        path for folder in (*folders, root) for path in sorted(folder.glob(f"{version}.*/bin/python"))
    ]
    return next((str(path) for path in reversed(candidates) if _is(str(path), version)), None)


def _is(python: str, version: str) -> bool:
    """Tell whether a program is this Python: pyenv puts stand-ins on the PATH for versions it may lack."""
    program = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([python, "-c", program], capture_output=True, text=True, check=False)
    return done.returncode == 0 and done.stdout.strip() == version


def set_up(python: str, version: str) -> Path:
    """Make an environment with the locked tools and the project, or take the one that is there."""
    folder = HOME / version
    own = folder / "bin" / "python"
    locked = ROOT / "requirements" / "dev.txt"
    stamp = folder / "stamp"
    if not stamp.is_file() or stamp.read_bytes() != locked.read_bytes():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([python, "-m", "venv", folder], check=True)
        pip = [str(own), "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, "--require-hashes", "-r", str(locked)], check=True)
        editable = ["--no-deps", "--no-build-isolation", "--no-index", "--editable", str(ROOT)]
        subprocess.run([*pip, *editable], check=True)
        stamp.write_bytes(locked.read_bytes())
    return own


def run(python: Path, places: Sequence[str]) -> bool:
    """Run tests, and tell whether all passed."""
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", *places], cwd=ROOT, check=False
    )
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
