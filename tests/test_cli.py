"""The installed command, run as the process that a person or an MCP client would start."""

import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

import pytest

COMMAND = Path(sysconfig.get_path("scripts"), "bridgehead.exe" if sys.platform == "win32" else "bridgehead")
RIGHT = "right would be: bridgehead --version, or bridgehead --help"


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def bridgehead(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run(COMMAND, *arguments)


def test_version_is_the_version_of_the_installed_distribution() -> None:
    done = bridgehead("--version")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"bridgehead {metadata.version('bridgehead')}\n"


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_names_every_option_and_goes_to_standard_output(option: str) -> None:
    done = bridgehead(option)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: bridgehead ")
    assert all(name in done.stdout for name in ("--version", "--help"))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "no command given"),
        (["nonsense"], "unknown command 'nonsense'"),
        (["--verbose"], "unknown command '--verbose'"),
        (["two\nlines"], r"unknown command 'two\nlines'"),
        (["--version", "please"], "--version takes nothing after it"),
    ],
)
def test_wrong_usage_is_answered_by_one_line_that_says_what_would_be_right(
    arguments: list[str], reason: str
) -> None:
    done = bridgehead(*arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"bridgehead: {reason}; {RIGHT}\n"


def test_importing_the_command_loads_nothing_but_itself() -> None:
    program = (
        "import sys; before = set(sys.modules); import bridgehead.cli; "
        "print(*sorted(set(sys.modules) - before))"
    )

    done = run(sys.executable, "-c", program)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["bridgehead", "bridgehead.cli"]
