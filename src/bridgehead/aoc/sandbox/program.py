"""Program: run one program under limits, and measure its wall and CPU time. Blocks.

A shell starts the program on our signal and reports its end, through a socket that the program does not
inherit. So the time is that of the program alone, without the start of the isolation around it. A program
that can trace its parent can take over the socket and report an early end, so output after the report does
not count.
"""

from __future__ import annotations

import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import IO, BinaryIO

from msgspec import Struct

from .isolation import View, isolate

MEGABYTE = 1024 * 1024
_MARK = "BRIDGEHEAD_RUN"
"""An environment variable that marks a program's descendants."""
_WATCH_SECONDS = 0.1
_JOIN_SECONDS = 5.0
# The shell's standard input is a socket to us: it writes `r` when ready, waits for a line, runs the program,
# and ends by writing the CPU times. The program has its own standard input, not the socket.
_CLOCKED = 'input=$1; shift; printf r >&0; read -r go; "$@" <"$input"; status=$?; times >&0; exit $status'


class Limits(Struct, frozen=True):
    """Limits of a program; processes and memory are enforced on Linux only."""

    seconds: float = 60.0
    output_bytes: int = MEGABYTE
    processes: int = 256
    memory_bytes: int = 4096 * MEGABYTE


class EndedProgram(Struct, frozen=True):
    """How a program ended."""

    wall_ms: float
    cpu_ms: int | None
    """User and system time with all children that it waited for; None on Windows."""
    status: int
    problem: str
    """Which limit it broke; empty if none."""


class Job(Struct, frozen=True):
    """A program to run: in the view's folder, in isolation if there is a bubblewrap."""

    command: list[str]
    puzzle_input: Path
    environment: Mapping[str, str]
    view: View
    bubblewrap: str | None
    limits: Limits = Limits()


def run_program(job: Job, out: BinaryIO, err: BinaryIO) -> EndedProgram:
    """Run a program to its end, and copy what it prints. Raises OSError if it cannot be started."""
    return _Run(job).run(out, err)


