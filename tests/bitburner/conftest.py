"""Fixtures of the bitburner bridge's tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bridgehead.bitburner.simulator import Game
from tests.bitburner.playing import FILES, GENERATIONS, Play, played


@pytest.fixture(params=GENERATIONS)
def generation(request: pytest.FixtureRequest) -> int:
    """Each generation of the game."""
    number: int = request.param
    return number


@pytest.fixture
async def play(tmp_path: Path, generation: int) -> AsyncIterator[Play]:
    """A bridge with a game, of each generation."""
    async with played(tmp_path, game=Game(generation, FILES)) as one:
        yield one
