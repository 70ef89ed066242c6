"""Suite: runs test files in processes of the rig, several at once, each test bounded in time.

A process that hangs or dies fails the test that it was at; the rest of its files go on in another one.
"""

import os
import queue
import select
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.postgres_server import find_programs, running
from tests.support.redis_server import running_redis

from . import outcomes
from .rig import ROOT, Rig, as_windows

TEST_SECONDS = 120
"""How long one test may take; the process then writes where it is and ends."""
SILENCE_SECONDS = TEST_SECONDS + 60
"""How long a process may finish no test before it is ended from outside."""
EXIT_SECONDS = 15
"""How long a process may take to end when its tests are over; a thread that waits for a pipe may hold it."""
FILES_AT_ONCE = 8
"""Starting pytest takes seconds under Wine; a process that died repeats no more than these."""


class Outcome(NamedTuple):
    """What came of one test."""

    test: str
    event: str
    seconds: float
    text: str

    @property
    def package(self) -> str:
        """Return the part of the tests that it belongs to; what is in no package is of the whole product."""
        folder, slash, _ = self.test.removeprefix("tests/").partition("::")[0].partition("/")
        return folder if slash else "product"


def find_files(places: Sequence[str]) -> list[str]:
    """Return the test files at these places, as pytest names them."""
    files: set[Path] = set()
    for place in places:
        path = ROOT / place
        files |= {path} if path.is_file() else set(path.rglob("test_*.py"))
    return sorted(str(file.relative_to(ROOT)) for file in files)


def find_own_files() -> list[str]:
    """Return the test files that are in no package."""
    return sorted(str(file.relative_to(ROOT)) for file in (ROOT / "tests").glob("test_*.py"))


class Suite:
    """One run of test files on one rig."""

    def __init__(self, rig: Rig, until: float, options: Sequence[str] = ()) -> None:
        self._rig = rig
        self._until = until
        self._options = options
        self._folder = rig.home / "outcomes" / str(os.getpid())  # runs may overlap
        self._settings = {"BRIDGEHEAD_TEST_SECONDS": str(TEST_SECONDS)}
        self._redis_ports: queue.SimpleQueue[int] = queue.SimpleQueue()

    def run(self, files: Sequence[str], jobs: int) -> list[Outcome]:
        """Run files and return every test's outcome."""
        self._folder.mkdir(parents=True, exist_ok=True)
        batches = [files[start : start + FILES_AT_ONCE] for start in range(0, len(files), FILES_AT_ONCE)]
        with self._open_servers(jobs), ThreadPoolExecutor(jobs) as pool:
            found = list(pool.map(self._run_batch, range(len(batches)), batches))
        return [outcome for batch in found for outcome in batch]

    @contextmanager
    def _open_servers(self, jobs: int) -> Iterator[None]:
        """Run Linux's PostgreSQL for all, which gives each test a database, and a Redis for each process."""
        with ExitStack() as servers:
            if find_programs() is not None:
                server = servers.enter_context(running())
                self._settings["BRIDGEHEAD_TEST_POSTGRES_PORT"] = str(server.port)
            for _ in range(jobs):
                folder = Path(servers.enter_context(tempfile.TemporaryDirectory()))
                self._redis_ports.put(servers.enter_context(running_redis(folder)).port)
            yield

    def _run_batch(self, number: int, files: Sequence[str]) -> list[Outcome]:
        done: dict[str, Outcome] = {}
        before = -1
        while before < len(done) and self._until > time.monotonic():
            before = len(done)
            events, running, ended_well = self._run_process(number, files, list(done))
            done |= {test: Outcome(test, **rest) for test, rest in events.items()}
            if running is not None:
                said = self._log(number).read_text(encoding="utf-8", errors="replace")[-4000:]
                done[running] = Outcome(running, "failed", 0.0, f"{said}\nIt hung, or its process died.")
            if ended_well:
                _show(done.values())
                return list(done.values())
        return [
            *done.values(),
            Outcome(files[0], "failed", 0.0, f"Not finished in time, or died: {' '.join(files)}"),
        ]

    def _run_process(
        self, number: int, files: Sequence[str], done: Sequence[str]
    ) -> tuple[dict[str, dict[str, Any]], str | None, bool]:
        """Run files but for what is done.

        Returns new outcomes, the test that the process died in, and whether it came to its end.
        """
        report = self._folder / f"{number}.jsonl"
        report.unlink(missing_ok=True)
        without = self._folder / f"{number}.done"
        without.write_text("\n".join(done), encoding="utf-8")
        command = self._rig.command(
            *("-m", "pytest", "-n", "0", "-q", "-p", "no:cacheprovider"),
            "--continue-on-collection-errors",
            *(
                "-p",
                "tests.windows.outcomes",
                "--outcomes",
                as_windows(report),
                "--done",
                as_windows(without),
            ),
            *("--basetemp", f"C:\\t{os.getpid()}-{number}", *self._options, *files),
        )
        redis_port = self._redis_ports.get()
        with self._log(number).open("wb") as log:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=self._rig.environment(**self._settings, BRIDGEHEAD_TEST_REDIS_PORT=str(redis_port)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            assert process.stdout is not None
            with ThreadPoolExecutor(1) as pool:
                is_over = threading.Event()
                copying = pool.submit(_copy, process.stdout.fileno(), log, is_over)
                status = self._wait(process, report)
                with suppress(ProcessLookupError):  # what it started and left would keep its output open
                    os.killpg(process.pid, signal.SIGKILL)
                is_over.set()
                copying.result()
        self._redis_ports.put(redis_port)
        found, running = outcomes.read(report)
        events = {
            test: {name: event[name] for name in ("event", "seconds", "text")}
            for test, event in found.items()
        }
        return events, running, outcomes.is_finished(report) or (status in {0, 1, 5} and running is None)

    def _wait(self, process: subprocess.Popen[bytes], report: Path) -> int:
        """Wait for a process as long as it finishes tests; end it, and all that it started, otherwise."""
        heard = time.monotonic()
        size = -1
        while process.poll() is None:
            now = time.monotonic()
            new = report.stat().st_size if report.is_file() else 0
            if new != size:
                size, heard = new, now
            patience = EXIT_SECONDS if outcomes.is_finished(report) else SILENCE_SECONDS
            if now > min(heard + patience, self._until):
                os.killpg(process.pid, signal.SIGKILL)
                return -9
            time.sleep(0.1)
        return process.returncode

    def _log(self, number: int) -> Path:
        return self._folder / f"{number}.log"


def _copy(descriptor: int, log: Any, is_over: threading.Event) -> None:
    """Copy what a process says until it ends; what it left running may have its output open for ever."""
    while select.select([descriptor], [], [], 0.5)[0] or not is_over.is_set():
        if select.select([descriptor], [], [], 0)[0]:
            chunk = os.read(descriptor, 65_536)
            if not chunk:
                return
            log.write(chunk)
            log.flush()


def _show(found: Any) -> None:
    found = list(found)
    counts = Counter(outcome.event for outcome in found)
    where = sorted({outcome.test.split("::")[0] for outcome in found})
    print(f"{where[0] if where else '?'} …: {dict(counts)}", flush=True)
    for outcome in found:
        if outcome.event == "failed":
            last = outcome.text.strip().splitlines()
            print(f"  FAILED {outcome.test}: {last[-1] if last else ''}", flush=True)
