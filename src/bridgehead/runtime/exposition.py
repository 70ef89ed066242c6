"""Exposition: the /metrics page in the formats of Prometheus and OpenMetrics.

Written without a library: a line is a name, labels and a number. Metrics of the same name, from several
bridges, become one family; the label `bridge` tells them apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

from .lines import split_lines
from .metrics import Histogram, Metric, Metrics

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = b"application/openmetrics-text"
OPENMETRICS_TYPE = OPENMETRICS + b"; version=1.0.0; charset=utf-8"

SourceLabels = tuple[tuple[str, str], ...]
"""Labels that a source adds to all its metrics, such as `bridge`."""


def to_openmetrics(page: bytes) -> bytes:
    """Convert a Prometheus page: families of counters lose `_total`, and the page ends with # EOF."""
    lines = []
    for line in split_lines(page.decode()):
        if line.startswith(("# HELP ", "# TYPE ")):
            _, kind, name, rest = line.split(" ", 3)
            lines.append(f"# {kind} {name.removesuffix('_total')} {rest}")
        else:
            lines.append(line)
    return ("\n".join([*lines, "# EOF"]) + "\n").encode()


def write_metrics(sources: Iterable[tuple[SourceLabels, Metrics]]) -> bytes:
    """Write the metrics of several sources, each with its own labels."""
    families: dict[str, list[tuple[SourceLabels, Metric]]] = {}
    for source_labels, metrics in sources:
        for metric in metrics.all:
            families.setdefault(metric.name, []).append((source_labels, metric))
    lines: list[str] = []
    for name, members in families.items():
        first = members[0][1]
        lines.append(f"# HELP {name} {_escaped(first.about, quotes=False)}\n# TYPE {name} {first.kind}\n")
        for source_labels, metric in members:
            if metric.kind != first.kind:
                continue  # a family can have only one type
            if not isinstance(metric, Histogram):
                for labels, value in metric.values.items():
                    lines.append(_line(name, source_labels, zip(metric.labels, labels, strict=False), value))
                continue
            bounds = (*(f"{bound:g}" for bound in metric.bounds), "+Inf")
            for labels, counts in metric.counts.items():
                own = tuple(zip(metric.labels, labels, strict=False))
                # Buckets are cumulative on the page, but not in memory.
                for bound, count in zip(bounds, accumulate(counts), strict=True):
                    lines.append(_line(f"{name}_bucket", source_labels, (*own, ("le", bound)), count))
                lines.append(_line(f"{name}_sum", source_labels, own, metric.sums[labels]))
                lines.append(_line(f"{name}_count", source_labels, own, sum(counts)))
    return "".join(lines).encode()


def _line(name: str, source_labels: SourceLabels, labels: Iterable[tuple[str, str]], value: float) -> str:
    pairs = ",".join(f'{label}="{_escaped(text)}"' for label, text in (*source_labels, *labels))
    return f"{name}{{{pairs}}} {value}\n" if pairs else f"{name} {value}\n"


def _escaped(text: str, *, quotes: bool = True) -> str:
    plain = text.replace("\\", r"\\").replace("\n", r"\n")
    return plain.replace('"', r"\"") if quotes else plain
