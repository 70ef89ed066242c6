"""Tools: a person tries a tool by a form, through the same view, limits and audit as any client."""

from pathlib import Path
from typing import Any

from tests.host.dashboard.browsing import Browser
from tests.host.dashboard.test_html import HOSTILE
from tests.support.clock import Clock
from tests.support.host_bridges import StandIns
from tests.support.host_server import hosting

ECHO = {"bridge": "alpha", "name": "alpha_echo"}
WRITE = {"bridge": "alpha", "name": "alpha_write"}
BUY = {"bridge": "alpha", "name": "alpha_buy"}


async def test_a_tool_that_only_reads_is_called_at_once(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        browser = Browser(host)
        assert "What to say back" in await browser.open("/dashboard/tool?bridge=alpha&name=alpha_echo")
        text = await browser.submit("/dashboard/call", {**ECHO, "arg.text": HOSTILE[0]})

        assert HOSTILE[0] in text
        assert "answered" in text
        assert host.far["alpha"].visitors == [None]
        assert [a for name, a in browser.page.elements if name == "script" and "src" not in a] == []


async def test_a_tool_that_changes_something_is_called_after_a_question(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        browser = Browser(host)
        await browser.open("/dashboard/tool?bridge=alpha&name=alpha_write")
        text = await browser.submit("/dashboard/call", {**WRITE, "arg.text": "it"})
        assert "It may overwrite or delete something." in text
        assert host.far["alpha"].visitors == []

        text = await browser.submit("/dashboard/call", {**WRITE, "confirmed": "yes", "arg.text": "it"})
        assert "wrote it" in text
        assert len(host.logged("a call that may change something")) == 1


async def test_a_tool_says_in_its_own_words_what_it_changes(tmp_path: Path) -> None:
    async with hosting(tmp_path, stand_ins=StandIns("slow")) as host:
        browser = Browser(host)
        listed = await browser.open("/dashboard/tools")
        await browser.open("/dashboard/tool?bridge=slow&name=slow_erase")
        erase = {"bridge": "slow", "name": "slow_erase", "arg.text": "it"}
        asked = await browser.submit("/dashboard/call", erase)

    assert "slow_eraseerases (can be undone)" in listed
    assert "slow_writeoverwrites or deletes" in listed
    assert "It erases (can be undone)." in asked


async def test_a_form_begins_with_the_defaults_and_an_emptied_field_stays_empty(tmp_path: Path) -> None:
    async with hosting(tmp_path, stand_ins=StandIns("slow")) as host:
        browser, repeat = Browser(host), {"bridge": "slow", "name": "slow_repeat", "arg.text": "x"}
        await browser.open("/dashboard/tool?bridge=slow&name=slow_repeat")
        assert find_value(browser, "arg.times") == "2"
        for times in ("3", ""):
            text = await browser.submit("/dashboard/call", {**repeat, "arg.times": times})
            assert "x" * int(times or 2) in text
            assert find_value(browser, "arg.times") == times


def find_value(browser: Browser, name: str) -> str | None:
    (value,) = [a["value"] for _, a in browser.page.elements if a.get("name") == name]
    return value


async def test_a_tool_that_costs_money_asks_and_is_refused_to_who_may_not_spend(tmp_path: Path) -> None:
    stand_ins = StandIns("alpha")
    stand_ins.paid = {"alpha"}
    tokens: dict[str, dict[str, Any]] = {
        "rich": {"dashboard": True, "read_only": True, "may_spend": True},
        "poor": {"dashboard": True, "read_only": True},
    }
    async with hosting(tmp_path, stand_ins=stand_ins, tokens=tokens) as host:
        for name, words in (("rich", "bought"), ("poor", "may not call tools that cost money")):
            browser = Browser(host)
            await browser.sign_in(host.secrets[name])
            await browser.open("/dashboard/tool?bridge=alpha&name=alpha_buy")
            text = await browser.submit("/dashboard/call", {**BUY, "arg.text": "bought"})
            assert "It costs money." in text
            text = await browser.submit("/dashboard/call", {**BUY, "confirmed": "yes", "arg.text": "bought"})
            assert words in text
            assert "alpha_write" not in await browser.open("/dashboard/tools")
            await browser.open("/dashboard/tool?bridge=alpha&name=alpha_write")
            assert browser.status == 404


async def test_a_call_is_made_in_the_name_of_the_token_and_within_its_limit(tmp_path: Path) -> None:
    tokens = {"ann": {"dashboard": True, "per_minute": 1}}
    async with hosting(tmp_path, tokens=tokens, clock=Clock()) as host:
        browser = Browser(host)
        await browser.sign_in(host.secrets["ann"])
        text = ""
        for status in (200, 429):
            await browser.open("/dashboard/tool?bridge=alpha&name=alpha_echo")
            text = await browser.submit("/dashboard/call", {**ECHO, "arg.text": "hello"})
            assert browser.status == status
        assert "ann may make 1 requests a minute" in text
        assert host.far["alpha"].visitors == ["ann"]


async def test_a_tool_that_fails_or_asks_says_so(tmp_path: Path) -> None:
    async with hosting(tmp_path, stand_ins=StandIns("alpha", "slow")) as host:
        host.far["alpha"].is_there = False
        browser = Browser(host)
        await browser.open("/dashboard/tool?bridge=alpha&name=alpha_echo")
        text = await browser.submit("/dashboard/call", {**ECHO, "arg.text": "x"})
        assert ("failed" in text, "The far side of alpha is away." in text) == (True, True)
        text = await browser.submit("/dashboard/call", {"bridge": "alpha", "name": "alpha_bug"})
        assert ("Internal error" in text, "secret of the inside" in text) == (True, False)
        text = await browser.submit(
            "/dashboard/call", {"bridge": "slow", "name": "slow_ask", "arg.text": "Who?"}
        )
        assert "yours has not declared it" in text


async def test_what_was_typed_stays_and_a_tool_that_is_not_there_is_named(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        browser = Browser(host)
        await browser.open("/dashboard/tool?bridge=alpha&name=alpha_echo")
        await browser.submit("/dashboard/call", {**ECHO, "arg.text": "kept & safe"})
        assert "kept &amp; safe</textarea>" in browser.html or 'value="kept &amp; safe"' in browser.html
        assert "There is no such tool" in await browser.submit(
            "/dashboard/call", {"bridge": "alpha", "name": "none"}
        )
        assert browser.status == 404


async def test_a_tool_with_a_prefix_is_shown_and_called_by_it(tmp_path: Path) -> None:
    async with hosting(tmp_path, {"STAND_IN_TOOL_PREFIX": "my_"}) as host:
        browser = Browser(host)
        listed = await browser.open("/dashboard/tools")
        await browser.open("/dashboard/tool?bridge=alpha&name=my_alpha_echo")
        answer = await browser.submit(
            "/dashboard/call", {**ECHO, "name": "my_alpha_echo", "arg.text": "heard"}
        )

    assert "my_alpha_echo" in listed
    assert "heard" in answer
    assert host.far["alpha"].visitors
