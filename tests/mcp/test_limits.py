"""Limits: each bound that is promised is one that the engine keeps to."""

import re
from pathlib import Path

import pytest

import bridgehead.mcp
from bridgehead.mcp import Limits

ENGINE = Path(bridgehead.mcp.__file__).parent
CODE = "\n".join(
    path.read_text(encoding="utf-8") for path in ENGINE.rglob("*.py") if path.name != "limits.py"
)


@pytest.mark.parametrize("name", Limits.__struct_fields__)
def test_every_limit_is_asked_for_where_something_could_grow(name: str) -> None:
    assert re.search(rf"limits\.{name}\b", CODE)
