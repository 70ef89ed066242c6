"""The report: what each way adds, what is to be reached, and how it was measured."""

from dataclasses import dataclass
from datetime import UTC, datetime

from bench import machine
from bench.mercury import measuring
from bench.mercury.measuring import Effort, Samples
from bench.mercury.ways import HERE, PEERS, TITLES, LineUp
from bench.table import draw

DIRECT = {
    "pool": "the bridge's own client, direct",
    "httpx2": "httpx2, direct",
    "socket": "a socket, direct",
}
OURS = ("msgspec", "httptools")
MOST_OVERHEAD_MS = 0.5
MOST_FIRST_MS = 1.0
MOST_SHARE = 0.25
LEAST_FACTOR = 10.0
MOST_CACHED = 1.5
MOST_GROWTH = 1.1


@dataclass(frozen=True)
class Numbers:
    """The samples, asked for what the report is about; milliseconds where it is about time."""

    samples: Samples
    baselines: dict[str, str]

    def added(self, key: str, measure: str, *, late: bool = False) -> float | None:
        """Return what a way adds to its own client's direct call."""
        take = self.samples.late if late else self.samples.middle
        here, direct = take(key, measure), take(self.baselines.get(key, ""), measure)
        return None if here is None or direct is None else (here - direct) * 1000

    def share(self, measure: str, other: str) -> float | None:
        """Return what ours adds, as a share of what another way adds."""
        ours, theirs = self.added("ours", measure), self.added(other, measure)
        return None if ours is None or not theirs else ours / theirs

    def factor(self, measure: str, other: str, key: str = "ours") -> float | None:
        """Return how often another way's median goes into ours."""
        ours, theirs = self.samples.middle(key, measure), self.samples.middle(other, measure)
        return None if ours is None or not theirs else ours / theirs

    def growth(self, key: str) -> float | None:
        """Return by what factor the memory grew while many streams ran."""
        most, before = self.samples.middle(key, "many_most"), self.samples.middle(key, "many_before")
        return None if most is None or not before else most / before


