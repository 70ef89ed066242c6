"""Supervision: the parent of several workers that serve the same port.

The parent binds, forks and waits. Each worker sends a heartbeat once a second from its event loop. One that
dies or stops beating is replaced, after a pause that grows with its own failures. A signal that ends the
parent ends the workers, and the parent waits for them. If the parent is killed, the pipe that only it holds
open closes, and the workers end.
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
_SIGNALS = (*ENDING, signal.SIGHUP, signal.SIGCHLD) if hasattr(signal, "SIGHUP") else ENDING
RESTART_BACKOFF = Backoff(base=0.5, limit=30.0, jitter=0.0)
BEAT_SECONDS = 1.0
STALLED_SECONDS = 30.0
"""A worker without a beat for this long is replaced. Longer than any turn of the loop that still ends,
shorter than the 60 s after which most clients give up."""
_STEADY_SECONDS = 60.0
"""A worker that lived this long starts without a pause when it dies."""

Serve = Callable[[int, Callable[[], None]], None]
"""Serves as worker number `index`, and calls the given heartbeat once a second from its event loop."""

log = logs.logger("host.workers")


def check_bridges(manifests: Mapping[str, Manifest], workers: int) -> None:
    """Refuse several workers for a bridge that only one process can serve."""
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
    """Serve a socket with several workers until a signal ends them."""
    Supervisor(listening, serve, manager).run(count)


class _Worker:
    """The place of one worker; a process that dies is replaced in the same place."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.pid = 0
        """0 while no process runs."""
        self.beats = -1
        """The descriptor to read heartbeats from."""
        self.started = 0.0
        self.beat_at = 0.0
        self.failures = 0
        self.start_at = 0.0
        """When to start the next process, if none runs."""


class Supervisor:
    """The parent of the workers."""

    def __init__(self, listening: socket.socket, serve: Serve, manager: ServiceManager) -> None:
        self._listening = listening
        self._serve = serve
        self._manager = manager
        self._workers: list[_Worker] = []
        self._is_ending = False
        self._lifeline, self._lifeline_end = os.pipe()
        """Readable in a worker only once the parent, which alone holds the other end, is gone."""

    def run(self, count: int) -> None:
        """Start the workers, replace those that die or stall, and end with a signal."""
        woken, waking = os.pipe()
        os.set_blocking(waking, False)
        os.set_blocking(woken, False)
        signal.set_wakeup_fd(waking)
        for number in _SIGNALS:
            signal.signal(number, self._handle_signal)
        ignore_signals()
        self._workers = [_Worker(index) for index in range(count)]
        for worker in self._workers:
            self._start(worker)
        self._manager.notify(READY)
        while self._running() or not self._is_ending:
            self._manager.notify(ALIVE)
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
        """Return the seconds until something is due."""
        now = time.monotonic()
        due = [worker.start_at - now for worker in self._workers if not worker.pid and not self._is_ending]
        watched = self._manager.watchdog_seconds / 3 or BEAT_SECONDS
        return max(0.0, min([BEAT_SECONDS, watched, *due]))

    # --- starting -------------------------------------------------------------------------------------------

    def _start(self, worker: _Worker) -> None:
        beat_reader, beat_writer = os.pipe()
        for end in (beat_reader, beat_writer):
            os.set_blocking(end, False)
        # Blocked until parent and child have set their handlers.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        pid = os.fork()
        if pid == 0:
            os.close(beat_reader)
            self._run_worker(worker.index, beat_writer)
        os.close(beat_writer)
        worker.pid, worker.beats = pid, beat_reader
        worker.started = worker.beat_at = time.monotonic()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        if self._is_ending:  # the signal came before the fork, so the child missed it
            _signal(pid, signal.SIGTERM)
        log.info("a worker was started", worker=worker.index, pid=pid)

    def _run_worker(self, index: int, beat_writer: int) -> NoReturn:
        """Serve as the child; never returns to the parent's loop."""
        signal.set_wakeup_fd(-1)
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        if hasattr(signal, "SIGHUP"):
            signal.signal(signal.SIGHUP, signal.SIG_IGN)  # ignored until the worker can reload
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        os.close(self._lifeline_end)
        for other in self._running():
            os.close(other.beats)
        threading.Thread(target=_end_with_parent, args=(self._lifeline,), daemon=True).start()

        def beat() -> None:
            with suppress(OSError):  # the pipe is full, or the parent is gone
                os.write(beat_writer, b".")

        status = 1
        try:
            self._serve(index, beat)
            status = 0
        except Exception as failure:  # noqa: BLE001 - the parent starts another worker
            log.warn("a worker failed", worker=index, problem=repr(failure))
        finally:
            sys.stderr.flush()
            os._exit(status)

    # --- replacing ------------------------------------------------------------------------------------------

    def _reap(self) -> None:
        for pid, status in _ended():
            worker = next((running for running in self._running() if running.pid == pid), None)
            if worker is None:
                continue
            os.close(worker.beats)
            worker.pid = 0
            if self._is_ending:
                continue
            now = time.monotonic()
            worker.failures = 0 if now - worker.started > _STEADY_SECONDS else worker.failures + 1
            worker.start_at = now + RESTART_BACKOFF.delay(worker.failures, lambda: 0.5)
            code = os.waitstatus_to_exitcode(status)
            log.error("a worker died", worker=worker.index, pid=pid, status=code)

    def _replace(self) -> None:
        now = time.monotonic()
        for worker in self._workers:
            if worker.pid and now - worker.beat_at > STALLED_SECONDS:
                log.error("a worker is blocked", worker=worker.index, pid=worker.pid)
                worker.beat_at = now
                _signal(worker.pid, signal.SIGKILL)  # a stopped process reacts to nothing else
            elif not worker.pid and not self._is_ending and now >= worker.start_at:
                self._start(worker)

    def _handle_signal(self, number: int, _frame: object) -> None:
        """Forward a signal to the workers; the wake-up descriptor has woken the loop, which does the rest."""
        if number in ENDING:
            self._is_ending = True
            # While any process holds the socket, clients can connect, and those no worker accepts are reset.
            self._listening.close()
            self._manager.notify(STOPPING)
            number = signal.SIGTERM
        elif number == signal.SIGCHLD:
            return
        for worker in self._running():
            _signal(worker.pid, number)


def ignore_signals() -> None:
    """Ignore SIGUSR1 and SIGUSR2, which log rotation and others send; workers inherit that."""
    for name in ("SIGUSR1", "SIGUSR2"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)


def _end_with_parent(lifeline: int) -> None:
    os.read(lifeline, 1)  # returns at end of file, when the parent is gone
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
