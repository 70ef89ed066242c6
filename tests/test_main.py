"""`python -m bridgehead` is the `bridgehead` command, for whoever has no scripts folder in the path."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.support.waiting import PATIENCE

COMMAND = Path(sysconfig.get_path("scripts"), "bridgehead.exe" if sys.platform == "win32" else "bridgehead")


def run(*command: str | Path) -> tuple[int, str, str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("arguments", "status"), [(["--version"], 0), (["--help"], 0), ([], 0), (["nonsense", "more"], 2)]
)
def test_the_module_answers_as_the_command_does(arguments: list[str], status: int) -> None:
    answer = run(sys.executable, "-m", "bridgehead", *arguments)

    assert answer == run(COMMAND, *arguments)
    assert answer[0] == status
