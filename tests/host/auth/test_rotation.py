"""Rotation: a secret is replaced while its callers go on; patterns open the tools that they name."""

import asyncio
from pathlib import Path

from bridgehead.host.auth.tokens import Token, rotate_token
from tests.support.host_server import bearer, hosting
from tests.support.messages import text as text_of
from tests.support.waiting import until

OVERLAP = 3600.0


async def test_a_token_is_rotated_under_load_and_no_call_or_stream_ends(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens={"ci": {"events": True}}) as host:
        old = host.secrets["ci"]
        stream = await host.get("/events", bearer(old))
        used, statuses, new = old, list[int](), ""
        is_over = False

        async def keep_calling() -> None:
            while not is_over:
                statuses.append((await host.try_call("/mcp", "alpha_echo", bearer(used))).status)

        clients = [asyncio.create_task(keep_calling()) for _ in range(4)]
        await until(lambda: len(statuses) > 20)

        def rotate(token: Token) -> Token:
            nonlocal new
            entry, new = rotate_token(token, 1_800_000_000.0, OVERLAP)
            return entry

        await asyncio.to_thread(host.tokens.change, "ci", rotate)
        before = len(statuses)
        await until(lambda: len(statuses) > before + 20)  # with the old secret
        used = new
        before = len(statuses)
        await until(lambda: len(statuses) > before + 20)
        is_over = True
        await asyncio.gather(*clients)
        await host.try_call("/mcp", "alpha_write", bearer(new))
        event = await stream.event()

        assert set(statuses) == {200}
        assert event is not None
        await stream.hang_up()


async def test_a_token_opens_the_tools_that_its_patterns_name_and_the_others_say_why_not(
    tmp_path: Path,
) -> None:
    tokens = {"reader": {"tools": ("alpha_ech*", "beta_*")}, "all": {}}
    async with hosting(tmp_path, tokens=tokens) as host:
        reader = bearer(host.secrets["reader"])
        session = await host.session("/mcp", reader)
        listed = await host.in_session("/mcp", session, "tools/list")
        names = {tool["name"] for tool in listed["result"]["tools"]}
        opened = await host.try_call("/alpha/mcp", "alpha_echo", reader)
        refused = await (await host.try_call("/alpha/mcp", "alpha_write", reader)).json()
        everything = await host.try_call("/alpha/mcp", "alpha_write", bearer(host.secrets["all"]))

    assert {name for name in names if name.startswith("alpha")} == {"alpha_echo"}
    assert any(name.startswith("beta_w") for name in names)
    assert text_of(await opened.json())
    assert "This token does not open it" in refused["error"]["message"]
    assert everything.status == 200
