"""Every tool works the same over files and over a database."""

from pathlib import Path

import pytest

from tests.aoc.data import Data
from tests.aoc.database_data import DatabaseData


@pytest.fixture(params=["files", "database"])
def data(request: pytest.FixtureRequest, tmp_path: Path) -> Data:
    """A data directory without puzzles and records, with the records in files or in a database."""
    if request.param == "files":
        return Data(tmp_path / "data")
    return DatabaseData(tmp_path / "data", request.getfixturevalue("database_url"))
