"""What is measured, and how: the samples of every way, over interleaved rounds."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from statistics import median

from bench.mercury.mcp_way import EchoWay, McpWay
from bench.mercury.upstream import Upstream
from bench.mercury.ways import Contestant, LineUp, StreamingWay, Way
from bench.process import Process

CHAT_WORDS = 60
STREAM_WORDS = 1000
STREAMS = 4
PACED_WORDS = 12
PACE_SECONDS = 0.005
MANY_STREAMS = 200
MANY_WORDS = 100
MANY_PACE_SECONDS = 0.05
LOOK_SECONDS = 0.25
CACHED_TURNS = 5


@dataclass(frozen=True)
class Effort:
    """How much is done."""

    rounds: int
    seconds: float
    warm_up: int


class Samples:
    """Seconds and rates by way and measure."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], list[float]] = defaultdict(list)

    def add(self, key: str, measure: str, *values: float) -> None:
        """Keep samples."""
        self._found[key, measure].extend(values)

    def middle(self, key: str, measure: str) -> float | None:
        """Return the median, or nothing where nothing was measured."""
        values = self._found[key, measure]
        return median(values) if values else None

    def late(self, key: str, measure: str) -> float | None:
        """Return what 99 of 100 samples do not exceed."""
        values = sorted(self._found[key, measure])
        return values[min(len(values) - 1, int(len(values) * 0.99))] if values else None

    def count(self, key: str, measure: str) -> int:
        """Return how many samples there are."""
        return len(self._found[key, measure])


def warm_up(found: LineUp, effort: Effort) -> None:
    """Let everybody come up to speed."""
    ways: list[Way] = [*found.direct.values(), *(one.way for one in found.contestants)]
    for way in ways:
        for _ in range(effort.warm_up):
            way.chat(CHAT_WORDS)
    for one in found.contestants:
        one.way.streams(STREAMS, 200)


def measure_round(found: LineUp, upstream: Upstream, samples: Samples, effort: Effort, number: int) -> None:
    """Measure everybody once, beginning with another one each time."""
    turn = number % len(found.contestants)
    order = found.contestants[turn:] + found.contestants[:turn]
    for one in order:
        pair = {one.direct: found.direct[one.direct].chat, one.key: one.way.chat}
        _in_turns(pair, CHAT_WORDS, samples, "chat", effort.seconds)
    for one in order:
        samples.add(one.key, "chunks", *_rates(one.way, effort.seconds))
    upstream.pace(PACE_SECONDS)
    for one in order:
        pair = {one.direct: found.direct[one.direct].first_token, one.key: one.way.first_token}
        _in_turns(pair, PACED_WORDS, samples, "first", effort.seconds)
    upstream.pace(0)


def _in_turns(
    calls: Mapping[str, Callable[[int], float]], words: int, samples: Samples, measure: str, seconds: float
) -> None:
    """Take samples of a way and of its direct one in turns, so that what disturbs one disturbs both."""
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds:
        for key, call in calls.items():
            samples.add(key, measure, call(words))


def _repeated(take: Callable[[], float], seconds: float) -> list[float]:
    """Take samples until the time is over."""
    begin, found = time.perf_counter(), []
    while time.perf_counter() - begin < seconds:
        found.append(take())
    return found


def _rates(way: StreamingWay, seconds: float) -> list[float]:
    """Return the pieces a second of streams that come as fast as they can."""
    pieces = STREAMS * STREAM_WORDS
    return [pieces / spent for spent in _repeated(partial(way.streams, STREAMS, STREAM_WORDS), seconds)]


def measure_many(one: Contestant, upstream: Upstream, samples: Samples) -> None:
    """Carry many streams at once, and look at the memory meanwhile."""
    upstream.pace(MANY_PACE_SECONDS)
    one.way.streams(MANY_STREAMS, 5)  # so that connections and buffers are there
    seen: list[float] = [one.process.memory()]
    is_over = threading.Event()

    def look() -> None:
        while not is_over.wait(LOOK_SECONDS):
            seen.append(one.process.memory())

    looking = threading.Thread(target=look)
    looking.start()
    try:
        seconds = one.way.streams(MANY_STREAMS, MANY_WORDS)
    finally:
        is_over.set()
        looking.join()
        upstream.pace(0)
    samples.add(one.key, "many_seconds", seconds)
    samples.add(one.key, "many_before", seen[0])
    samples.add(one.key, "many_most", max(seen))


def measure_cached(processes: dict[str, Process], samples: Samples, effort: Effort) -> None:
    """Compare an answer from the bridge's cache with echoes by the engine, client and server on one core.

    The same program is a third faster or slower from one start to the next, by where its memory happens to
    lie; so everybody is started anew for each round, and measured in short turns.
    """
    ways = {
        key: McpWay(process, cache="use") if key == "cached" else EchoWay(process)
        for key, process in processes.items()
    }
    for way in ways.values():
        way.start()
        for _ in range(effort.warm_up):
            way.chat(CHAT_WORDS)
    for _ in range(CACHED_TURNS):
        for key, way in ways.items():
            with processes[key].beside_us():
                turn = effort.seconds / 2 / CACHED_TURNS
                samples.add(key, "call", *_repeated(partial(way.chat, CHAT_WORDS), turn))
