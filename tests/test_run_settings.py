"""The settings of a run: it ends whatever a test does, and children can be interrupted."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.scheduling import BEGIN_FIRST

ROOT = Path(__file__).parents[1]
CONFTEST = "from tests.support.run_settings import *"
LIMIT = 3  # seconds, for a test that is meant to reach it

INTERRUPTIBLE = """
import asyncio, pytest, time

def test_that_is_quick_before(): pass

async def wait_for_ever():
    await asyncio.Event().wait()  # in a coroutine

async def test_a_coroutine():
    await wait_for_ever()

def test_a_plain_function():
    time.sleep(600)  # in a plain function

async def refuse():
    while True:
        try:
            await asyncio.sleep(600)  # in a task that ignores its cancellation
        except asyncio.CancelledError:
            pass

async def test_a_stubborn_task():
    task = asyncio.create_task(refuse())
    await asyncio.Event().wait()

@pytest.fixture
def slow():
    yield
    time.sleep(600)  # in a fixture of a test that has failed

def test_a_fixture(slow):
    assert not "this"

def test_that_is_quick_after(): pass
"""
UNINTERRUPTIBLE = """
import itertools

def test_that_is_quick(): pass

def test_a_library():
    max(itertools.repeat(0))  # never returns to the interpreter
"""
DEADLY = """
import os

def test_deadly(): os._exit(0)

def test_after(): pass
"""
INTERRUPTS = """
import signal, subprocess, sys

def test_a_child():
    program = "import signal as s; print([s.getsignal(n) is s.SIG_IGN for n in (s.SIGINT, s.SIGHUP)])"
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "[False, False]\\n"
"""


def test_tests_that_hang_fail_with_their_stacks_and_the_others_pass(tmp_path: Path) -> None:
    run = run_with_our_settings(tmp_path, INTERRUPTIBLE)
    # The two errors are of the fixture, and of the loop that the stubborn task keeps from closing.
    assert re.search(r"\b4 failed, 2 passed, 2 errors in ", run.stdout), run.stdout
    assert shown_lines(INTERRUPTIBLE, run.stdout) == {
        "in a coroutine",
        "in a plain function",
        "in a task that ignores its cancellation",
        "in a fixture of a test that has failed",
    }


def test_a_test_that_cannot_be_interrupted_shows_its_stack_and_the_run_ends(tmp_path: Path) -> None:
    run = run_with_our_settings(tmp_path, UNINTERRUPTIBLE)
    assert re.search(r"\b1 failed, 1 passed in ", run.stdout), run.stdout
    assert shown_lines(UNINTERRUPTIBLE, run.stderr) == {"never returns to the interpreter"}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_worker_that_dies_fails_one_test_and_the_run_goes_on_to_its_end(
    tmp_path: Path, workers: int
) -> None:
    for number in range(8):  # larger files come first, so the worker has finished some of them when it dies
        (tmp_path / f"test_{number}.py").write_text("".join(f"def test_{n}(): pass\n" for n in range(3)))

    run = run_with_our_settings(tmp_path, DEADLY, workers=workers)

    assert re.search(r"\b1 failed, 25 passed in ", run.stdout), run.stdout


def test_children_of_a_run_in_the_background_ignore_no_signal(tmp_path: Path) -> None:
    run = run_with_our_settings(tmp_path, INTERRUPTS, "sh", "-c", 'trap \'\' INT HUP && exec "$0" "$@"')
    assert re.search(r"\b1 passed in ", run.stdout), run.stdout


def shown_lines(module: str, output: str) -> set[str]:
    """Which lines with a comment appear in a stack: each is named by its comment."""
    marked = [(number, line) for number, line in enumerate(module.splitlines(), 1) if "  # " in line]
    return {
        line.partition("  # ")[2]
        for number, line in marked
        if re.search(rf'test_hanging\.py", line {number}\b', output)
    }


def test_every_file_that_is_to_begin_first_is_there() -> None:
    assert [file for file in BEGIN_FIRST if not (ROOT / file).exists()] == []


def run_with_our_settings(
    project: Path, module: str, *shell: str, workers: int = 1
) -> subprocess.CompletedProcess[str]:
    (project / "conftest.py").write_text(CONFTEST)
    (project / "test_hanging.py").write_text(module)
    settings = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(project), "-p", "no:cacheprovider"]
    settings += ["-n", str(workers), "--dist", "loadfile"]
    return subprocess.run(
        [
            *shell,
            sys.executable,
            "-m",
            "pytest",
            *settings,
            project,
        ],
        env={**os.environ, "BRIDGEHEAD_TEST_SECONDS": str(LIMIT)},
        cwd=project,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
