"""A pytest plugin that tries mutants: collects the tests once, then forks a process for each mutant.

The forks share everything that was imported, so a mutant costs what its tests cost and no start. A mutant is
tried on the tests that came by its place when the module was unchanged, and on those that start a process,
which may come by it there. Quick tests come first, and before them those that have killed a mutant already.
"""

import importlib
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
from tests.mutants.transplant import transplant
from tests.support import time_limit

LEAST_SECONDS = 30.0
LEAST_TEST_SECONDS = 20.0
TIMES_SLOWER = 5
"""A mutant that takes this many times longer than the unchanged module hangs, and that is noticed."""
STARTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec"}


class Passage:
    """Stands for the number of no mutant, and notes the mutants whose places a test comes by."""

    def __init__(self) -> None:
        self.numbers: set[int] = set()
        self.has_started_process = False

    def __eq__(self, number: object) -> bool:
        self.numbers.add(number)  # type: ignore[arg-type]
        return False

    def __ne__(self, number: object) -> bool:
        self.numbers.add(number)  # type: ignore[arg-type]
        return True

    __hash__ = object.__hash__

    def hear(self, event: str, _: object) -> None:
        """Hear of what the interpreter does."""
        self.has_started_process |= event in STARTS

    def take(self) -> dict[str, Any]:
        """Return what there was since the last time."""
        numbers, self.numbers = self.numbers, set()
        has_started, self.has_started_process = self.has_started_process, False
        return {"numbers": sorted(numbers), "has_started_process": has_started}


class Trials:
    """The mutants of one module, some of them being tried."""

    def __init__(self, session: pytest.Session, plan: dict[str, Any]) -> None:
        self._items = session.items
        self._session = session
        self._module: str = plan["module"]
        self._jobs: int = plan["jobs"]
        self._at_import = set(plan["at_import"])
        self._results = Path(plan["results"])
        self._folder = Path(plan["folder"])
        self._observed = self._results.with_name("observed.json")
        self._tests: dict[str, dict[str, Any]] = {}
        """By test, how long it took on the unchanged module, and what it came by."""
        self._running: dict[int, tuple[int, int, float, float]] = {}
        """The number of the mutant, the end of its pipe, when it began and when it hangs, by process."""
        self._killers: set[str] = set()

    def run(self, numbers: list[int]) -> None:
        """Try these mutants, after the unchanged module."""
        importlib.import_module(self._module)
        self._start(0)
        killer = self._wait()
        if killer is not None:
            pytest.exit(f"The tests fail on the unchanged module: {killer}", returncode=3)
        self._tests = json.loads(self._observed.read_text(encoding="utf-8"))
        self._items.sort(key=lambda item: self._tests[item.nodeid]["seconds"])
        for number in numbers:
            if len(self._running) == self._jobs:
                self._wait()
            self._start(number)
        while self._running:
            self._wait()
        self._check_killers()

    def _check_killers(self) -> None:
        """Run what noticed a mutant once more without one: a test that fails by now tells nothing."""
        self._items = [item for item in self._items if item.nodeid in self._killers]
        self._start(0)
        killer = self._wait()
        if killer is not None:
            pytest.exit(f"The test fails on the unchanged module as well: {killer}", returncode=3)

    def _start(self, number: int) -> None:
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            self._try(number, writing)
        os.close(writing)
        began = time.monotonic()
        self._running[pid] = number, reading, began, began + self._seconds(number)

    def _chosen(self, number: int) -> list[pytest.Item]:
        """Return the tests that could notice a mutant."""
        if not number or number in self._at_import:
            return self._items
        found = [(item, self._tests[item.nodeid]) for item in self._items]
        return [item for item, test in found if number in test["numbers"] or test["has_started_process"]]

    def _seconds(self, number: int) -> float:
        if not number:
            return 10 * LEAST_SECONDS
        usual: float = sum(self._tests[item.nodeid]["seconds"] for item in self._chosen(number))
        return max(LEAST_SECONDS, TIMES_SLOWER * usual)

    def _wait(self) -> str | None:
        """Wait for one to end, or end one that hangs; return the test that noticed it."""
        while True:
            for pid, (number, reading, _, end) in list(self._running.items()):
                hangs = time.monotonic() > end
                if hangs or os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                    return self._finish(pid, number, reading, hangs=hangs)
            time.sleep(0.01)

    def _finish(self, pid: int, number: int, reading: int, *, hangs: bool) -> str | None:
        *_, began, _ = self._running.pop(pid)
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
            seconds = round(time.monotonic() - began, 1)
            results.write(json.dumps({"number": number, "killer": killer, "seconds": seconds}) + "\n")
        return killer

    def _move_up(self, killer: str | None) -> None:
        for place, item in enumerate(self._items):
            if item.nodeid == killer:
                self._killers.add(killer)
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
        try:
            killer = self._first_failure(number, self._switch_on(number))
        except BaseException as error:  # noqa: BLE001 - whatever it is, the mutant was noticed
            killer = repr(error)
        os.write(writing, killer.encode()[:4000])
        os._exit(0)

    def _switch_on(self, number: int) -> Passage:
        os.environ[ENVIRONMENT] = str(number)
        passage = Passage()
        setattr(sys.modules[self._module], VARIABLE, number or passage)
        if not number:
            sys.addaudithook(passage.hear)
        if number in self._at_import and not transplant(sys.modules[self._module]):
            os._exit(0)  # unnoticed so far
        self._temporary(number).mkdir(parents=True)
        self._session.config._tmp_path_factory._basetemp = self._temporary(number)  # type: ignore[attr-defined]  # noqa: SLF001
        return passage

    def _first_failure(self, number: int, passage: Passage) -> str:
        observed = {}
        items = self._chosen(number)
        for item, following in zip(items, [*items[1:], None], strict=False):
            began = time.monotonic()
            if number:
                usual = self._tests[item.nodeid]["seconds"]
                time_limit.LIMIT = max(LEAST_TEST_SECONDS, TIMES_SLOWER * usual)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            observed[item.nodeid] = {"seconds": time.monotonic() - began, **passage.take()}
            if self._session.testsfailed:
                return item.nodeid
        if not number:
            self._observed.write_text(json.dumps(observed), encoding="utf-8")
        return ""


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    plan = json.loads(os.environ["MUTANTS_PLAN"])
    Trials(session, plan).run(plan["numbers"])
    return True
