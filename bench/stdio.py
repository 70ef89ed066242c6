"""Measuring a server over stdio: cold start, calls one at a time, pipelined calls, memory."""

import os
import select
import time
from dataclasses import dataclass

from bench.message import CALL, FIRST_ID, HANDSHAKE, INITIALIZE, INITIALIZED, WrongAnswer, check
from bench.process import NotRunning, Process

CALL_LINE = CALL[HANDSHAKE] + b"\n"
START_LIMIT = 30.0
ROUND_LIMIT = 120.0


@dataclass(frozen=True)
class Effort:
    """How much is done in one round, and before the first one."""

    starts: int
    seconds: float
    burst: int
    warm_up: float


class Server:
    """A running server that is measured round after round."""

    def __init__(self, command: tuple[str, ...], process: Process, effort: Effort) -> None:
        self._command = command
        self._process = process
        self._effort = effort

    def warm_up(self) -> None:
        """Do the handshake and let the server come up to speed."""
        initialize(self._process)
        with self._process.within(ROUND_LIMIT):
            _one_at_a_time(self._process, self._effort.warm_up / 2)
            pipelined(self._process, self._effort.warm_up / 2, self._effort.burst)

    def samples(self) -> list[dict[str, float]]:
        """Take the samples of one round."""
        starts = [{"cold_start": _cold_start(self._command) * 1000} for _ in range(self._effort.starts)]
        with self._process.within(ROUND_LIMIT):
            calls = {
                "sequential": _one_at_a_time(self._process, self._effort.seconds),
                "pipelined": pipelined(self._process, self._effort.seconds, self._effort.burst),
                "stdio_memory": self._process.memory(),
            }
        return [*starts, calls]


def _cold_start(command: tuple[str, ...]) -> float:
    """Start a server only to see how long its first answer takes."""
    with Process(command) as process:
        return initialize(process)


def initialize(process: Process) -> float:
    """Do the handshake; return the seconds from the start of the process to the answer."""
    with process.within(START_LIMIT):
        os.write(process.stdin, INITIALIZE + b"\n")
        answer = read_line(process)
        seconds = time.perf_counter() - process.started
        os.write(process.stdin, INITIALIZED + b"\n")
    if b'"protocolVersion":"2025-11-25"' not in answer:
        raise WrongAnswer(f"wrong answer to initialize: {answer[:300]!r}")
    return seconds


def read_line(process: Process) -> bytes:
    """Read one line."""
    line = b""
    while not line.endswith(b"\n"):
        chunk = os.read(process.stdout, 65536)
        if not chunk:
            raise NotRunning(process.complaint())
        line += chunk
    return line


def _one_at_a_time(process: Process, seconds: float) -> float:
    """Call again and again, waiting for each answer; return calls per second."""
    answers = []
    number = FIRST_ID
    os.set_blocking(process.stdin, True)
    with process.beside_us():
        begin = now = time.perf_counter()
        while now - begin < seconds:
            os.write(process.stdin, CALL_LINE % (number, number))
            answers.append(read_line(process))
            number += 1
            now = time.perf_counter()
    for expected, answer in enumerate(answers, FIRST_ID):
        check(answer, expected)
    return len(answers) / (now - begin)


def pipelined(process: Process, seconds: float, burst: int) -> float:
    """Send bursts of calls without waiting, for at least the wanted time; return calls per second."""
    calls, spent = 0, 0.0
    while spent < seconds:
        spent += bursts(process, 1, burst)
        calls += burst
    return calls / spent


def bursts(process: Process, count: int, burst: int) -> float:
    """Send bursts of calls, each after the one before was answered; return the seconds they took."""
    numbers = range(FIRST_ID, FIRST_ID + burst)
    requests = b"".join(CALL_LINE % (number, number) for number in numbers)
    spent = 0.0
    os.set_blocking(process.stdin, False)
    for _ in range(count):
        begin = time.perf_counter()
        answers = _exchange(process, requests, burst)
        spent += time.perf_counter() - begin
        if sorted(check(line) for line in answers.splitlines()) != list(numbers):
            raise WrongAnswer("pipelined calls were not answered each exactly once")
    return spent


def _exchange(process: Process, requests: bytes, count: int) -> bytes:
    """Write all requests while reading, until `count` lines have come back."""
    rest = memoryview(requests)
    chunks = []
    poll = select.poll()
    poll.register(process.stdout, select.POLLIN)
    poll.register(process.stdin, select.POLLOUT)
    while count > 0:
        for fd, _ in poll.poll():
            if fd == process.stdin:
                rest = rest[os.write(fd, rest[:65536]) :]
                if not rest:
                    poll.unregister(fd)
                continue
            chunk = os.read(fd, 262144)
            if not chunk:
                raise NotRunning(process.complaint())
            count -= chunk.count(b"\n")
            chunks.append(chunk)
    return b"".join(chunks)
