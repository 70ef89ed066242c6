"""A row of the results: what was measured, beside what, and whether that is enough."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One measure of ours, divided by the other one."""

    what: str
    peer: str
    ours: float
    theirs: float
    unit: str
    sign: str
    bound: float | None
    """None where nothing is wanted, only known."""

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs

    @property
    def is_reached(self) -> bool:
        if self.bound is None:
            return True
        return self.ratio <= self.bound if self.sign == "≤" else self.ratio >= self.bound

    @property
    def cells(self) -> tuple[str, ...]:
        wanted = "" if self.bound is None else f"{self.sign} {self.bound:g}"
        verdict = "" if self.bound is None else "reached" if self.is_reached else "**not reached**"
        return (
            self.what,
            self.peer,
            _number(self.ours, self.unit),
            _number(self.theirs, self.unit),
            f"{self.ratio:.3g}×",
            wanted,
            verdict,
        )


def _number(value: float, unit: str) -> str:
    return f"{value:,.0f}{unit}" if value >= 100 or not unit else f"{value:.3g} {unit}".replace(" /", "/")


def table(rows: list[Row]) -> str:
    """Draw the rows as a Markdown table."""
    head = ("measure", "beside", "ours", "the other", "ours ÷ other", "wanted", "verdict")
    rules = ("---", "---", "---:", "---:", "---:", "---:", "---")
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rules, *(row.cells for row in rows)))
