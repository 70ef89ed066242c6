"""The single-file archive, made around a small command and run as a real process."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from release import archive, archive_main
from tests.support.waiting import PATIENCE

MOMENT = 1_700_000_000
COMMAND = """\
import subprocess, sys

def main():
    print(__file__, *sys.argv[1:], flush=True)
    if sys.argv[1:] == ["child"]:
        program = "import bridgehead.cli; print(bridgehead.cli.__file__)"
        subprocess.run([sys.executable, "-c", program], check=True)
    if sys.argv[1:] == ["origin"]:
        print(sys.modules["bridgehead"].__spec__.loader.archive)
    return 7
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with an installed command."""
    package = tmp_path / "site" / "bridgehead"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "cli.py").write_text(COMMAND, encoding="utf-8")
    return package.parent


@pytest.fixture
def made(site: Path, tmp_path: Path) -> Path:
    return archive.make(tmp_path / "bridgehead.pyz", site, MOMENT)


def run(made: Path, *arguments: str, cache: Path) -> subprocess.CompletedProcess[str]:
    # Isolated from this project: the archive's own content is all that it may find.
    environment = {"PATH": os.environ["PATH"], "BRIDGEHEAD_CACHE_DIR": str(cache)}
    return subprocess.run(
        [sys.executable, "-S", made, *arguments],
        env=environment,
        cwd=made.parent,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_an_archive_runs_the_command_with_its_arguments_and_its_exit_status(
    made: Path, tmp_path: Path
) -> None:
    done = run(made, "one", "two", cache=tmp_path / "cache")

    assert (done.returncode, done.stderr) == (7, "")
    assert done.stdout.split()[1:] == ["one", "two"]


def test_an_archive_unpacks_once_and_privately(made: Path, tmp_path: Path) -> None:
    first, second = (run(made, cache=tmp_path / "cache") for _ in range(2))

    (unpacked,) = (tmp_path / "cache").iterdir()
    assert first.stdout == second.stdout == f"{unpacked / 'bridgehead' / 'cli.py'}\n"
    assert os.name == "nt" or unpacked.stat().st_mode & 0o077 == 0


def test_archives_that_start_at_the_same_time_do_not_disturb_each_other(made: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor(6) as threads:
        done = list(threads.map(lambda _: run(made, cache=tmp_path / "cache"), range(6)))

    assert {(one.returncode, one.stderr) for one in done} == {(7, "")}
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_what_the_command_starts_finds_the_same_content(made: Path, tmp_path: Path) -> None:
    done = run(made, "child", cache=tmp_path / "cache")

    assert done.stdout.split() == [done.stdout.split()[0], "child", done.stdout.split()[0]]


def test_the_package_knows_the_archive_that_it_came_from(made: Path, tmp_path: Path) -> None:
    done = run(made, "origin", cache=tmp_path / "cache")

    assert done.stdout.splitlines()[1:] == [str(made)]


def test_another_python_is_told_which_one_is_needed(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_main, "machine", lambda: "cpython-307-amiga-68k")
    done = run(archive.make(tmp_path / "other.pyz", site, MOMENT), cache=tmp_path / "cache")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        "bridgehead: this archive was made for cpython-307-amiga-68k, and this Python is "
    )
    assert done.stderr.count("\n") == 1


def test_a_cache_that_cannot_be_written_is_named_with_the_way_out(made: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run(made, cache=tmp_path / "file")

    assert (done.returncode, done.stdout) == (2, "")
    assert "set BRIDGEHEAD_CACHE_DIR to a folder that can be written to" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_same_content_makes_the_same_bytes(site: Path, tmp_path: Path) -> None:
    first = archive.make(tmp_path / "first.pyz", site, MOMENT).read_bytes()
    for path in site.rglob("*.py"):
        os.utime(path, (1, 1))
    (site / "bridgehead" / "__pycache__").mkdir()
    (site / "bridgehead" / "__pycache__" / "cli.pyc").write_bytes(b"of this machine")

    assert archive.make(tmp_path / "second.pyz", site, MOMENT).read_bytes() == first
