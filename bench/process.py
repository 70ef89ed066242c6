"""A server process under measurement: how it is started, watched and ended."""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Timer
from types import TracebackType
from typing import Self


class NotRunning(Exception):
    """A server that did not start, or stopped answering; the text says why, in plain words."""


class Process:
    """A server with pipes for stdin and stdout; it is killed, with processes of its own, when it is left."""

    def __init__(self, command: tuple[str, ...]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self.started = time.perf_counter()
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,
            start_new_session=True,
        )
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self.stdin = self._child.stdin.fileno()
        self.stdout = self._child.stdout.fileno()
        self.pid = self._child.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout, self._errors):
            if pipe is not None:
                pipe.close()

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Kill the process if the block takes longer than this; its pipes then end the wait."""
        watch = Timer(seconds, self._child.kill)
        watch.daemon = True
        watch.start()
        try:
            yield
        except BrokenPipeError:
            raise NotRunning(self.complaint()) from None
        finally:
            watch.cancel()

    @contextmanager
    def beside_us(self) -> Iterator[None]:
        """Keep the server on one core with us, so that nobody waits for a sleeping core to wake up."""
        cores = os.sched_getaffinity(0)
        try:
            self._stay_on({max(cores)})
            yield
        finally:
            self._stay_on(cores)

    def _stay_on(self, cores: set[int]) -> None:
        """Let every thread of the server, and this one, run on these cores only."""
        os.sched_setaffinity(0, cores)
        for thread in Path(f"/proc/{self._child.pid}/task").glob("*"):
            with suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread.name), cores)

    def finish(self, seconds: float) -> None:
        """Close stdin and wait for the process to end by itself."""
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait(seconds)

    @property
    def alive(self) -> bool:
        """Whether the process is still there."""
        return self._child.poll() is None

    def memory(self) -> float:
        """Return the resident memory of the process, in MB."""
        for line in Path(f"/proc/{self._child.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise NotRunning(self.complaint())

    def complaint(self) -> str:
        """Return the last line the process wrote to stderr, or that it said nothing."""
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1][:200] if lines else "it stopped answering and left no message"


class RunQueue:
    """How long processes that were ready to run had to wait for a core: the machine's part of a wait.

    Linux counts it for each thread; these are the main threads, which run the event loops, and those that are
    named beside them.
    """

    def __init__(self, *pids: int, threads: Iterable[int] = ()) -> None:
        self._paths = [f"/proc/{pid}/schedstat" for pid in (*pids, *threads)]

    def waited_ms(self) -> float:
        """Return how long they have waited so far, together."""
        return sum(int(Path(path).read_text().split()[1]) for path in self._paths) / 1e6
