"""Dist: builds everything that people install into one folder, the same bytes for the same commit."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridgehead import __version__
from bridgehead.runtime import plugins
from bridgehead.runtime.manifest import Manifest
from release import archive, archive_main, bundle, locked, provenance, published, sbom, server_json

ROOT = Path(__file__).resolve().parent.parent
LOCKED = ROOT / "requirements" / "runtime.txt"
LONG_AGO = 1_577_836_800
"""The year 2020: the moment of everything where neither the environment nor a commit tells another."""
PATIENCE = 600


@dataclass(frozen=True)
class Built:
    """What a build made."""

    wheel: Path
    sdist: Path
    archive: Path
    bundles: dict[str, Path]
    """By bridge; each has its `server.json` beside it."""


def build(folder: Path, address: str, releases: str = "") -> Built:
    """Build everything into a folder, which is emptied first; `address` is that of the repository."""
    moment = _moment()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as source:
        published.write_source(ROOT, Path(source), address, plugins.built_in_names())
        wheel, sdist = distributions(folder, moment, Path(source))
    single = _archive(folder, wheel, moment)
    project = read_project()
    bundles = {}
    for name in plugins.built_in_names():
        bridge = plugins.load(name)
        bundles[name] = target = _bundle(folder / name, bridge, wheel, project, moment)
        described = server_json.describe(bridge, __version__, target, published.namespace(address), releases)
        (folder / name / "server.json").write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")
    _describe_supply_chain(folder, address, moment)
    (folder / "SHA256SUMS").write_text("".join(_sums(folder)), encoding="utf-8")
    return Built(wheel, sdist, single, bundles)


def _describe_supply_chain(folder: Path, address: str, moment: int) -> None:
    """Write what is in the release, and what it was built from."""
    packages = {name: locked.read(ROOT / "requirements" / f"{name}.txt") for name in ("runtime", "team")}
    contents = sbom.describe(__version__, packages["runtime"], packages["team"], moment)
    _write_json(folder / f"bridgehead-{__version__}.cdx.json", contents)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    locks = sorted((ROOT / "requirements").glob("*.txt"))
    statement = provenance.describe(files, folder, address=address, commit=_commit(), locks=locks)
    _write_json(folder / f"bridgehead-{__version__}.provenance.json", statement)


def _write_json(path: Path, document: dict[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def distributions(folder: Path, moment: int, source: Path = ROOT) -> tuple[Path, Path]:
    """Build the sdist, and the wheel out of the sdist, so that each is known to be complete."""
    run(
        *(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(source)),
        environment={"SOURCE_DATE_EPOCH": str(moment)},
    )
    return folder / f"bridgehead-{__version__}-py3-none-any.whl", folder / f"bridgehead-{__version__}.tar.gz"


def _archive(folder: Path, wheel: Path, moment: int) -> Path:
    with tempfile.TemporaryDirectory() as temporary:
        run(
            *(sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--target", temporary),
            *("--require-hashes", "--no-deps", "--only-binary", ":all:", "--requirement", str(LOCKED)),
        )
        with zipfile.ZipFile(wheel) as ours:  # pip would note the folder that it came from
            ours.extractall(temporary)
        name = f"bridgehead-{__version__}-{archive_main.machine()}.pyz"
        return archive.make(folder / name, Path(temporary), moment)


def _bundle(folder: Path, bridge: Manifest, wheel: Path, project: dict[str, Any], moment: int) -> Path:
    folder.mkdir()
    target = folder / f"bridgehead-{bridge.name}-{__version__}.mcpb"
    bundle.make(target, bridge, wheel, LOCKED.read_text(encoding="utf-8"), project, moment)
    return target


def _sums(folder: Path) -> Iterator[str]:
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        yield f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder).as_posix()}\n"


def read_project() -> dict[str, Any]:
    """Return what pyproject.toml says of the project, with its version."""
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project: dict[str, Any] = pyproject["project"]
    return project | {"version": __version__}


def _moment() -> int:
    """Take the moment that the environment names, else that of the last commit, else one long ago."""
    named = os.environ.get("SOURCE_DATE_EPOCH", "")
    if named:
        return int(named)
    return int(_ask_git("log", "-1", "--format=%ct") or LONG_AGO)


def _commit() -> str:
    return _ask_git("rev-parse", "HEAD")


def _ask_git(*words: str) -> str:
    """Return what git says of the source; nothing where it is no checkout."""
    git = shutil.which("git")
    return run(git, "-C", str(ROOT), *words).strip() if git and (ROOT / ".git").exists() else ""


def run(*command: str, environment: dict[str, str] | None = None) -> str:
    """Run a program to its end and return what it wrote; where it fails, say what it said."""
    done = subprocess.run(
        command,
        env=os.environ | (environment or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout
