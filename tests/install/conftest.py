"""What tests of an installation start from."""

from pathlib import Path

import pytest

from .desk import Desk


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Desk:
    return Desk(tmp_path, capsys)
