"""Oracle: the rule of the ranking written a second time, slowly and without sharing code with the bridge.

Only the days as the unit, and only where every two models share three days.
"""

import math
from statistics import fmean

Cells = dict[tuple[int, int], list[tuple[float, bool]]]
"""Every attempt at a day and phase: how long it took, and whether it was solved."""


def two_sided_p(t: float, df: float, steps: int = 20_000) -> float:
    """P(|T| > |t|), by Simpson's rule over the angle whose tangent is t ÷ √df."""
    end = math.atan(abs(t) / math.sqrt(df))
    width = end / steps
    total = 1.0 + math.pow(math.cos(end), df - 1)
    for step in range(1, steps):
        total += (4.0 if step % 2 else 2) * math.pow(math.cos(step * width), df - 1)
    inside = 2 * total * width / 3 * math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2))
    return max(0.0, 1 - inside / math.sqrt(math.pi))


def log_cost(cells: Cells) -> float:
    """ln(time ÷ solved), half an answer added to the solved and to the tried."""
    time = sum(fmean(max(t, 0.5) for t, _ in tries) for tries in cells.values())
    solved = sum(fmean(ok for _, ok in tries) for tries in cells.values())
    return math.log(time / len(cells) / ((solved + 0.5) / (len(cells) + 0.5)))


def log_ratio(a: Cells, b: Cells) -> float:
    """The difference of two models' costs over the puzzles that both tried."""
    shared = a.keys() & b.keys()
    return log_cost({p: b[p] for p in shared}) - log_cost({p: a[p] for p in shared})


def day_share(cells: Cells, shared: set[tuple[int, int]], day: int) -> float:
    """The part of a day in a model's time."""
    times = {p: fmean(max(t, 0.5) for t, _ in cells[p]) for p in shared}
    return sum(time for p, time in times.items() if p[0] == day) / sum(times.values())


def rank_ranges(models: dict[str, Cells]) -> dict[str, tuple[int, int]]:
    """Return the best and the worst rank of each model."""
    names = sorted(models)
    pairs = [(a, b) for a in names for b in names if a < b]
    spread, freedom = {}, {}
    for a, b in pairs:
        shared = models[a].keys() & models[b].keys()
        days = sorted({day for day, _ in shared})
        without = [
            log_ratio(
                {p: t for p, t in models[a].items() if p[0] != day and p in shared},
                {p: t for p, t in models[b].items() if p[0] != day and p in shared},
            )
            for day in days
        ]
        spread[a, b] = (len(days) - 1) / len(days) * sum((w - fmean(without)) ** 2 for w in without)
        weights = [(day_share(models[a], shared, d) + day_share(models[b], shared, d)) / 2 for d in days]
        freedom[a, b] = max(1.0, 1 / sum(w * w for w in weights) - 1)
    common = fmean(spread.values())
    longest = max(
        (t for m in models.values() for tries in m.values() for t, ok in tries if not ok), default=0
    )
    unseen = {
        name: math.log(
            1 + longest / 2 / sum(max(t, 0.5) for tries in models[name].values() for t, _ in tries)
        )
        for name in names
    }
    tests = []
    for a, b in pairs:
        v, df = spread[a, b], freedom[a, b]
        if len(names) > 2:
            v, df = max(v, (df * v + 2 * common) / (df + 2)), df + 2
        error = math.sqrt(max(v + unseen[a] ** 2 + unseen[b] ** 2, 1e-6))
        ratio = log_ratio(models[a], models[b])
        tests.append((two_sided_p(ratio / error, df), *((a, b) if ratio > 0 else (b, a))))
    ahead, behind = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    for place, (p, cheap, dear) in enumerate(sorted(tests)):
        if p > 0.05 / (len(tests) - place):
            break
        ahead[dear] += 1
        behind[cheap] += 1
    return {name: (1 + ahead[name], len(names) - behind[name]) for name in names}
