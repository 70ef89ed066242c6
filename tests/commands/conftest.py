"""Fixtures of the commands' tests: a person, and a simulated API that they have a key for."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from bridgehead.mercury.simulator import Simulator
from tests.support.person import Person


@pytest.fixture
def person(tmp_path: Path) -> Person:
    """Somebody with an empty home."""
    return Person(tmp_path)


@pytest_asyncio.fixture
async def api() -> AsyncIterator[Simulator]:
    """A simulated API that any key opens."""
    async with Simulator() as one:
        yield one


@pytest.fixture
def mercury(api: Simulator) -> dict[str, str]:
    """The settings with which the mercury bridge reaches that API."""
    return {"MERCURY_API_URL": api.url, "MERCURY_API_KEY": "sk_test_0123456789", "MERCURY_MODEL": "mercury-2"}
