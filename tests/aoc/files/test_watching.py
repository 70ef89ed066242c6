"""Watching: changes of the puzzle files reach the clients that listen, in both eras."""

import asyncio
import threading
from typing import Any

import pytest

from bridgehead.aoc.files import watching
from bridgehead.aoc.files.layout import LEADERBOARD_URI
from bridgehead.aoc.files.watching import look, watch
from bridgehead.mcp.revisions import HANDSHAKE, Revision
from tests.aoc.data import QUICKLY, Data
from tests.support.checked import STATELESS, CheckedClient, connect
from tests.support.waiting import until

UPDATED = "notifications/resources/updated"
LIST_CHANGED = "notifications/resources/list_changed"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


async def listening(client: CheckedClient, uri: str) -> None:
    """Ask to hear of a resource and of the list, in the way of the client's era."""
    if not client.revision.stateless:
        await client.request("resources/subscribe", {"uri": uri})
        return
    wanted = {"resourcesListChanged": True, "resourceSubscriptions": [uri]}
    client.start("subscriptions/listen", {"notifications": wanted})
    await client.inbox.of(ACKNOWLEDGED)


def uris(messages: list[dict[str, Any]]) -> set[str]:
    return {message["params"]["uri"] for message in messages}


@pytest.mark.parametrize("revision", [*HANDSHAKE.values(), STATELESS], ids=str)
async def test_a_changed_puzzle_is_announced_to_who_subscribed(data: Data, revision: Revision) -> None:
    data.puzzle(1, "before")
    data.puzzle(2, "before")
    async with connect(data.bridge(), revision=revision) as client:
        await client.call("fetch_instruction", {"day": 1})
        await listening(client, "aoc://day01")
        data.puzzle(2, "not listened to")
        data.puzzle(1, "after all")
        heard = await client.inbox.of(UPDATED)
        assert uris(heard) == {"aoc://day01"}
        read = await client.request("resources/read", {"uri": "aoc://day01"})
        assert read["contents"][0]["text"] == "# Day 1\n\nafter all"
        assert not client.notifications(LIST_CHANGED)


@pytest.mark.parametrize("revision", [HANDSHAKE["2024-11-05"], STATELESS], ids=str)
async def test_a_new_puzzle_and_one_that_is_gone_change_the_list(data: Data, revision: Revision) -> None:
    async with connect(data.bridge(), revision=revision) as client:
        await client.request("resources/list")
        await listening(client, "aoc://day01")
        data.puzzle(1, "new")
        await client.inbox.of(LIST_CHANGED, 1)
        await client.inbox.of(UPDATED, 1)
        data.puzzle(1, "new", "and a second phase")
        await client.inbox.of(UPDATED, 2)
        for path in data.instructions.iterdir():
            path.unlink()
        await client.inbox.of(LIST_CHANGED, 2)
        await client.inbox.of(UPDATED, 3)
        listed = (await client.request("resources/list"))["resources"]
        assert [item["uri"] for item in listed if "day" in item["uri"]] == []


async def test_a_folder_that_appears_later_is_seen(data: Data) -> None:
    data.instructions.rmdir()
    async with connect(data.bridge()) as client:
        await client.request("resources/list")
        data.instructions.mkdir()
        data.puzzle(4, "late")
        await client.inbox.of(LIST_CHANGED)


async def test_nothing_is_announced_while_nothing_changes(data: Data) -> None:
    data.puzzle(1, "still")
    async with connect(data.bridge()) as client:
        await client.request("resources/list")
        await listening(client, "aoc://day01")
        await asyncio.sleep(0.2)  # ten looks at the folder
        assert client.notifications(UPDATED) + client.notifications(LIST_CHANGED) == []


@pytest.mark.parametrize("revision", [HANDSHAKE["2025-11-25"], STATELESS], ids=str)
async def test_who_subscribed_before_the_first_look_at_a_database_hears_of_what_it_may_have_missed(
    data: Data, revision: Revision
) -> None:
    async def look_elsewhere() -> str:
        return "one record"

    bridge = data.bridge()
    async with connect(bridge, revision=revision) as client:
        await client.call("fetch_instruction", {"day": 1})
        await listening(client, LEADERBOARD_URI)
        folders = client.dispatcher.lifespans[bridge].value.folders
        task = asyncio.create_task(watch(bridge, folders, QUICKLY, look_elsewhere, look(folders)))
        heard = await client.inbox.of(UPDATED)
        task.cancel()

    assert uris(heard) == {LEADERBOARD_URI}


async def test_nothing_is_looked_at_while_nobody_listens(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    read_state = watching.read_state

    def noted(*given: Any) -> watching.FolderState:
        looks.append(threading.current_thread().name)
        return read_state(*given)

    monkeypatch.setattr(watching, "read_state", noted)
    bridge = data.bridge()
    async with connect(bridge, revision=STATELESS) as client:
        await client.call("fetch_instruction", {"day": 1})
        await asyncio.sleep(5 * QUICKLY)
        assert len(looks) == 1  # the one that later ones are compared with
        await listening(client, "aoc://day01")
        await until(lambda: len(looks) > 2)

    assert set(looks) == {"aoc watcher"}


async def test_a_slow_folder_holds_up_no_call(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    is_released = threading.Event()
    read_state = watching.read_state

    def hanging(*given: Any) -> watching.FolderState:
        is_released.wait()
        return read_state(*given)

    monkeypatch.setattr(watching, "read_state", hanging)
    data.puzzle(1, "Count the gulls.")
    async with connect(data.bridge()) as client:
        assert (await client.call("fetch_instruction", {"day": 1}))["content"]
        assert sum(thread.name == "aoc watcher" for thread in threading.enumerate()) == 1  # without overlap
    is_released.set()
