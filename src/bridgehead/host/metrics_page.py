"""Metrics page: everything that is counted, in the text format that Prometheus reads.

Written by hand: the format is a name, labels and a number a line, and the counters are our own. A metric of a
bridge gets the label `bridge`; those of the same name become one family.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate

from bridgehead.runtime.metrics import Histogram, Metric, Metrics

from .accounts import Accounts
from .registry import Registry

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"

_HELP = b"# HELP "

Given = tuple[tuple[str, str], ...]
"""Labels that every value of a metric gets."""


def written(sources: Iterable[tuple[Given, Metrics]]) -> bytes:
    """Write the metrics of several sources, each with its own labels."""
    families: dict[str, list[tuple[Given, Metric]]] = {}
    for given, metrics in sources:
        for metric in metrics.all:
            families.setdefault(metric.name, []).append((given, metric))
    return "".join(line for name, members in families.items() for line in _family(name, members)).encode()


def _family(name: str, members: list[tuple[Given, Metric]]) -> Iterator[str]:
    first = members[0][1]
    yield f"# HELP {name} {_escaped(first.about, quotes=False)}\n# TYPE {name} {first.kind}\n"
    for given, metric in members:
        if metric.kind == first.kind:
            yield from _values(name, given, metric)


def _values(name: str, given: Given, metric: Metric) -> Iterator[str]:
    if not isinstance(metric, Histogram):
        for labels, value in metric.values.items():
            yield _line(name, given, zip(metric.labels, labels, strict=False), value)
        return
    for labels, counts in metric.counts.items():
        own = tuple(zip(metric.labels, labels, strict=False))
        bounds = (*(f"{bound:g}" for bound in metric.bounds), "+Inf")
        for bound, count in zip(bounds, accumulate(counts), strict=True):
            yield _line(f"{name}_bucket", given, (*own, ("le", bound)), count)
        yield _line(f"{name}_sum", given, own, metric.sums[labels])
        yield _line(f"{name}_count", given, own, sum(counts))


def _line(name: str, given: Given, labels: Iterable[tuple[str, str]], value: float) -> str:
    pairs = ",".join(f'{label}="{_escaped(text)}"' for label, text in (*given, *labels))
    return f"{name}{{{pairs}}} {value}\n" if pairs else f"{name} {value}\n"


def _escaped(text: str, *, quotes: bool = True) -> str:
    plain = text.replace("\\", r"\\").replace("\n", r"\n")
    return plain.replace('"', r"\"") if quotes else plain


def sources(registry: Registry, accounts: Accounts, given: Given = ()) -> Iterator[tuple[Given, Metrics]]:
    """Give everything that is counted in this process: the host's own, and each bridge's under its name."""
    yield given, accounts.metrics
    yield given, _state(registry)
    for name, standing in registry.standings.items():
        if standing.bridge is not None:
            yield (*given, ("bridge", name)), standing.metrics


def joined(texts: Iterable[bytes]) -> bytes:
    """Make one text of those of several processes: each family once, with the values of all."""
    families: dict[bytes, bytes] = {}
    for text in texts:
        for family in text.split(_HELP)[1:]:
            name = family.split(b" ", 1)[0]
            head = families.get(name)
            families[name] = _HELP + family if head is None else head + _without_head(family)
    return b"".join(families.values())


def _without_head(family: bytes) -> bytes:
    return b"".join(family.splitlines(keepends=True)[2:])


def _state(registry: Registry) -> Metrics:
    metrics = Metrics()
    standings = registry.standings.items()
    metrics.gauge(
        "bridgehead_bridge_up",
        "Whether a bridge can serve.",
        lambda: {(name,): float(not standing.problem) for name, standing in standings},
        "bridge",
    )
    metrics.gauge(
        "bridgehead_far_side_up",
        "Whether a bridge's far side is there.",
        lambda: {(name,): float(registry.far_side(standing).is_there) for name, standing in standings},
        "bridge",
    )
    return metrics
