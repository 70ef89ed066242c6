"""A minute of load: many clients of both eras, mixed tools, and a far side that dies and comes back."""

import time
from dataclasses import dataclass

from bench.host.calls import HANDSHAKE, STATELESS
from bench.host.servers import Stage

CLIENTS = 64
PATHS = ("/mcp=steady_", "/steady/mcp=steady_", "/other/mcp=other_", "/flaky/mcp=flaky_")
FLAKY = "/flaky/mcp"
MOST_GROWTH = 0.05


@dataclass
class Trial:
    """What came of it."""

    seconds: float
    rate: float
    paths: dict[str, dict[str, float]]
    memory: list[float]

    @property
    def growth(self) -> float:
        """How much more memory was used at the end than after the first quarter."""
        quarter = self.memory[len(self.memory) // 4]
        return self.memory[-1] / quarter - 1

    @property
    def is_passed(self) -> bool:
        """Whether the others never failed, the flaky one only while it was away, and memory was flat."""
        others = [found for path, found in self.paths.items() if path != FLAKY]
        flaky = self.paths[FLAKY]
        return (
            all(not found["failed"] and not found["errors"] for found in others)
            and flaky["errors"] > 0 < flaky["right"]
            and not flaky["failed"]
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
            f"\n{self.rate:,.0f} calls a second; memory {self.memory[len(self.memory) // 4]:.1f} MB after a "
            f"quarter and {self.memory[-1]:.1f} MB at the end ({self.growth:+.1%}): {verdict}."
        )
        return "\n".join(lines)

    def notes(self) -> list[str]:
        """Say how it was measured."""
        return [
            (
                f"load: {CLIENTS} clients for {self.seconds:g} s, half of them with sessions and half "
                "stateless, a token on every request, three bridges; the far side of `flaky` is away for the "
                "second third of the time; times are as the clients saw them, who share the machine's cores "
                "with the server"
            ),
        ]


def measured(stage: Stage, seconds: float) -> Trial:
    """Load the host, and take a far side away for a third of the time."""
    stage.away.unlink(missing_ok=True)
    with stage.ours("steady", "other", "flaky") as (process, port):
        half = CLIENTS // 2
        loads = [stage.load(port, era, seconds, half, *PATHS) for era in (HANDSHAKE, STATELESS)]
        memory, begun = [], time.monotonic()
        while (passed := time.monotonic() - begun) < seconds:
            if seconds / 3 <= passed < seconds * 2 / 3:
                stage.away.touch()
            else:
                stage.away.unlink(missing_ok=True)
            memory.append(process.memory())
            time.sleep(min(1.0, seconds / 20))
        counted = [load.counted() for load in loads]
    rate = sum(float(str(one["rate"])) for one in counted)
    return Trial(seconds, rate, _joined([one["paths"] for one in counted]), memory)  # type: ignore[misc]


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
