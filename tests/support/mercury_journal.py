"""Questions to the journal of the simulated API that only tests ask, and its models in their older form."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from bridgehead.mercury.simulator import MODELS, Journal
from tests.support import waiting

OLDER = tuple(replace(model, supported_endpoints=UNSET) for model in MODELS if model.is_older)
"""The older models in the older form of the list, without `supported_endpoints`."""


async def until(journal: Journal, holds: Callable[[Journal], Any], within: float = waiting.PATIENCE) -> None:
    """Wait until a condition holds; an IndexError in it (a request yet to come) counts as false."""

    def holds_now() -> Any:
        with suppress(IndexError):
            return holds(journal)

    await waiting.until(holds_now, within)


def most_at_once(journal: Journal, path: str = "") -> int:
    """Return the highest number of concurrent requests."""
    moments = []
    for request in journal.to(path):
        end = request.finished or request.aborted or float("inf")
        moments += [(request.arrived, 1), (end, -1)]
    highest = current = 0
    for _, step in sorted(moments):  # at the same moment -1 sorts before +1: an end makes room first
        current += step
        highest = max(highest, current)
    return highest
