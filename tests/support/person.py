"""A person at a machine: owns a home with nothing in it, and starts the installed command there.

With a terminal, standard input and standard error are that terminal, and standard output goes elsewhere, as
it does when an answer is piped on.
"""

import asyncio
import os
import select
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import Any

from tests.support import waiting
from tests.support.posix import pty

COMMAND = Path(sysconfig.get_path("scripts"), "bridgehead")
PATIENCE = 2 * waiting.PATIENCE
KEPT = ("PATH", "COVERAGE_", "MUTANT", "SYSTEMROOT")
"""How the names of variables begin that every process gets."""

HOMES = ("USERPROFILE", "APPDATA", "LOCALAPPDATA") if sys.platform == "win32" else ("HOME",)

Done = subprocess.CompletedProcess[str]
Interrupt = object()
"""What a person types who has seen enough."""


class Person:
    """Somebody with a home and a shell."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.state = home / "state"
        self.puzzles = home / "puzzles"
        (self.puzzles / "instructions").mkdir(parents=True)

    def environment(self, **settings: str) -> dict[str, str]:
        """Give what a process of theirs starts with; a setting of nothing is left out."""
        kept = {name: value for name, value in os.environ.items() if name.startswith(KEPT)}
        own = {
            **{name: str(self.home) for name in HOMES},
            "PYTHONIOENCODING": "utf-8",  # a pipe of Windows has another one by itself
            "XDG_CONFIG_HOME": str(self.home / "config"),
            "COLUMNS": "200",
            "TERM": "xterm",
            "BRIDGEHEAD_STATE_DIR": str(self.state),
            "AOC_DATA_DIR": str(self.puzzles),
            "BITBURNER_LISTEN": "127.0.0.1:0",
        }
        return kept | {name: value for name, value in (own | settings).items() if value}

    def run(self, *words: str, typed: str = "", **settings: str) -> Done:
        """Run the command to its end, without a terminal."""
        return subprocess.run(
            [COMMAND, *words],
            env=self.environment(**settings),
            cwd=self.home,
            input=typed,
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE,
            check=False,
        )

    async def runs(self, *words: str, **settings: str) -> Done:
        """Do the same beside a far side that lives in this loop."""
        return await asyncio.to_thread(self.run, *words, **settings)

    async def sits(self, *words: str, says: Any = (), **settings: str) -> tuple[int, str, str]:
        """Run the command at a terminal, typing each answer when its question has come.

        Gives the status, standard output, and what was on the terminal.
        """
        return await asyncio.to_thread(self._sit, words, list(says), settings)

    def _sit(
        self, words: tuple[str, ...], says: list[tuple[str, object]], settings: dict[str, str]
    ) -> tuple[int, str, str]:
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            [COMMAND, *words],
            env=self.environment(**settings),
            cwd=self.home,
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=theirs,
            start_new_session=True,
        ) as process:
            os.close(theirs)
            try:
                shown = _watched(process, ours, says)
                out, _ = process.communicate(timeout=PATIENCE)
            finally:
                process.kill()  # where it has not ended by itself
                os.close(ours)
        return process.returncode, out.decode(), shown


def _watched(process: subprocess.Popen[bytes], terminal: int, says: list[tuple[str, object]]) -> str:
    """Read a terminal until nobody is there any more, and type what is to be said."""
    deadline = time.monotonic() + PATIENCE
    shown, seen = b"", 0
    while chunk := _chunk(terminal, deadline):
        shown += chunk
        while says and (found := shown.find(says[0][0].encode(), seen)) >= 0:
            question, answer = says.pop(0)
            seen = found + len(question.encode())
            if answer is Interrupt:
                process.send_signal(signal.SIGINT)
            else:
                os.write(terminal, str(answer).encode())
    assert not says, f"never asked for {says[0][0]!r}: {shown!r}"
    return shown.decode()


def _chunk(terminal: int, deadline: float) -> bytes:
    ready, _, _ = select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))
    assert ready, "the terminal stayed open too long"
    try:
        return os.read(terminal, 65_536)
    except OSError:  # Linux says so when the last process has left
        return b""
