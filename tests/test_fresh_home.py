"""A fresh home: each command that is printed as the next step works as printed, up to a call of a tool."""

import os
import re
import select
import signal
import subprocess
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import tasks
from tests.support.ports import free_port
from tests.support.posix import pty
from tests.support.waiting import PATIENCE

COMMAND = r"(?:[A-Z_]+=\S+ )*(?:bridgehead|export) "
IN_TEXT = re.compile(rf"`({COMMAND}[^`]+)`")
ON_A_LINE = re.compile(rf"^\s*(?:Next[^:]*: *|Connect a client: *)?({COMMAND}.+?)(?: +#.*)?$")
KEEPS_RUNNING = re.compile(r"bridgehead (?:\w+ simulate|serve)\b")
MAY_FIND_PROBLEMS = re.compile(r"bridgehead (?:\w+ )?doctor\b")
"""Its exit status is a diagnosis; what it prints leads on."""


class Terminal:
    """A terminal with an empty home, in a checkout after `make install`."""

    def __init__(self, home: Path, checkout: Path) -> None:
        self._folder = checkout
        self._exports: list[str] = []
        self._running: list[tuple[subprocess.Popen[bytes], int]] = []
        self.typed: list[str] = []
        self._environment = {
            "HOME": str(home),
            "PATH": os.defpath,
            "TERM": "xterm",
            "COLUMNS": "500",
            "BITBURNER_LISTEN": f"127.0.0.1:{free_port()}",
            "MCP_SERVER_PORT": "0",
        }

    def type(self, command: str, *answers: str, may_fail: bool = False) -> str:
        """Run a command and return its output; a server's up to its first printed command."""
        self.typed.append(command)
        if command.startswith("export "):
            self._exports.append(command)
            return ""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            ["/bin/sh", "-c", "\n".join([*self._exports, command])],
            env=self._environment,
            cwd=self._folder,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self._running.append((process, ours))
        if re.search(r"bridgehead install \S+ mercury", command) and "--" not in command:
            answers = answers or ("2",)  # the daily budget, which it asks for
        os.write(ours, "".join(f"{answer}\n" for answer in answers).encode())
        shown, deadline = "", time.monotonic() + PATIENCE
        while chunk := _read(ours, deadline):
            shown += chunk
            if KEEPS_RUNNING.search(command) and printed_commands(shown):
                return shown
        status = process.wait(PATIENCE)
        assert status == 0 or may_fail or MAY_FIND_PROBLEMS.search(command), f"{command} failed:\n{shown}"
        return shown

    def follow(self, text: str, goal: str) -> str:
        """Type each printed command, and those it prints, up to the goal; return the goal's output."""
        for printed in printed_commands(text):
            command = printed.replace("CLIENT", "cursor")
            if command in self.typed:
                continue
            shown = self.type(command)
            if goal in command:
                return shown
            if reached := self.follow(shown, goal):
                return reached
        return ""

    def leave(self) -> None:
        """Press Ctrl+C where something still runs."""
        for process, ours in self._running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)
                process.wait(PATIENCE)
            os.close(ours)


def printed_commands(text: str) -> list[str]:
    """Return the commands in a text: in backticks, or alone on a line."""
    found: list[str] = []
    for line in text.splitlines():
        alone = ON_A_LINE.match(line)
        found += [alone[1]] if alone else IN_TEXT.findall(line)
    return found


def _read(terminal: int, deadline: float) -> str:
    ready, _, _ = select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))
    assert ready, "the terminal stayed open too long"
    try:
        return os.read(terminal, 65_536).decode(errors="replace").replace("\r\n", "\n")
    except OSError:  # Linux, once the last process has closed it
        return ""


@pytest.fixture
def terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Terminal]:
    """A terminal that finds `bridgehead`, because the first line that `make install` prints was typed."""
    home, checkout = tmp_path / "home", tmp_path / "checkout"
    home.mkdir()
    (checkout / ".runtime").mkdir(parents=True)
    (checkout / ".runtime" / "bin").symlink_to(sysconfig.get_path("scripts"))
    tasks.say_next()
    find, install = printed_commands(capsys.readouterr().out)
    assert install == "bridgehead install"
    terminal = Terminal(home, checkout)
    terminal.type(find)
    yield terminal
    terminal.leave()


TOOLS = {
    "aoc": ("bridgehead call aoc fetch_instruction", "Lanterns"),
    "bitburner": ("bridgehead call bitburner list_servers", "home"),
    "mercury": ("bridgehead call mercury mercury_list_models", "mercury-2"),
}


@pytest.mark.parametrize("bridge", TOOLS)
def test_what_install_prints_leads_to_a_tool_call(terminal: Terminal, bridge: str) -> None:
    goal, answer = TOOLS[bridge]
    budget = ["2"] if bridge == "mercury" else []
    installed = terminal.type("bridgehead install", "cursor", bridge, *budget)

    assert "Next:" in installed
    assert answer in terminal.follow(installed, goal), terminal.typed


@pytest.mark.parametrize("bridge", TOOLS)
def test_what_doctor_prints_leads_to_a_tool_call(terminal: Terminal, bridge: str) -> None:
    goal, answer = TOOLS[bridge]

    assert answer in terminal.follow(terminal.type(f"bridgehead doctor {bridge}"), goal), terminal.typed


def test_what_serve_prints_connects_a_client_that_works(terminal: Terminal) -> None:
    served = terminal.type("bridgehead serve")

    assert "Everything in use works." in terminal.follow(served, "bridgehead doctor http")


def test_a_call_without_puzzles_says_how_to_make_one(terminal: Terminal) -> None:
    failed = terminal.type("bridgehead call aoc fetch_instruction day=1", may_fail=True)
    terminal.typed.clear()  # it is offered again, and works then

    assert "not found" in failed
    assert "Lanterns" in terminal.follow(failed, "bridgehead call aoc")
