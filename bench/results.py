"""What was measured: the samples of every server, and the reasons where there are none."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from bench.message import WrongAnswer
from bench.process import NotRunning


class Results:
    """Samples by server and measure, over all rounds."""

    def __init__(self) -> None:
        self.samples: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        self.problems: dict[tuple[str, str], str] = {}

    def add(self, key: str, sample: dict[str, float]) -> None:
        """Keep a sample of a server."""
        for measure, value in sample.items():
            self.samples[key][measure].append(value)

    @contextmanager
    def noting(self, key: str, transport: str) -> Iterator[None]:
        """Note a server that does not run; say whose answer was wrong."""
        try:
            yield
        except NotRunning as problem:
            self.problems[key, transport] = str(problem)
        except WrongAnswer as wrong:
            raise WrongAnswer(f"{key}, {transport}: {wrong}") from None

    def median(self, key: str, measure: str) -> float | None:
        """Return the middle of all rounds, or nothing if it was not measured."""
        values = self.samples[key][measure]
        return median(values) if values else None

    def ratio(self, measure: str, reference: str, key: str = "ours") -> float | None:
        """Return one server's median, by default ours, divided by the other's."""
        this, other = self.median(key, measure), self.median(reference, measure)
        return None if this is None or not other else this / other

    def bounds(self, key: str, measure: str) -> tuple[float, float] | None:
        """Return the smallest and the largest round, each divided by the median."""
        values = self.samples[key][measure]
        return (min(values) / median(values), max(values) / median(values)) if values else None

    def busiest_client(self) -> float:
        """Return the largest share of a core that the HTTP load client needed."""
        shares = [share for measures in self.samples.values() for share in measures["client_busy"]]
        return max(shares, default=0.0)
