"""The tables: one of medians with ratios, one of targets, and a list of what could not be measured."""

from dataclasses import dataclass

from bench.peers import Peer
from bench.results import Results


@dataclass(frozen=True)
class Measure:
    """A column of the table."""

    key: str
    title: str
    transport: str
    unit: str


@dataclass(frozen=True)
class Target:
    """A ratio, ours divided by the reference's, that is to be reached."""

    measure: str
    reference: str
    sign: str
    bound: float

    def reached(self, ratio: float) -> bool:
        """Whether this ratio is good enough."""
        if self.sign == "≤":
            return ratio <= self.bound
        return ratio > self.bound if self.sign == ">" else ratio >= self.bound


MEASURES = (
    Measure("cold_start", "cold start", "stdio", " ms"),
    Measure("sequential", "stdio, one at a time", "stdio", "/s"),
    Measure("pipelined", "stdio, pipelined", "stdio", "/s"),
    Measure("stdio_memory", "stdio memory", "stdio", " MB"),
    Measure("http_handshake", "HTTP, sessions", "http", "/s"),
    Measure("http_stateless", "HTTP, stateless", "http", "/s"),
    Measure("http_memory", "HTTP memory", "http", " MB"),
)
FLOORS = {"stdio": "bare_loop", "http": "bare_http"}
TARGETS = (
    Target("cold_start", "sdk_lowlevel", "≤", 0.15),
    Target("cold_start", "typescript", "≤", 0.5),
    Target("sequential", "sdk_lowlevel", "≥", 4.0),
    Target("sequential", "typescript", "≥", 1.5),
    Target("pipelined", "sdk_lowlevel", "≥", 20.0),
    Target("pipelined", "typescript", "≥", 1.5),
    Target("stdio_memory", "sdk_lowlevel", "≤", 0.4),
    Target("http_handshake", "sdk_lowlevel", "≥", 8.0),
    Target("http_handshake", "typescript", ">", 1.0),
    Target("http_handshake", "bare_http", "≥", 0.5),
    Target("http_stateless", "sdk_lowlevel", "≥", 8.0),
    Target("http_stateless", "typescript", ">", 1.0),
    Target("http_stateless", "bare_http", "≥", 0.5),
    Target("http_memory", "sdk_lowlevel", "≤", 0.4),
)


def comparison(peers: list[Peer], results: Results, transports: tuple[str, ...]) -> str:
    """Draw the table of medians; every cell but ours says what ours is, divided by it."""
    measures = [measure for measure in MEASURES if measure.transport in transports]
    rows = [["server", *(measure.title for measure in measures)]]
    rows += [[peer.title, *(_cell(peer, m, results) for m in measures)] for peer in peers]
    return draw(rows)


def targets(peers: list[Peer], results: Results, transports: tuple[str, ...]) -> str:
    """Draw the table of targets; the last column is what a server gets that does next to nothing."""
    measures = {m.key: m for m in MEASURES if m.transport in transports}
    titles = {peer.key: peer.title for peer in peers}
    rows = [["measure", "ours ÷", "wanted", "got", "verdict", "the floor gets"]]
    for target in TARGETS:
        if target.measure in measures:
            measure = measures[target.measure]
            wanted = f"{target.sign} {target.bound:g}"
            row = [measure.title, titles[target.reference], wanted]
            rows.append([*row, *_verdict(target, results), _floor(target, measure, results)])
    return draw(rows)


def problems(peers: list[Peer], results: Results) -> str:
    """List in plain words what could not be measured."""
    titles = {peer.key: peer.title for peer in peers}
    lines = [
        f"- {titles[key]}, {way}, was not measured: {why}" for (key, way), why in results.problems.items()
    ]
    return "\n".join(lines)


def _verdict(target: Target, results: Results) -> tuple[str, str]:
    """Say what was got, and whether that is enough."""
    ratio = results.ratio(target.measure, target.reference)
    if ratio is None:
        return "–", "not measured"
    return _ratio(ratio), "reached" if target.reached(ratio) else "**not reached**"


def _floor(target: Target, measure: Measure, results: Results) -> str:
    """Say what the bare loop or the bare function gets by the same yardstick."""
    floor = FLOORS[measure.transport]
    ratio = results.ratio(target.measure, target.reference, floor)
    return "–" if ratio is None or floor == target.reference else _ratio(ratio)


def _cell(peer: Peer, measure: Measure, results: Results) -> str:
    """Say what one server reached in one measure."""
    if (peer.key, measure.transport) in results.problems:
        return "not measured, see below"
    value = results.median(peer.key, measure.key)
    if value is None:
        return "–"
    number = f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
    ratio = results.ratio(measure.key, peer.key)
    beside = "" if peer.key == "ours" or ratio is None else f" ({_ratio(ratio)})"
    return number + measure.unit + beside


def _ratio(ratio: float) -> str:
    """Write a ratio with as many digits as it is worth."""
    digits = 1 if ratio >= 10 else 2 if ratio >= 1 else 3
    return f"{ratio:.{digits}f}×"


def draw(rows: list[list[str]]) -> str:
    """Draw rows as a Markdown table with aligned columns, numbers to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("| " + " | ".join(cells) + " |")
    rules = ["-" * widths[0], *("-" * (max(width, 2) - 1) + ":" for width in widths[1:])]
    lines.insert(1, "| " + " | ".join(rules) + " |")
    return "\n".join(lines)
