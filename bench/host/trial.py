"""A minute of load: many clients of both eras, tools of all bridges, and a game that dies and comes back."""

import time
from dataclasses import dataclass

from bench.host.calls import HANDSHAKE, STATELESS
from bench.host.servers import Stage
from bench.http import free_port

CLIENTS = 64
DYING = "/bitburner/mcp"
MOST_GROWTH = 0.05


@dataclass
class Trial:
    """What came of it."""

    seconds: float
    rate: float
    paths: dict[str, dict[str, float]]
    memory: list[float]

    @property
    def settled(self) -> float:
        """The memory after the first quarter, when everything has been loaded."""
        return self.memory[len(self.memory) // 4]

    @property
    def growth(self) -> float:
        """How much more memory was used at the end than after the first quarter."""
        return self.memory[-1] / self.settled - 1

    @property
    def is_passed(self) -> bool:
        """Whether the others never failed, the dying one said why, and memory was flat."""
        others = [found for path, found in self.paths.items() if path != DYING]
        dying = self.paths[DYING]
        return (
            all(not found["failed"] and not found["errors"] for found in others)
            and dying["errors"] > 0 < dying["right"]
            and not dying["failed"]
            and self.growth < MOST_GROWTH
        )

    def table(self) -> str:
        """Draw what was measured."""
        lines = [
            "| path | right | said that the far side is away | failed | p50 | p99 | longest |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        ]
        for path, found in self.paths.items():
            times = " | ".join(f"{found[name]:.1f} ms" for name in ("p50", "p99", "most"))
            counts = " | ".join(f"{found[name]:,.0f}" for name in ("right", "errors", "failed"))
            lines.append(f"| `{path}` | {counts} | {times} |")
        verdict = "passed" if self.is_passed else "**not passed**"
        lines.append(
            f"\n{self.rate:,.0f} calls a second; memory {self.settled:.1f} MB after a quarter of the time "
            f"and {self.memory[-1]:.1f} MB at the end ({self.growth:+.1%}): {verdict}."
        )
        return "\n".join(lines)

    def notes(self) -> list[str]:
        """Say how it was measured."""
        return [
            (
                f"load: {CLIENTS} clients for {self.seconds:g} s, half of them with sessions and half "
                "stateless, a token on every request, all bridges in one process of `bridgehead serve`; the "
                "simulated game is killed after a third of the time and started again after two; times "
                "are as the clients saw them, who share the machine's cores with the server, the simulated "
                "API and the game"
            ),
        ]


def measured(stage: Stage, seconds: float) -> Trial:
    """Load the host, and take a far side away for a third of the time."""
    dial = free_port()
    game = stage.game(dial)
    with stage.api() as api, stage.product(api, dial) as (process, port):
        game.switch(on=True)
        try:
            half = CLIENTS // 2
            loads = [stage.load(port, era, seconds, half, "product") for era in (HANDSHAKE, STATELESS)]
            memory, begun = [], time.monotonic()
            while (passed := time.monotonic() - begun) < seconds:
                game.switch(on=not seconds / 3 <= passed < seconds * 2 / 3)
                memory.append(process.memory())
                time.sleep(min(1.0, seconds / 20))
            counted = [load.counted() for load in loads]
        finally:
            game.switch(on=False)
    rate = sum(one["rate"] for one in counted)
    return Trial(seconds, rate, _joined([one["paths"] for one in counted]), memory)


def _joined(parts: list[dict[str, dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Add counts up; of times, take the longer one."""
    joined: dict[str, dict[str, float]] = {}
    for part in parts:
        for path, found in part.items():
            into = joined.setdefault(path, dict.fromkeys(found, 0.0))
            for name, value in found.items():
                counts = name in {"right", "errors", "failed"}
                into[name] = into[name] + value if counts else max(into[name], value)
    return joined
