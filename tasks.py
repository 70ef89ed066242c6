"""Tasks: the verbs of the Makefile for machines without make: `python -m tasks test`.

Like make's, each verb first makes what it needs in `.venv`. A test keeps both in step.
"""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if sys.platform == "win32" else "bin")
STAMP = VENV / ".tasks"
CODE = [name for name in ("src", "tests", "bench", "examples", "release", "docs") if (ROOT / name).is_dir()]

VERBS: dict[str, tuple[str, list[list[str]]]] = {
    "setup": ("make .venv with the locked tools and the project itself", []),
    "test": ("run the tests", [["pytest", "-n", "4", "--dist", "loadfile"]]),
    "coverage": (
        "run the tests, child processes measured too; fails below 95 % coverage",
        [
            ["coverage", "erase"],
            ["coverage", "run", "-m", "pytest", "-n", "4", "--dist", "loadfile"],
            ["coverage", "combine", "--quiet"],
            ["coverage", "report"],
        ],
    ),
    "check": (
        "lint, format, types, layers, generated documents",
        [
            ["ruff", "check"],
            ["ruff", "format", "--check"],
            ["mypy", *CODE],
            ["lint-imports", "--no-logo"],
            ["python", "docs/generate.py", "--check"],
            ["python", "-m", "release.install_links", "--check"],
        ],
    ),
    "docs": (
        "make .env.example, docs/configuration.md, docs/api.md and the README's buttons from the code",
        [["python", "docs/generate.py"], ["python", "-m", "release.install_links"]],
    ),
    "conformance": (
        "run the official conformance suite (needs Node)",
        [["python", "-m", "tests.conformance"]],
    ),
    "dist": (
        "build what people install into dist: wheel, sdist, archive, bundles",
        [["python", "-m", "release", "dist"]],
    ),
    "smoke": (
        "build it, install it outside of the project and use every bridge",
        [["python", "-m", "release", "smoke"]],
    ),
}
MADE = (".venv", ".node", ".bench", "build", "dist", "htmlcov", ".hypothesis", ".coverage")
MADE_BY_TOOLS = (".pytest_cache", ".mypy_cache", ".ruff_cache", ".import_linter_cache")


def main(words: list[str]) -> int:
    """Run the verbs that are named, in their order."""
    unknown = [word for word in words if word not in {*VERBS, "clean"}]
    if unknown or not words:
        for verb, (about, _) in VERBS.items():
            print(f"  python -m tasks {verb:12} {about}")
        print(f"  python -m tasks {'clean':12} remove everything that a verb made")
        return 2 if unknown else 0
    for verb in words:
        status = clean() if verb == "clean" else run(verb)
        if status:
            return status
    return 0


def run(verb: str) -> int:
    """Run the commands of a verb up to the first that fails, and return its status."""
    set_up()
    for program, *arguments in VERBS[verb][1]:
        print(f"{program} {' '.join(arguments)}", flush=True)
        status = subprocess.run([BIN / program, *arguments], cwd=ROOT, check=False).returncode  # noqa: S603
        if status:
            return status
    return 0


def set_up() -> None:
    """Make .venv, or bring it up to date where what it is made from has changed."""
    sources = [ROOT / "requirements" / "dev.txt", ROOT / "pyproject.toml"]
    state = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    if STAMP.is_file() and STAMP.read_text(encoding="ascii") == state:
        return
    if not (BIN / ("python.exe" if sys.platform == "win32" else "python")).exists():
        import venv  # which the embeddable Python for Windows lacks, and tests read this file there

        venv.create(VENV, with_pip=True)
    pip = [str(BIN / "python"), "-m", "pip", "install", "--quiet"]
    locked = ["--require-hashes", "-r", "requirements/dev.txt"]
    own = ["--no-deps", "--no-build-isolation", "--no-index", "--editable", "."]
    for arguments in (locked, own):
        subprocess.run([*pip, *arguments], cwd=ROOT, check=True)  # noqa: S603
    STAMP.write_text(state, encoding="ascii")


def clean() -> int:
    """Remove everything that a verb made."""
    for name in (*MADE, *MADE_BY_TOOLS):
        path = ROOT / name
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    for name in CODE:
        for cache in (ROOT / name).rglob("__pycache__"):
            shutil.rmtree(cache, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
