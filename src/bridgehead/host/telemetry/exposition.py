"""Exposition: the page that shows everything that is counted, as Prometheus and OpenMetrics read it.

Written by hand: the format is a name, labels and a number a line, and the counters are our own. A metric of a
bridge gets the label `bridge`; those of the same name become one family.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate

from bridgehead.runtime.metrics import Histogram, Metric, Metrics

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = b"application/openmetrics-text"
OPENMETRICS_TYPE = OPENMETRICS + b"; version=1.0.0; charset=utf-8"

_HELP = b"# HELP "

SourceLabels = tuple[tuple[str, str], ...]
"""Labels that every value of a metric gets."""


def to_openmetrics(page: bytes) -> bytes:
    """Make OpenMetrics of a page: a counter's family has no `_total`, and the page says where it ends."""
    lines = []
    for line in page.decode().splitlines():
        if line.startswith(("# HELP ", "# TYPE ")):
            _, kind, name, rest = line.split(" ", 3)
            lines.append(f"# {kind} {name.removesuffix('_total')} {rest}")
        else:
            lines.append(line)
    return ("\n".join([*lines, "# EOF"]) + "\n").encode()


def write_metrics(sources: Iterable[tuple[SourceLabels, Metrics]]) -> bytes:
    """Write the metrics of several sources, each with its own labels."""
    families: dict[str, list[tuple[SourceLabels, Metric]]] = {}
    for given, metrics in sources:
        for metric in metrics.all:
            families.setdefault(metric.name, []).append((given, metric))
    return "".join(line for name, members in families.items() for line in _family(name, members)).encode()


def _family(name: str, members: list[tuple[SourceLabels, Metric]]) -> Iterator[str]:
    first = members[0][1]
    yield f"# HELP {name} {_escaped(first.about, quotes=False)}\n# TYPE {name} {first.kind}\n"
    for given, metric in members:
        if metric.kind == first.kind:
            yield from _values(name, given, metric)


def _values(name: str, given: SourceLabels, metric: Metric) -> Iterator[str]:
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


def _line(name: str, given: SourceLabels, labels: Iterable[tuple[str, str]], value: float) -> str:
    pairs = ",".join(f'{label}="{_escaped(text)}"' for label, text in (*given, *labels))
    return f"{name}{{{pairs}}} {value}\n" if pairs else f"{name} {value}\n"


def _escaped(text: str, *, quotes: bool = True) -> str:
    plain = text.replace("\\", r"\\").replace("\n", r"\n")
    return plain.replace('"', r"\"") if quotes else plain


def join_pages(texts: Iterable[bytes]) -> bytes:
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
