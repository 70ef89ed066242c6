"""The wheel and the sdist: what is in them, and that they can be made again."""

import hashlib
import re
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from bridgehead import __version__
from release import dist
from tests.release.conftest import MOMENT

ROOT = dist.ROOT
DIST_INFO = f"bridgehead-{__version__}.dist-info"


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def read(wheel: Path, name: str) -> str:
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(name).decode()


def test_the_wheel_holds_every_module_and_says_that_they_are_typed(built: tuple[Path, Path]) -> None:
    source = ROOT / "src"
    modules = {path.relative_to(source).as_posix() for path in (source / "bridgehead").rglob("*.py")}

    assert modules - names(built[0]) == set()
    assert "bridgehead/py.typed" in names(built[0])


def test_the_wheel_holds_nothing_but_the_package_and_its_description(built: tuple[Path, Path]) -> None:
    assert {name.partition("/")[0] for name in names(built[0])} == {"bridgehead", DIST_INFO}
    of_tests = re.compile(r"(^|/)(tests?/|test_|conftest)|\.(pyc|env)$")
    assert [name for name in names(built[0]) if of_tests.search(name)] == []


def test_the_wheel_carries_the_licence_and_the_command(built: tuple[Path, Path]) -> None:
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")

    assert read(built[0], f"{DIST_INFO}/licenses/LICENSE") == licence
    assert "bridgehead = bridgehead.cli:main" in read(built[0], f"{DIST_INFO}/entry_points.txt")


def test_the_wheel_asks_for_nothing_that_is_not_locked(built: tuple[Path, Path]) -> None:
    metadata = Parser().parsestr(read(built[0], f"{DIST_INFO}/METADATA"))
    asked = {
        re.split(r"[^\w.-]", line)[0]
        for line in metadata.get_all("Requires-Dist", [])
        if "extra ==" not in line
    }
    locked = {
        line.split("==")[0] for line in dist.LOCKED.read_text(encoding="utf-8").splitlines() if "==" in line
    }

    assert asked
    assert asked - locked == set()


@pytest.mark.parametrize(
    "needed",
    [
        ".ci/run",
        ".github/workflows/gate.yml",
        "Dockerfile",
        "LICENSE",
        "Makefile",
        "compose.yaml",
        "deploy/bridgehead.service",
        "docs/setup.md",
        "release/dist.py",
        "requirements/build.txt",
        "tests/release/test_dist.py",
    ],
)
def test_the_sdist_holds_everything_that_a_clone_has(built: tuple[Path, Path], needed: str) -> None:
    with tarfile.open(built[1]) as archive:
        assert f"bridgehead-{__version__}/{needed}" in archive.getnames()


def test_the_sdist_makes_the_same_wheel_again(built: tuple[Path, Path], tmp_path: Path) -> None:
    with tarfile.open(built[1]) as archive:
        archive.extractall(tmp_path / "source", filter="data")

    dist.run(
        *(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path)),
        str(tmp_path / "source" / f"bridgehead-{__version__}"),
        environment={"SOURCE_DATE_EPOCH": str(MOMENT)},
    )

    (again,) = tmp_path.glob("*.whl")
    assert hashlib.sha256(again.read_bytes()).digest() == hashlib.sha256(built[0].read_bytes()).digest()
