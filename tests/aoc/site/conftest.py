"""Fixtures of the tests that fetch."""

from collections.abc import Iterator

import pytest

from tests.aoc.site.stand_in import Site
from tests.support.fake_api import running_in_thread


@pytest.fixture
def site() -> Iterator[Site]:
    """A stand-in for the site."""
    one = Site()
    with running_in_thread(one.api):
        yield one
