"""Supervision: several processes that serve the same port, and the one that watches over them.

The parent binds, forks and waits. Each worker beats once a second from its event loop; one that dies or stops
beating is replaced, after a pause of its own that grows with its own failures. A signal that ends the parent
ends them all, and it waits for them. Where the parent itself is killed, every worker notices that the pipe
that only the parent holds has closed, and ends.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import NoReturn

from bridgehead.runtime import logs
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.manifest import Manifest
from bridgehead.runtime.timing import Backoff

from ..systemd import ALIVE, READY, STOPPING, ServiceManager

ENDING = (signal.SIGTERM, signal.SIGINT, *((signal.SIGQUIT,) if hasattr(signal, "SIGQUIT") else ()))
_HEARD = (*ENDING, signal.SIGHUP, signal.SIGCHLD) if hasattr(signal, "SIGHUP") else ENDING
AGAIN = Backoff(base=0.5, limit=30.0, jitter=0.0)
BEAT_SECONDS = 1.0
STALLED_SECONDS = 30.0
"""A worker without a beat for this long is replaced. Longer than any honest turn of the loop, shorter than
the 60 s after which most clients give up."""
_STEADY_SECONDS = 60.0
"""A worker that lived this long did not fail at its start."""

Serve = Callable[[int, Callable[[], None]], None]
"""Serves as the worker of a number; calls the function it is given once a second, from its event loop."""

log = logs.logger("host.workers")


def check_bridges(manifests: Mapping[str, Manifest], workers: int) -> None:
    """Refuse to serve a bridge by several processes that only one can serve."""
    if not hasattr(os, "fork"):
        raise BridgeError("This system cannot serve with several workers.", next_step="Use --workers 1.")
    for name, manifest in manifests.items():
        if manifest.single_process:
            others = ",".join(other for other in manifests if other != name)
            step = (
                f"Leave it out with --bridges {others}, or use --workers 1." if others else "Use --workers 1."
            )
            raise BridgeError(
                f"{name} cannot be served by {workers} workers: {manifest.single_process}", next_step=step
            )


def run(listening: socket.socket, count: int, serve: Serve, manager: ServiceManager) -> None:
    """Serve a socket with several processes until a signal ends it."""
    Supervisor(listening, serve, manager).run(count)


class _Worker:
    """One worker and how it fares; the same across the processes that take its place."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.pid = 0
        """0 while none runs."""
        self.beats = -1
        """The descriptor that its heartbeat comes from."""
        self.started = 0.0
        self.beat_at = 0.0
        self.failures = 0
        self.start_at = 0.0
        """When the next one is to be started, where none runs."""


