"""Fixtures of the tests that fetch."""

from collections.abc import Iterator

import pytest

from tests.aoc.site.stand_in import Site


@pytest.fixture
def site() -> Iterator[Site]:
    """A stand-in for the site."""
    one = Site()
    yield one
    one.close()
