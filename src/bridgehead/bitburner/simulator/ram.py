"""RAM: the result of `calculateRam`, by the game's own rule (`netscript/ram.py`) and this game's prices.

Each content is parsed once: parsing all imports again for every request would block this game for seconds,
while the real one has a faster parser.
"""

from __future__ import annotations

from functools import cache, lru_cache

from ..netscript.ram import Price, calculate, read_source
from .definitions import list_costs
from .world import World

_SPECIAL = {"document": 25.0, "window": 25.0, "hacknet": 4.0}


@cache
def _list_prices() -> dict[str, Price]:
    return {name: Price(name, cost) for name, cost in (list_costs() | _SPECIAL).items()}


_read_once = lru_cache(maxsize=2000)(read_source)


def cost(world: World, host: str, path: str) -> float:
    """Return the cost of a script; raises RamRefused for one that the game cannot read."""
    total = calculate(path, world.scripts(host), _list_prices(), server=host, read=_read_once).total_gb
    return int(total) if total.is_integer() else total
