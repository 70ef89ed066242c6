"""Supervision: several processes that serve the same port, and the one that watches over them.

The parent binds, forks and waits. A worker that dies is replaced, with a pause that grows; a signal that ends
the parent ends them all, and it waits for them.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from typing import NoReturn

from bridgehead.runtime import logs
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.manifest import Manifest
from bridgehead.runtime.timing import Backoff

ENDING = (signal.SIGTERM, signal.SIGINT)
AGAIN = Backoff(base=0.5, most=30.0, jitter=0.0)
_STEADY_SECONDS = 60.0
"""A worker that lived this long did not fail at its start."""

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


def run(count: int, serve: Callable[[int], None]) -> None:
    """Serve with several processes until told to end."""
    Supervisor(serve).run(count)


class Supervisor:
    """The parent of the workers."""

    def __init__(self, serve: Callable[[int], None]) -> None:
        self._serve = serve
        self._workers: dict[int, tuple[int, float]] = {}
        """The number and the start of each worker, by its process id."""
        self._failures = 0
        self._is_ending = False

    def run(self, count: int) -> None:
        """Start all, replace those that die, and end when told to."""
        for number in ENDING:
            signal.signal(number, self._end)
        for index in range(count):
            self._start(index)
        while self._workers:
            self._reap(*os.wait())

    def _start(self, index: int) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)  # until both know what to do with one
        pid = os.fork()
        if pid == 0:
            self._be_worker(index)
        self._workers[pid] = (index, time.monotonic())
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        log.info("a worker was started", worker=index, pid=pid)

    def _be_worker(self, index: int) -> NoReturn:
        """Serve, as the child; never return into what the parent does."""
        for number in ENDING:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        status = 1
        try:
            self._serve(index)
            status = 0
        except Exception as failure:  # noqa: BLE001  (the parent starts another one)
            log.warn("a worker failed", worker=index, problem=repr(failure))
        finally:
            sys.stderr.flush()
            os._exit(status)

    def _reap(self, pid: int, status: int) -> None:
        index, started = self._workers.pop(pid, (None, 0.0))
        if index is None or self._is_ending:
            return
        self._failures = 0 if time.monotonic() - started > _STEADY_SECONDS else self._failures + 1
        log.error("a worker died", worker=index, pid=pid, status=os.waitstatus_to_exitcode(status))
        pause = AGAIN.delay(self._failures, lambda: 0.5)
        until = time.monotonic() + pause
        while time.monotonic() < until and not self._is_ending:
            time.sleep(0.05)
        if not self._is_ending:
            self._start(index)

    def _end(self, *_: object) -> None:
        self._is_ending = True
        for pid in tuple(self._workers):
            try:
                os.kill(pid, signal.SIGTERM)
            except ProcessLookupError:
                continue
