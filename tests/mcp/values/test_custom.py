"""Custom types: values that msgspec does not know are written as JSON, or refused by their type."""

import re
from pathlib import PurePosixPath
from typing import Any

import pytest
from msgspec.json import Decoder

from bridgehead.mcp.values.custom import encode, make_custom, read_custom


def test_paths_and_patterns_are_strings() -> None:
    assert encode([PurePosixPath("a/b"), re.compile("a+")]) == b'["a/b","a+"]'


def test_another_object_cannot_be_written() -> None:
    with pytest.raises(TypeError, match="object cannot be written as JSON"):
        encode(object())


def test_a_custom_type_reads_what_its_function_returns() -> None:
    doubled: Any = make_custom("Doubled", lambda value: value * 2, dict)

    assert Decoder(list[doubled], dec_hook=read_custom).decode(b'[1,"a"]') == [2, "aa"]