class Supervisor:
    """The parent of the workers."""

    def __init__(self, listening: socket.socket, serve: Serve, manager: ServiceManager) -> None:
        self._listening = listening
        self._serve = serve
        self._manager = manager
        self._workers: list[_Worker] = []
        self._is_ending = False
        self._lifeline, self._lifeline_end = os.pipe()
        """Readable for a worker only when the parent is gone, which alone holds the other end."""

    def run(self, count: int) -> None:
        """Start all, replace those that die or stall, and end with a signal."""
        woken, waking = os.pipe()
        os.set_blocking(waking, False)
        os.set_blocking(woken, False)
        signal.set_wakeup_fd(waking)
        for number in _HEARD:
            signal.signal(number, self._hear)
        ignore_signals()
        self._workers = [_Worker(index) for index in range(count)]
        for worker in self._workers:
            self._start(worker)
        self._manager.tell(READY)
        while self._running() or not self._is_ending:
            self._manager.tell(ALIVE)
            beats = {worker.beats: worker for worker in self._running()}
            ready, _, _ = select.select([woken, *beats], [], [], self._next_wait())
            for descriptor in ready:
                _drain(descriptor)
                if descriptor in beats:
                    beats[descriptor].beat_at = time.monotonic()
            self._reap()
            self._replace()

    def _running(self) -> list[_Worker]:
        return [worker for worker in self._workers if worker.pid]

    def _next_wait(self) -> float:
        """How long nothing is to be done, unless something happens."""
        now = time.monotonic()
        due = [worker.start_at - now for worker in self._workers if not worker.pid and not self._is_ending]
        watched = self._manager.watchdog_seconds / 3 or BEAT_SECONDS
        return max(0.0, min([BEAT_SECONDS, watched, *due]))

    # --- starting -------------------------------------------------------------------------------------------

    def _start(self, worker: _Worker) -> None:
        hearing, beating = os.pipe()
        for end in (hearing, beating):
            os.set_blocking(end, False)
        signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)  # until both know what to do with one
        pid = os.fork()
        if pid == 0:
            os.close(hearing)
            self._be_worker(worker.index, beating)
        os.close(beating)
        worker.pid, worker.beats = pid, hearing
        worker.started = worker.beat_at = time.monotonic()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEARD)
        if self._is_ending:  # since it was decided to start it, so it got no signal
            _signal(pid, signal.SIGTERM)
        log.info("a worker was started", worker=worker.index, pid=pid)

    def _be_worker(self, index: int, beating: int) -> NoReturn:
        """Serve, as the child; never return into what the parent does."""
        signal.set_wakeup_fd(-1)
        for number in _HEARD:
            signal.signal(number, signal.SIG_DFL)
        if hasattr(signal, "SIGHUP"):
            signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until it can reload
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEARD)
        os.close(self._lifeline_end)
        for other in self._running():
            os.close(other.beats)
        threading.Thread(target=_end_with_parent, args=(self._lifeline,), daemon=True).start()

        def beat() -> None:
            with suppress(OSError):  # the parent has not read for long, or is gone
                os.write(beating, b".")

        status = 1
        try:
            self._serve(index, beat)
            status = 0
        except Exception as failure:  # noqa: BLE001  (the parent starts another one)
            log.warn("a worker failed", worker=index, problem=repr(failure))
        finally:
            sys.stderr.flush()
            os._exit(status)

    # --- replacing ------------------------------------------------------------------------------------------

    def _reap(self) -> None:
        for pid, status in _ended():
            worker = next((one for one in self._running() if one.pid == pid), None)
            if worker is None:
                continue
            os.close(worker.beats)
            worker.pid = 0
            if self._is_ending:
                continue
            now = time.monotonic()
            worker.failures = 0 if now - worker.started > _STEADY_SECONDS else worker.failures + 1
            worker.start_at = now + AGAIN.delay(worker.failures, lambda: 0.5)
            code = os.waitstatus_to_exitcode(status)
            log.error("a worker died", worker=worker.index, pid=pid, status=code)

    def _replace(self) -> None:
        now = time.monotonic()
        for worker in self._workers:
            if worker.pid and now - worker.beat_at > STALLED_SECONDS:
                log.error("a worker is blocked", worker=worker.index, pid=worker.pid)
                worker.beat_at = now
                _signal(worker.pid, signal.SIGKILL)  # one that is stopped reacts to nothing else
            elif not worker.pid and not self._is_ending and now >= worker.start_at:
                self._start(worker)

    def _hear(self, number: int, _frame: object) -> None:
        """Pass a signal on; what is to be done about it is done in the loop, which it has woken."""
        if number in ENDING:
            self._is_ending = True
            # As long as anybody holds it, clients connect; those whom no worker takes would be reset.
            self._listening.close()
            self._manager.tell(STOPPING)
            number = signal.SIGTERM
        elif number == signal.SIGCHLD:
            return
        for worker in self._running():
            _signal(worker.pid, number)


def ignore_signals() -> None:
    """Let signals that others give a meaning to end nothing here; workers inherit it."""
    for name in ("SIGUSR1", "SIGUSR2"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)


def _end_with_parent(lifeline: int) -> None:
    os.read(lifeline, 1)  # gives nothing, as soon as the parent is gone
    os.kill(os.getpid(), signal.SIGTERM)


def _ended() -> Iterator[tuple[int, int]]:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        yield pid, status


def _drain(descriptor: int) -> None:
    with suppress(BlockingIOError):
        while os.read(descriptor, 4096):
            pass


def _signal(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
