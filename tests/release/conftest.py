"""What was built, once for all tests that look at it."""

from pathlib import Path

import pytest

from release import dist

MOMENT = 1_700_000_000


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel and the sdist."""
    return dist.distributions(tmp_path_factory.mktemp("built"), MOMENT)
