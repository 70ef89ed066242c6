"""Calls a second with auth on: ours and FastMCP with the same tools, in turns."""

from dataclasses import dataclass, field
from statistics import median
from typing import Any

from bench.host.calls import HANDSHAKE, STATELESS
from bench.host.servers import Stage

CONNECTIONS = 32
WANTED = 5.0
ERAS = {"sessions": HANDSHAKE, "stateless": STATELESS}


@dataclass
class Rates:
    """What was measured, by server and era."""

    samples: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    memory: dict[str, float] = field(default_factory=dict)
    failed: int = 0
    busy: float = 0.0

    def rate(self, server: str, era: str) -> float:
        """Return the middle of all rounds."""
        return median(self.samples[server, era])

    def ratio(self, era: str) -> float:
        """Return ours divided by FastMCP's."""
        return self.rate("ours", era) / self.rate("FastMCP", era)

    @property
    def is_reached(self) -> bool:
        """Whether both eras are as fast as wanted, and every answer was right."""
        return not self.failed and all(self.ratio(era) >= WANTED for era in ERAS)

    def table(self) -> str:
        """Draw what was measured."""
        lines = ["| server | sessions | stateless | memory |", "| --- | ---: | ---: | ---: |"]
        for server in ("ours", "FastMCP"):
            cells = [f"{self.rate(server, era):,.0f}/s" for era in ERAS]
            lines.append(f"| {server} | {cells[0]} | {cells[1]} | {self.memory[server]:.0f} MB |")
        ratios = [f"{self.ratio(era):.1f}×" for era in ERAS]
        lines.append(f"| ours ÷ FastMCP (wanted: ≥ {WANTED:g}×) | {ratios[0]} | {ratios[1]} | |")
        return "\n".join(lines)

    def notes(self) -> list[str]:
        """Say how it was measured."""
        return [
            (
                f"calls a second: {CONNECTIONS} keep-alive connections, one call at a time each, three tools "
                "in turns (text, structured, a coroutine), a bearer token on every request; medians of "
                "interleaved rounds; FastMCP checks it with its StaticTokenVerifier and runs on uvicorn with "
                "httptools and uvloop; both answer in plain JSON"
            ),
            f"wrong answers: {self.failed}; the load client needed at most {self.busy:.0%} of a core",
        ]


def measured(stage: Stage, rounds: int, seconds: float) -> Rates:
    """Measure both servers, each in turn in every round."""
    rates = Rates()
    with stage.ours() as ours, stage.fastmcp() as fastmcp:
        servers = {"ours": ours, "FastMCP": fastmcp}
        for number in range(rounds + 1):
            for server, (process, port) in servers.items():
                for era, revision in ERAS.items():
                    counted = stage.load(port, revision, seconds, CONNECTIONS, "echo").counted()
                    if number:  # the first round is for warming up
                        _keep(rates, server, era, counted)
                rates.memory[server] = process.memory()
            print(f"round {number} of {rounds}: {rates.samples}", flush=True)
    return rates


def _keep(rates: Rates, server: str, era: str, counted: Any) -> None:
    rates.samples.setdefault((server, era), []).append(counted["rate"])
    rates.failed += sum(path["failed"] + path["errors"] for path in counted["paths"].values())
    rates.busy = max(rates.busy, counted["busy"])
