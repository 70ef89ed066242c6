"""Waiting for something that must come to hold, instead of guessing how long it takes."""

import asyncio
import os
from collections.abc import Callable

# For what must happen soon; a machine with much else to do may take this long.
PATIENCE = float(os.environ.get("BRIDGEHEAD_TEST_PATIENCE", "60"))


async def until(holds: Callable[[], object], within: float = PATIENCE) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(within):
        while not holds():
            await asyncio.sleep(0.005)
