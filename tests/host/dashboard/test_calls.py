"""Calls: a page searches the audit, of the bridges that the visitor's token opens."""

import asyncio
from pathlib import Path
from typing import Any

from tests.host.audit.test_trail import Audited, audited
from tests.host.dashboard.browsing import Browser
from tests.support.host_server import bearer, hosting
from tests.support.waiting import PATIENCE

__all__ = ["audited"]


async def test_the_page_answers_which_calls_of_somebody_failed(tmp_path: Path, audited: Audited) -> None:
    tokens: dict[str, dict[str, Any]] = {
        "bob": {},
        "boss": {"admin": True},
        "half": {"dashboard": True, "bridges": ("beta",)},
    }
    async with hosting(tmp_path, audited.environment, tokens=tokens) as host:
        bob = bearer(host.secrets["bob"])
        await host.try_call("/mcp", "alpha_echo", bob)
        host.far["alpha"].is_there = False
        await host.try_call("/mcp", "alpha_write", bob)
        browser = Browser(host)
        await browser.sign_in(host.secrets["boss"])
        text = ""
        async with asyncio.timeout(PATIENCE):
            while "alpha_write" not in text:
                text = await browser.open("/dashboard/calls?caller=bob&outcome=failed&since=1h")
        everything = await browser.open("/dashboard/calls")
        wrong = await browser.open("/dashboard/calls?since=soon")
        half = Browser(host)
        await half.sign_in(host.secrets["half"])
        hidden = await half.open("/dashboard/calls")

    assert "alpha_echo" not in text
    assert "alpha_echo" in everything
    assert "Since is 'soon', which is no time." in wrong
    assert "alpha_" not in hidden
