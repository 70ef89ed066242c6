"""Runs tests on the Pythons that the classifiers promise: `python -m tests.pythons [PLACE…]`.

An interpreter is taken from the PATH, from pyenv or from uv, which may download it, or else unpacked from
Debian's packages. A version that cannot be had is a line that says so, and a failure where CI is set.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from . import debian

ROOT = Path(__file__).parents[2]
HOME = ROOT / "build" / "pythons"
CLASSIFIER = "Programming Language :: Python :: 3."
PLACES = [
    "tests/aoc/files",
    "tests/bitburner/netscript",
    "tests/host/auth",
    "tests/mcp",
    "tests/mercury/calling",
    "tests/runtime",
]
"""Where a version can make a difference: parsing, garbage collection, SQLite, the loop, files."""


def promised() -> list[str]:
    """Return the versions of the classifiers, oldest first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    minors = [one.removeprefix(CLASSIFIER) for one in project["classifiers"] if one.startswith(CLASSIFIER)]
    return [f"3.{minor}" for minor in sorted(map(int, minors))]


def main(words: Sequence[str]) -> int:
    """Run the tests on each version, and return the status."""
    versions = promised()
    parser = argparse.ArgumentParser(prog="python -m tests.pythons", description=__doc__)
    parser.add_argument("places", nargs="*", metavar="PLACE", help="test files or folders")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--python", choices=versions, help="only this version")
    which.add_argument("--ends", action="store_true", help="all tests on the oldest and the newest")
    options = parser.parse_args(words)
    ends = {versions[0], versions[-1]}
    others = [one for one in versions if one != "{}.{}".format(*sys.version_info)]
    chosen = [options.python] if options.python else [one for one in others if (one in ends) == options.ends]
    places = options.places or (["tests"] if options.ends else PLACES)
    failed, skipped = [], []
    for version in chosen:
        found = find(version)
        if found is None:
            skipped.append(version)
            print(f"SKIPPED Python {version}: it is not on this machine and cannot be had here.", flush=True)
        elif not run(set_up(found, version), places):
            failed.append(version)
    if failed:
        print(f"Failed on Python {', '.join(failed)}.")
    return 1 if failed or (skipped and os.environ.get("CI")) else 0


def find(version: str, folders: Sequence[Path] = ()) -> str | None:
    """Return an interpreter of this version; None where there is none and none can be had."""
    on_path = shutil.which(f"python{version}")
    if on_path is not None and _is(on_path, version):
        return on_path
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    candidates = [
        path for folder in (*folders, root) for path in sorted(folder.glob(f"{version}.*/bin/python"))
    ]
    found = next((str(path) for path in reversed(candidates) if _is(str(path), version)), None)
    return found or _from_uv(version) or _from_debian(version)


def _is(python: str, version: str) -> bool:
    """Tell whether a program is this Python: pyenv puts stand-ins on the PATH for versions it may lack."""
    program = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([python, "-c", program], capture_output=True, text=True, check=False)
    return done.returncode == 0 and done.stdout.strip() == version


def _from_uv(version: str) -> str | None:
    uv = shutil.which("uv")
    if uv is None:
        return None
    subprocess.run([uv, "python", "install", "--quiet", version], check=False)
    done = subprocess.run([uv, "python", "find", version], capture_output=True, text=True, check=False)
    found = done.stdout.strip()
    return found if done.returncode == 0 and _is(found, version) else None


def _from_debian(version: str) -> str | None:
    found = debian.unpack(version, HOME / f"debian-{version}")
    return str(found) if found is not None and _is(str(found), version) else None


def set_up(python: str, version: str) -> Path:
    """Make an environment with the locked tools and the project, or take the one that is there."""
    folder = HOME / version
    own = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
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
    print(f"=== {python.parents[1].name}: {' '.join(places)}", flush=True)
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-n", "4", "--dist", "loadfile", *places], cwd=ROOT, check=False
    )
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
