"""Durable, with a writer that is killed at any moment: nothing that was acknowledged is lost."""

import random
import subprocess
import sys
import time
from pathlib import Path

from bridgehead.runtime import durable
from tests.support.children import unmeasured
from tests.support.posix import KILL

AN_HOUR = 3600.0
KILLING_SECONDS = 3.0
LEAST_KILLS = 3

WRITER = """
import itertools, sys
from pathlib import Path
from bridgehead.runtime import durable
path = Path(sys.argv[1])
for n in itertools.count(int(sys.argv[2])):
    durable.replace(path, b"%08d" % n * (1 + n % 5 * 4000))
    sys.stdout.write(f"{n}\\n")
    sys.stdout.flush()
"""


def number_in(path: Path) -> int:
    """Give the number of the content, which has to be one that was written, and whole."""
    found = durable.read(path)  # on Windows nobody can open it in the moment in which it is replaced
    number = int(found[:8])
    assert found == b"%08d" % number * (1 + number % 5 * 4000)
    return number


def kill_one(path: Path, alive: float) -> None:
    """Let a writer go on from what is there, kill it, and see that no acknowledged content was lost."""
    start = number_in(path) + 1
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(start)], stdout=subprocess.PIPE, env=unmeasured()
    ) as writer:
        assert writer.stdout is not None
        first = writer.stdout.readline()
        until = time.monotonic() + alive
        last = start
        while time.monotonic() < until:
            seen = number_in(path)
            assert seen >= last
            last = seen
        writer.send_signal(KILL)
        acknowledged = int((first + writer.stdout.read()).splitlines()[-1])
    assert number_in(path) in {acknowledged, acknowledged + 1}


def test_a_kill_at_any_moment_leaves_the_old_or_the_new_content(tmp_path: Path) -> None:
    path = tmp_path / "file"
    durable.replace(path, b"%08d" % 0)
    moments = random.Random(7)  # noqa: S311 - moments to kill at, not secrets
    until = time.monotonic() + KILLING_SECONDS

    kills = 0
    while time.monotonic() < until or kills < LEAST_KILLS:  # a busy machine takes as long as it needs
        kill_one(path, moments.random() * 0.05)
        kills += 1

    durable.sweep(tmp_path, time.time() + AN_HOUR)
    assert [found.name for found in tmp_path.iterdir()] == ["file"]
