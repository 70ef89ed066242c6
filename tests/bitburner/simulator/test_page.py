"""The simulated game's page in the documents: its tables name what there is, and its example runs."""

import ast
import re
import sys
from asyncio.subprocess import PIPE, create_subprocess_exec
from collections.abc import Awaitable
from pathlib import Path
from typing import cast

from bridgehead.bitburner.simulator.faults import SHARES
from tests.bitburner.simulator.listening import listening

PAGE = (Path(__file__).parents[3] / "docs" / "bitburner-simulator.md").read_text(encoding="utf-8")


async def test_the_page_tells_every_option_and_no_other() -> None:
    process = await create_subprocess_exec(
        *(sys.executable, "-m", "bridgehead", "bitburner", "simulate", "--help"), stdout=PIPE
    )
    text, _ = await process.communicate()
    there = set(re.findall(r"^  (?:-h, )?(--\w+)", text.decode(), re.MULTILINE)) - {"--help"}

    assert set(re.findall(r"^\| `(--\w+)", PAGE, re.MULTILINE)) == there


def test_the_page_tells_every_fault_and_no_other() -> None:
    assert set(re.findall(r"^\| `([a-z]\w+)`", PAGE, re.MULTILINE)) == set(SHARES)


async def test_the_example_of_the_page_runs() -> None:
    code = PAGE.split("```python\n")[1].split("```")[0]
    shown: list[object] = []
    async with listening() as server:
        example = compile(
            code.replace("ws://127.0.0.1:12525", server.url),
            "the page",
            "exec",
            flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
        )
        await cast("Awaitable[None]", eval(example, {"print": lambda *said: shown.extend(said)}))  # noqa: S307  (our own text)

    assert shown == [{"hack.js": "ns.hack('n00dles')"}, [], True]
