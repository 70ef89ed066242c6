"""Fuzzer: mutates what is known, and keeps whatever reaches a line in a way that nothing did before.

Coverage is counted by `sys.settrace` in the modules of the target alone: a step from one line to another is
one place. A failing input is a finding; it goes into the corpus, and so does, made small, one that is new.
"""

import asyncio
import random
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType, ModuleType
from typing import Any

from tests.fuzz import http_connection, json_rpc
from tests.fuzz.mutator import Mutator

HANG_SECONDS = 60
"""How long one input may take; the largest takes half a second, and more on a busy machine."""
MOST_SHRINKING = 200

Step = tuple[str, int, int]


@dataclass(frozen=True)
class Target:
    """What is fuzzed: how an input is checked, where coverage counts, what to begin with."""

    name: str
    check: Callable[[bytes, int], Coroutine[Any, Any, None]]
    modules: Sequence[ModuleType]
    seeds: Sequence[bytes]
    words: Sequence[bytes]


TARGETS = {
    one.name: one
    for one in (
        Target(
            "http",
            http_connection.check,
            http_connection.MODULES,
            http_connection.SEEDS,
            http_connection.WORDS,
        ),
        Target("jsonrpc", json_rpc.check, json_rpc.MODULES, json_rpc.SEEDS, json_rpc.WORDS),
    )
}


class Hangs(Exception):
    """An input took too long."""


@dataclass
class Findings:
    """What a search came to."""

    inputs: int = 0
    steps: set[Step] = field(default_factory=set)
    new: list[bytes] = field(default_factory=list)
    failures: list[tuple[bytes, BaseException]] = field(default_factory=list)


class Fuzzer:
    """A search of one target."""

    def __init__(self, target: Target, seed: int) -> None:
        self._target = target
        self._dice = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
        self._mutator = Mutator(self._dice, target.words)
        self._files = {module.__file__ for module in target.modules}
        self._known = list(target.seeds)
        self.findings = Findings()

    def run(self, kept: Sequence[bytes], until: Callable[[Findings], bool]) -> Findings:
        """Try the seeds and what is kept, then mutate until told to end; end at the first failure."""
        self._known += kept
        with asyncio.Runner() as runner:
            for data in tuple(self._known):
                self.findings.steps |= self._try(runner, data)
            while not until(self.findings) and not self.findings.failures:
                data = self._mutator.mutate(self._known)
                fresh = self._try(runner, data) - self.findings.steps
                if fresh and not self.findings.failures:
                    self._keep(self._shrink(runner, data, fresh))
        return self.findings

    def _keep(self, data: bytes) -> None:
        self._known.append(data)
        self.findings.new.append(data)

    def _try(self, runner: asyncio.Runner, data: bytes) -> set[Step]:
        """Check one input, and return the steps it took; a failure is noted."""
        self.findings.inputs += 1
        steps: set[Step] = set()
        try:
            with _time_limit(), _traced(self._files, steps):
                runner.run(self._target.check(data, self.findings.inputs))
        except Exception as problem:  # noqa: BLE001 - whatever it is, it is a finding
            self.findings.failures.append((data, problem))
        return steps

    def _shrink(self, runner: asyncio.Runner, data: bytes, fresh: set[Step]) -> bytes:
        """Take parts away as long as what is new about the input stays."""
        tries, size = 0, max(1, len(data) // 2)
        while tries < MOST_SHRINKING:
            for start in range(0, len(data), size):
                shorter = data[:start] + data[start + size :]
                tries += 1
                if fresh <= self._try(runner, shorter) and shorter:
                    data = shorter
                    break
                if self.findings.failures or tries >= MOST_SHRINKING:
                    break
            else:
                if size == 1:
                    break
                size //= 2
            if self.findings.failures:
                break
        self.findings.steps |= fresh
        return data


@contextmanager
def _traced(files: set[str | None], steps: set[Step]) -> Iterator[None]:
    """Note every step from line to line in some files."""

    def enter(frame: FrameType, _event: str, _argument: object) -> Callable[..., Any] | None:
        file = frame.f_code.co_filename
        if file not in files:
            return None
        before = 0

        def move(frame: FrameType, _event: str, _argument: object) -> Callable[..., Any]:
            nonlocal before
            steps.add((file, before, frame.f_lineno))
            before = frame.f_lineno
            return move

        return move(frame, "", None)

    earlier = sys.gettrace()
    sys.settrace(enter)
    try:
        yield
    finally:
        sys.settrace(earlier)


@contextmanager
def _time_limit() -> Iterator[None]:
    """Interrupt what takes too long, wherever it is; on Windows that is left to the test's own limit."""
    if sys.platform == "win32":
        yield
        return

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise Hangs(f"longer than {HANG_SECONDS} s")

    earlier = signal.signal(signal.SIGALRM, interrupt)
    signal.alarm(HANG_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, earlier)


def until_time(seconds: float) -> Callable[[Findings], bool]:
    """End after some seconds."""
    end = time.monotonic() + seconds
    return lambda _: time.monotonic() > end
