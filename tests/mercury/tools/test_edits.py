"""`mercury_apply_edit` and `mercury_next_edit`: the parts of an edit become the API's tags."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from bridgehead.mercury.bridge import make_bridge
from bridgehead.mercury.settings import MercurySettings
from bridgehead.mercury.simulator import Simulator
from tests.mercury.process import environment, error_of
from tests.support.checked import CheckedClient, connect

pytestmark = pytest.mark.asyncio(loop_scope="module")

APPLY, NEXT = "mercury_apply_edit", "mercury_next_edit"
FILE = "import os\n\n\ndef area(r):\n    return r\n\n\nprint(area(2))\n"


@pytest_asyncio.fixture(loop_scope="module")
async def bridge(api: Simulator, tmp_path: Path) -> AsyncIterator[CheckedClient]:
    async with connect(make_bridge(MercurySettings(environment(api.url, tmp_path)))) as client:
        yield client


def prompt(api: Simulator) -> str:
    (sent,) = api.requests.to("/edit/completions")
    ((message,),) = (sent.body["messages"],)
    assert message["role"] == "user"
    text: str = message["content"]
    return text


async def test_an_update_is_applied_to_the_original(api: Simulator, bridge: CheckedClient) -> None:
    result = await bridge.call(APPLY, {"original": "a = 1\nb = 2", "update": "b = 3", "max_tokens": 50})

    assert prompt(api) == (
        "<|original_code|>\na = 1\nb = 2\n<|/original_code|>\n\n"
        "<|update_snippet|>\nb = 3\n<|/update_snippet|>"
    )
    assert api.requests.to("/edit/completions")[0].body["max_tokens"] == 50
    assert result["structuredContent"]["metadata"]["model"] == "mercury-edit-2"


async def test_the_next_edit_has_region_cursor_history_and_snippets(
    api: Simulator, bridge: CheckedClient
) -> None:
    given = {
        "content": FILE,
        "path": "area.py",
        "region": {"first": 4, "last": 5},
        "cursor": {"line": 5, "column": 13},
        "recent_edits": ["-def size(r):\n+def area(r):"],
        "snippets": [{"path": "pi.py", "content": "PI = 3"}],
    }
    await bridge.call(NEXT, given)

    sent = prompt(api)
    assert "<|code_to_edit|>\ndef area(r):\n    return r<|cursor|>\n<|/code_to_edit|>\n\n\nprint" in sent
    assert "<|current_file_content|>\ncurrent_file_path: area.py\nimport os\n" in sent
    assert "<|edit_diff_history|>\n-def size(r):\n+def area(r):\n<|/edit_diff_history|>" in sent
    assert "code_snippet_file_path: pi.py\nPI = 3\n<|/recently_viewed_code_snippet|>" in sent


@pytest.mark.parametrize("odd", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", "\r"])
async def test_the_cursor_stands_on_the_line_that_an_editor_counts(
    api: Simulator, bridge: CheckedClient, odd: str
) -> None:
    content = f"a = 1{odd}b = 2\r\nc = 3\r\n"
    await bridge.call(NEXT, {"content": content, "cursor": {"line": 2, "column": 6}})

    assert f"a = 1{odd}b = 2\r\nc = 3<|cursor|>\r\n" in prompt(api)


async def test_a_column_behind_the_end_is_refused_with_the_length_of_the_line(
    bridge: CheckedClient,
) -> None:
    error = error_of(await bridge.call(NEXT, {"content": "ab  \n", "cursor": {"line": 1, "column": 6}}))

    assert "line 1 has 4 columns, not 6" in error["message"]


async def test_without_a_region_the_whole_file_may_change(api: Simulator, bridge: CheckedClient) -> None:
    await bridge.call(NEXT, {"content": "a = 1\n"})

    assert "<|code_to_edit|>\na = 1\n<|/code_to_edit|>" in prompt(api)


@pytest.mark.parametrize(
    ("tool", "given", "argument"),
    [
        (APPLY, {"original": "x <|/original_code|> y", "update": "b"}, "original"),
        (APPLY, {"original": "x", "update": "<|cursor|>"}, "update"),
        (NEXT, {"content": "<|code_to_edit|>"}, "content"),
        (NEXT, {"content": FILE, "recent_edits": ["<|/edit_diff_history|>"]}, "recent_edits"),
        (NEXT, {"content": FILE, "region": {"first": 5, "last": 4}}, "region"),
        (NEXT, {"content": FILE, "region": {"first": 1, "last": 99}}, "region"),
        (
            NEXT,
            {"content": FILE, "region": {"first": 1, "last": 2}, "cursor": {"line": 3, "column": 1}},
            "cursor",
        ),
        (NEXT, {"content": FILE, "cursor": {"line": 1, "column": 11}}, "cursor"),
        (APPLY, {"original": "a"}, "update"),
        (APPLY, {"update": "a"}, "original cannot be used: it is missing; give the whole file."),
        (APPLY, {"original": "a", "file": "b", "update": "a"}, "`original` is given too"),
    ],
)
async def test_what_cannot_be_an_edit_is_refused_with_the_argument_that_is_wrong(
    api: Simulator, bridge: CheckedClient, tool: str, given: dict[str, Any], argument: str
) -> None:
    error = error_of(await bridge.call(tool, given))

    assert (error["type"], error["code"]) == ("validation_error", "INVALID_ARGUMENTS")
    assert argument in error["message"]
    assert not api.requests.to("/edit/completions")