def write(found: LineUp, samples: Samples, effort: Effort, command: str) -> str:
    """Put the report together."""
    numbers = Numbers(samples, {one.key: one.direct for one in found.contestants})
    parts = [
        "# Benchmark results of the mercury bridge",
        (
            "The same chat call, carried through each server to the same simulated API in one run, in "
            "milliseconds. Added is what a way takes more than a direct call with its own HTTP client."
        ),
        _calls(found, numbers),
        _streams(found, numbers),
        _cached(numbers),
        "\n".join(f"- {TITLES[key]} was not measured: {why}" for key, why in found.problems.items()),
        "## Targets",
        _targets(numbers),
        "## How it was made",
        "\n".join(f"- {line}" for line in _notes(samples, effort, command)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _calls(found: LineUp, numbers: Numbers) -> str:
    rows = [["way", "call p50", "call p99", "added p50", "added p99", "first token p50", "added p50"]]
    samples = numbers.samples
    for key, title in {**DIRECT, **{one.key: one.title for one in found.contestants}}.items():
        rows.append(
            [
                title,
                _ms(samples.middle(key, "chat")),
                _ms(samples.late(key, "chat")),
                _number(numbers.added(key, "chat")),
                _number(numbers.added(key, "chat", late=True)),
                _ms(samples.middle(key, "first")),
                _number(numbers.added(key, "first")),
            ]
        )
    return draw(rows)


def _streams(found: LineUp, numbers: Numbers) -> str:
    many = f"{measuring.MANY_STREAMS} streams"
    rows = [["way", "pieces a second", f"{many}, s", "memory before, MB", "most meanwhile, MB", "growth"]]
    for one in found.contestants:
        values = [
            numbers.samples.middle(one.key, measure)
            for measure in ("chunks", "many_seconds", "many_before", "many_most")
        ]
        growth = numbers.growth(one.key)
        rows.append([one.title, *(_number(value) for value in values), _factor(growth)])
    return draw(rows)


def _cached(numbers: Numbers) -> str:
    names = {
        "cached": "an answer from the bridge's cache",
        "echo_coroutine": "the engine's echo, a coroutine",
        "echo": "the engine's echo, a plain function",
    }
    rows = [["over stdio, one at a time", "p50", "p99", "the cache's is"]]
    for key, title in names.items():
        middle, late = numbers.samples.middle(key, "call"), numbers.samples.late(key, "call")
        rows.append([title, _ms(middle), _ms(late), _factor(numbers.factor("call", key, "cached"))])
    return draw(rows)


def _targets(numbers: Numbers) -> str:
    rows = [["measure", "wanted", "got", "verdict"]]
    cached = "a cached answer ÷ the engine's echo"
    checks = [
        ("added to a call, p50, ms", "≤", MOST_OVERHEAD_MS, numbers.added("ours", "chat")),
        ("that ÷ the official SDK's", "≤", MOST_SHARE, numbers.share("chat", "sdk")),
        ("that ÷ the LiteLLM proxy's", "≤", MOST_SHARE, numbers.share("chat", "litellm")),
        # Like with like: ours sends what came within 50 ms together, so the peer has to as well.
        (
            "pieces a second ÷ the official SDK's, both coalescing",
            "≥",
            LEAST_FACTOR,
            numbers.factor("chunks", "sdk_coalesced"),
        ),
        ("added to the first token, p50, ms", "<", MOST_FIRST_MS, numbers.added("ours", "first")),
        (f"{cached}, a coroutine", "≤", MOST_CACHED, numbers.factor("call", "echo_coroutine", "cached")),
        (f"{cached}, a plain function", "≤", MOST_CACHED, numbers.factor("call", "echo", "cached")),
        (f"growth with {measuring.MANY_STREAMS} streams", "≤", MOST_GROWTH, numbers.growth("ours")),
    ]
    for title, sign, bound, value in checks:
        rows.append([title, f"{sign} {bound:g}", _number(value), _verdict(sign, bound, value)])
    return draw(rows)


def _verdict(sign: str, bound: float, value: float | None) -> str:
    if value is None:
        return "not measured"
    reached = {"≤": value <= bound, "<": value < bound, "≥": value >= bound}[sign]
    return "reached" if reached else "**not reached**"


def _ms(seconds: float | None) -> str:
    return _number(None if seconds is None else seconds * 1000)


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _factor(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}×"


def _peers() -> str:
    return machine.python_peers(PEERS / "bin" / "python", HERE / "peers.txt")


def _notes(samples: Samples, effort: Effort, command: str) -> list[str]:
    """Say what a reader needs to judge the numbers."""
    return [
        f"command: `{command}`, {datetime.now(UTC):%Y-%m-%d}",
        machine.machine(),
        f"ours stands on {machine.ours(OURS)}; peers: {_peers()}",
        (
            f"the upstream is `bridgehead mercury simulate` in a process of its own; a call's answer has "
            f"{measuring.CHAT_WORDS} words, and every answer is checked for its length"
        ),
        (
            f"calls: one at a time in turns with direct ones, {effort.rounds} rounds of {effort.seconds:g} s "
            f"(ours {samples.count('ours', 'chat'):,} calls); the bridge and the SDK over stdio, the proxy "
            "over HTTP with a plain socket as its client"
        ),
        (
            f"pieces a second: {measuring.STREAMS} streams at once of {measuring.STREAM_WORDS:,} pieces "
            "each, which come as fast as they are read; the SDK's tool reports progress for each piece, or "
            "for what came within 50 ms where it says so, as the bridge does; only that row compares like "
            "with like, because the SDK's other row and the proxy send each piece by itself"
        ),
        (
            f"first token: a piece each {measuring.PACE_SECONDS * 1000:g} ms, until the first text was there "
            "(over stdio, the first progress notification)"
        ),
        (
            "the cache and the echoes: client and server on one core, in turns of a fraction of a second, "
            "all of them started anew for each round"
        ),
        (
            f"{measuring.MANY_STREAMS} streams: {measuring.MANY_WORDS} pieces each, one each "
            f"{measuring.MANY_PACE_SECONDS * 1000:g} ms, so at least "
            f"{measuring.MANY_WORDS * measuring.MANY_PACE_SECONDS:g} s; memory is what is resident, after a "
            "first turn of as many short streams and at most meanwhile"
        ),
    ]
