"""What callers see: a token learns nothing of other tokens, of the machine or of its databases."""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bridgehead.aoc.bridge import manifest as aoc
from bridgehead.mercury.bridge import manifest as mercury
from bridgehead.mercury.simulator import Simulator
from bridgehead.runtime.manifest import Manifest
from tests.mercury.process import environment
from tests.support.host_bridges import StandIns
from tests.support.host_server import Host, bearer, hosting
from tests.support.messages import call
from tests.support.small_disk import SmallDisk, mount_small_disk

CHAT = "mercury_chat_completion"
ASK: dict[str, Any] = {"messages": [{"role": "user", "content": "Of secrets, in 8 words"}], "max_tokens": 50}
TOKENS: dict[str, dict[str, Any]] = {"ann": {}, "bob": {}, "boss": {"admin": True}}


class Ours(StandIns):
    """Our own bridges in place of stand-ins."""

    def manifests(self, wanted: Collection[str] = ()) -> Mapping[str, Manifest]:
        """Give their manifests."""
        return {"mercury": mercury, "aoc": aoc}


@asynccontextmanager
async def serving(folder: Path, api: Simulator, **settings: str) -> AsyncIterator[Host]:
    """Serve aoc and mercury to a team."""
    ours = environment(api.url, folder, AOC_DATA_DIR=str(folder / "aoc"), **settings)
    async with hosting(folder, ours, stand_ins=Ours(), tokens=TOKENS) as host:
        yield host


@pytest.fixture
async def api() -> AsyncIterator[Simulator]:
    async with Simulator() as simulator:
        yield simulator


async def answer(host: Host, who: str, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Call a tool of a bridge with somebody's token."""
    path = f"/{tool.partition('_')[0]}/mcp" if tool.startswith("mercury") else "/aoc/mcp"
    response = await host.post_call(path, call(tool, dict(arguments)), bearer(host.secrets[who]))
    result: dict[str, Any] = (await response.json())["result"]
    return result


async def test_a_token_sees_its_own_history_and_one_that_may_look_sees_everybodys(
    tmp_path: Path, api: Simulator
) -> None:
    async with serving(tmp_path, api) as host:
        for who in ("ann", "bob", "bob"):
            await answer(host, who, CHAT, ASK)

        async def history(who: str, *by: str) -> list[dict[str, Any]]:
            report = (await answer(host, who, "mercury_usage", {"days": 1, "by": by}))["structuredContent"]
            assert ("notes" in report) == (who != "boss")
            rows: list[dict[str, Any]] = report["history"]
            return rows

        assert [(row["client"], row["calls"]) for row in await history("ann", "client")] == [("ann", 1)]
        assert [row["calls"] for row in await history("bob", "day")] == [2]
        assert [row["client"] for row in await history("boss", "client")] == ["ann", "bob"]


@pytest.mark.parametrize("shared", ["0", "1"])
async def test_a_token_is_answered_from_what_others_asked_only_where_that_is_shared(
    tmp_path: Path, api: Simulator, shared: str
) -> None:
    asked = {**ASK, "cache": "use"}
    async with serving(tmp_path, api, CACHE_SHARED=shared) as host:
        await answer(host, "ann", CHAT, asked)
        again = (await answer(host, "ann", CHAT, asked))["structuredContent"]["metadata"]
        other = (await answer(host, "bob", CHAT, asked))["structuredContent"]["metadata"]
        both = await asyncio.gather(
            *(answer(host, who, CHAT, {**asked, "temperature": 0.6}) for who in ("ann", "bob"))
        )

    assert again["from_cache"]
    assert other.get("from_cache", False) == (shared == "1")
    prices = [one["structuredContent"]["metadata"]["cost_usd"] for one in both]
    assert prices.count(0.0) == (1 if shared == "1" else 0)


async def test_a_token_learns_the_name_of_a_broken_file_and_not_where_it_is(
    tmp_path: Path, api: Simulator, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "aoc" / "speeds" / "day01.json"
    broken.parent.mkdir(parents=True)
    broken.write_text("{")
    async with serving(tmp_path, api) as host:
        run = {"day": 1, "phase": 1, "llm_name": "gpt4", "speed_ms": 5}
        refused = await answer(host, "ann", "record_speed", run)
        board = await answer(host, "ann", "speed_leaderboard", {})
        told = await answer(host, "boss", "record_speed", run)
        page = await host.page("/readyz/aoc", bearer(host.secrets["ann"]))

        assert refused["content"][0]["text"].startswith("day01.json is corrupt")
        assert board["structuredContent"]["skipped"][0]["file"] == "day01.json"
        for shown in (refused, board, page):
            assert str(tmp_path) not in msgspec.json.encode(shown).decode()
        assert str(broken) in told["content"][0]["text"]
        (line,) = [line for line in capsys.readouterr().err.splitlines() if "a file cannot be used" in line]
        assert msgspec.json.decode(line)["path"] == str(broken)


async def test_a_token_learns_which_setting_keeps_a_bridge_from_serving_and_not_its_value(
    tmp_path: Path, api: Simulator
) -> None:
    async with serving(tmp_path, api) as host:  # without the folder of aoc
        response = await host.post_call("/aoc/mcp", call("any", {}), bearer(host.secrets["ann"]))
        words = await host.refused(response, 503)

        assert words == "AOC_DATA_DIR is not a valid value: expected an existing folder."
        (line,) = host.logged("a bridge cannot be served")
        assert str(tmp_path / "aoc") in line["problem"]


@pytest.fixture
def disk() -> Iterator[SmallDisk]:
    with mount_small_disk("1m") as small:
        yield small


async def test_with_a_budget_a_full_disk_fails_paid_calls_at_once_and_is_shown_everywhere(
    tmp_path: Path, api: Simulator, disk: SmallDisk
) -> None:
    state = disk.path / "state"
    async with serving(
        tmp_path, api, BRIDGEHEAD_STATE_DIR=str(state), MERCURY_BUDGET_USD="5", BRIDGEHEAD_PROBE_SECONDS="0.1"
    ) as host:
        events = await host.get("/events?types=store.*,far_side.*", bearer(host.token("eve", events=True)))
        assert (await host.page("/readyz/mercury"))["far_side"]
        disk.fill()
        calls = len([one for one in api.requests if one.path.endswith("completions")])

        async with asyncio.timeout(5):  # 10 s and more before, for each call
            failures = [await answer(host, "ann", CHAT, ASK) for _ in range(3)]
        for failed in failures:
            error = msgspec.json.decode(failed["content"][0]["text"])["error"]
            assert (failed["isError"], error["code"]) == (True, "STORAGE")
            assert "the disk is full" in error["message"]
            assert str(disk.path) not in error["message"]
        assert len([one for one in api.requests if one.path.endswith("completions")]) == calls

        page = await host.page("/readyz/mercury", bearer(host.secrets["ann"]), 503)
        assert "the disk is full" in page["says"]
        assert (await host.page("/readyz"))["status"] == "degraded"
        (line,) = host.logged("the usage database cannot be used")
        assert line["file"] == str(state / "mercury" / "usage.sqlite3")
        seen = b""
        while b"store.lost" not in seen:
            seen += await events.piece()

        disk.make_room()
        while b"store.returned" not in seen:  # found by the probe, before any call
            seen += await events.piece()
        assert (await host.page("/readyz/mercury"))["far_side"]
        assert "isError" not in await answer(host, "ann", CHAT, ASK)
