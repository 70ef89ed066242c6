"""A pytest plugin that tries mutants: collects the tests once, then forks a process for each mutant.

The forks share everything that was imported, so a mutant costs what its tests cost and no start. Quick tests
come first, and before them those that have killed a mutant already.
"""

import json
import os
import shutil
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.mutation import ENVIRONMENT, VARIABLE

LEAST_SECONDS = 30.0
TIMES_SLOWER = 5
"""A mutant that takes this many times longer than the unchanged module hangs, and that is noticed."""


class Trials:
    """The mutants of one module, some of them being tried."""

    def __init__(self, session: pytest.Session, plan: dict[str, Any]) -> None:
        self._items = session.items
        self._session = session
        self._module: str = plan["module"]
        self._jobs: int = plan["jobs"]
        self._results = Path(plan["results"])
        self._folder = Path(plan["folder"])
        self._durations = Path(plan["results"]).with_name("durations.json")
        self._seconds = 10 * LEAST_SECONDS
        self._running: dict[int, tuple[int, int, float]] = {}
        """The number of the mutant, the end of its pipe and when it began, by process."""

    def run(self, numbers: list[int]) -> None:
        """Try these mutants, after the unchanged module."""
        began = time.monotonic()
        self._start(0)
        killer = self._wait()
        if killer is not None:
            pytest.exit(f"The tests fail on the unchanged module: {killer}", returncode=3)
        self._seconds = max(LEAST_SECONDS, TIMES_SLOWER * (time.monotonic() - began))
        took = json.loads(self._durations.read_text(encoding="utf-8"))
        self._items.sort(key=lambda item: took[item.nodeid])
        for number in numbers:
            if len(self._running) == self._jobs:
                self._wait()
            self._start(number)
        while self._running:
            self._wait()

    def _start(self, number: int) -> None:
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            self._try(number, writing)
        os.close(writing)
        self._running[pid] = number, reading, time.monotonic()

    def _wait(self) -> str | None:
        """Wait for one to end, or end one that hangs; return the test that noticed it."""
        while True:
            for pid, (number, reading, began) in list(self._running.items()):
                hangs = time.monotonic() - began > self._seconds
                if hangs or os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                    return self._finish(pid, number, reading, hangs=hangs)
            time.sleep(0.01)

    def _finish(self, pid: int, number: int, reading: int, *, hangs: bool) -> str | None:
        del self._running[pid]
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)  # with whatever the tests have started
        _, status = os.waitpid(pid, 0)
        with os.fdopen(reading, "rb") as pipe:
            os.set_blocking(reading, False)
            killer: str | None = (pipe.read() or b"").decode() or None
        shutil.rmtree(self._temporary(number), ignore_errors=True)
        if killer is None and (hangs or status):
            killer = "it hangs" if hangs else f"its process ends with {status}"
        self._move_up(killer)
        with self._results.open("a", encoding="utf-8") as results:
            results.write(json.dumps({"number": number, "killer": killer}) + "\n")
        return killer

    def _move_up(self, killer: str | None) -> None:
        for place, item in enumerate(self._items):
            if item.nodeid == killer:
                self._items.insert(0, self._items.pop(place))
                return

    def _temporary(self, number: int) -> Path:
        return self._folder / f"mutant-{number}"

    # --- in a process of its own ---------------------------------------------------------------------------

    def _try(self, number: int, writing: int) -> None:
        os.setsid()
        quiet = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(quiet, descriptor)
        self._switch_on(number)
        try:
            killer = self._first_failure()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the mutant was noticed
            killer = repr(error)
        os.write(writing, killer.encode()[:4000])
        os._exit(0)

    def _switch_on(self, number: int) -> None:
        os.environ[ENVIRONMENT] = str(number)
        if self._module in sys.modules:
            setattr(sys.modules[self._module], VARIABLE, number)
        self._temporary(number).mkdir(parents=True)
        self._session.config._tmp_path_factory._basetemp = self._temporary(number)  # type: ignore[attr-defined]  # noqa: SLF001

    def _first_failure(self) -> str:
        took = {}
        for item, following in zip(self._items, [*self._items[1:], None], strict=True):
            began = time.monotonic()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            took[item.nodeid] = time.monotonic() - began
            if self._session.testsfailed:
                return item.nodeid
        self._durations.write_text(json.dumps(took), encoding="utf-8")
        return ""


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    plan = json.loads(os.environ["MUTANTS_PLAN"])
    Trials(session, plan).run(plan["numbers"])
    return True