class _Run:
    """One program while it runs. Only the first exceeded limit is reported."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._limits = job.limits
        self._mark = token_hex(8)
        self._problem = ""
        self._process: subprocess.Popen[bytes]
        self._is_over = threading.Event()

    def run(self, out: BinaryIO, err: BinaryIO) -> EndedProgram:
        job = self._job
        command = job.command
        if sys.platform != "win32":
            command = ["/bin/sh", "-c", _CLOCKED, "sh", str(job.puzzle_input), *command]
        if job.bubblewrap is not None:
            command = isolate(job.bubblewrap, command, job.view)
        ours, theirs = socket.socketpair()
        begin = time.perf_counter()
        try:
            with job.puzzle_input.open("rb") as input_file:
                self._process = subprocess.Popen(  # noqa: S603 - what the person typed
                    command,
                    stdin=input_file if sys.platform == "win32" else theirs.fileno(),
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    cwd=job.view.start,
                    env={**job.environment, _MARK: self._mark},
                    # A session of its own, so that all its descendants can be killed as one group.
                    start_new_session=True,
                )
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        pipes = [
            (pipe, to) for pipe, to in ((self._process.stdout, out), (self._process.stderr, err)) if pipe
        ]
        # Its writing end is closed when the program has ended, which wakes both readers.
        end, ends = os.pipe()
        readers = [threading.Thread(target=self._copy, args=(*pipe, end), daemon=True) for pipe in pipes]
        watcher = threading.Thread(target=self._watch, daemon=True)
        late = f"It took over {self._limits.seconds:g} s."
        timer = threading.Timer(self._limits.seconds, self._stop, (late,))
        for thread in (*readers, watcher, timer):
            thread.start()
        try:
            clock = _take_time(ours, ends)
            status = self._process.wait()
            spent = time.perf_counter() - begin
        finally:
            ours.close()
            timer.cancel()
            self._is_over.set()
            # After a normal end too: processes left behind would disturb the next run.
            self._kill()
            self._process.wait()
            for thread in readers:
                thread.join(_JOIN_SECONDS)
            os.close(end)
            for pipe, _ in pipes:
                pipe.close()
        cpu_ms = None
        if sys.platform != "win32" and not self._problem:
            if clock is None:
                self._problem = "It did not run to its end, or interfered with the clock."
            else:
                spent, cpu_ms = clock
        return EndedProgram(spent * 1000, cpu_ms, status, self._problem)

    def _copy(self, source: IO[bytes], target: BinaryIO, end: int) -> None:
        """Copy the output of the program up to its end, including the rest in the pipe at that moment."""
        room = self._limits.output_bytes
        size, is_over = 1 << 16, False
        with suppress(OSError, ValueError):  # closed by another thread
            while not is_over:
                if sys.platform != "win32":  # Windows cannot poll a pipe: there, read to its end
                    poll = select.poll()
                    for descriptor in (source.fileno(), end):
                        poll.register(descriptor, select.POLLIN)
                    ready = {descriptor for descriptor, _ in poll.poll()}
                    is_over = end in ready
                    if source.fileno() not in ready:
                        return
                    # One read takes everything in the pipe now; a second would include later output.
                    size = room + 1 if is_over else size
                data = os.read(source.fileno(), size)
                if not data:
                    return
                target.write(data[:room])
                room -= len(data)
                if room < 0:
                    self._stop(f"It printed over {self._limits.output_bytes / MEGABYTE:g} MB.")
                    return

    def _watch(self) -> None:
        """End a program that has too many processes or too much memory."""
        if sys.platform != "linux":
            return
        page = os.sysconf("SC_PAGESIZE")
        while not self._is_over.wait(_WATCH_SECONDS):
            running = descendants(self._process.pid)
            if len(running) > self._limits.processes:
                self._stop(f"It had over {self._limits.processes} processes.")
            used = sum(_resident_pages(pid) for pid in running) * page
            if used > self._limits.memory_bytes:
                self._stop(f"It used over {self._limits.memory_bytes / MEGABYTE:g} MB of memory.")

    def _stop(self, problem: str) -> None:
        self._problem = self._problem or problem
        self._kill()

    def _kill(self) -> None:
        """Kill the program and all its descendants (on Windows, only those that are still its children)."""
        if sys.platform == "win32":
            subprocess.run(  # noqa: S603 - the same as everywhere on Windows
                ["taskkill", "/T", "/F", "/PID", str(self._process.pid)],  # noqa: S607
                capture_output=True,
                check=False,
            )
            self._process.kill()  # taskkill may be missing, or not know /T
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        # A daemon (double fork, new session) is not in the group. In isolation it ended with its namespace.
        if sys.platform == "linux":
            for pid in _marked(self._mark):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)


def _take_time(shell: socket.socket, ends: int) -> tuple[float, int] | None:
    """Start the program; return wall seconds and CPU milliseconds. None unless exactly one end was reported.

    At the end `ends` is closed.
    """
    with suppress(ConnectionError):
        try:
            if shell.recv(1) != b"r":
                return None
            begin = time.perf_counter()
            shell.sendall(b"\n")
            report = shell.recv(1024)
            end = time.perf_counter()
        finally:
            os.close(ends)
        while more := shell.recv(1024):
            report += more
        # The second of two lines is user and system time of the shell's children: 0m0.28s 0m0.01s
        # bash writes the decimal point of the person's language.
        match = re.fullmatch(rb"[^\n]+\n(\d+)m([\d.]+)s (\d+)m([\d.]+)s\n", report.replace(b",", b"."))
        if match:
            user, more_user, system, more_system = map(float, match.groups())
            return end - begin, round((60 * (user + system) + more_user + more_system) * 1000)
    return None


def descendants(pid: int) -> list[int]:
    """Return all descendants of a process."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208 - 300 strings, ten times a second
        if entry.isdigit():
            with suppress(OSError, IndexError, ValueError), open(f"/proc/{entry}/stat", "rb") as file:  # noqa: PTH123
                # The name in parentheses may have spaces in it; the parent is the second field after it.
                parent = int(file.read().rpartition(b")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry))
    pids: list[int] = []
    waiting = [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        pids += below
        waiting += below
    return pids


def _resident_pages(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1])
    except (OSError, IndexError, ValueError):
        return 0  # it has ended


def _marked(mark: str) -> list[int]:
    marker = f"{_MARK}={mark}".encode()
    pids = []
    for entry in os.listdir("/proc"):  # noqa: PTH208 - as above
        if entry.isdigit():
            with suppress(OSError):
                if marker in Path(f"/proc/{entry}/environ").read_bytes().split(b"\0"):
                    pids.append(int(entry))
    return pids
