"""The pytest plugin: a run fails if a bridge has problems."""

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

from tests.commands.test_check import write
from tests.support.person import Person


def test_pytest_fails_if_a_bridge_has_problems(person: Person, tmp_path: Path) -> None:
    server = write(tmp_path, value='"five"')
    words = [sys.executable, "-m", "pytest", "-q", "--bridgehead", server, str(tmp_path)]
    if not entry_points(group="pytest11", name="bridgehead"):  # installed before there was a plugin
        words[3:3] = ["-p", "bridgehead.commands.pytest_plugin"]

    done = subprocess.run(
        words, capture_output=True, text=True, cwd=tmp_path, env=person.environment(), check=False
    )

    assert "price returned a result that breaks its declared type" in done.stdout + done.stderr
    assert done.returncode == 1
