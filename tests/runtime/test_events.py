"""Events: heard by whoever listens, in order, bounded, and without secrets."""

import asyncio

import msgspec
import pytest

from bridgehead.runtime import logs
from bridgehead.runtime.events import Event, Feed, Listener, matches
from tests.support.waiting import PATIENCE


async def take_all(listener: Listener) -> list[Event]:
    async with asyncio.timeout(PATIENCE):
        return await listener.take(100)


async def test_every_listener_hears_of_everything_in_order() -> None:
    feed, one, other = Feed(), Listener(), Listener()
    feed.join(one)
    feed.publish("call.ended", tool="a")
    feed.join(other)
    feed.publish("call.failed", tool="b")

    assert [(event.type, event.data) for event in await take_all(one)] == [
        ("call.ended", {"tool": "a"}),
        ("call.failed", {"tool": "b"}),
    ]
    assert [event.data for event in await take_all(other)] == [{"tool": "b"}]


async def test_a_listener_waits_until_something_happens() -> None:
    feed, listener = Feed(), Listener()
    feed.join(listener)
    waiting = asyncio.create_task(take_all(listener))
    await asyncio.sleep(0)
    feed.publish("breaker.opened")

    assert [event.type for event in await waiting] == ["breaker.opened"]


async def test_who_is_slow_loses_the_oldest_and_is_told_how_many() -> None:
    feed, listener = Feed(), Listener(limit=3)
    feed.join(listener)
    for number in range(10):
        feed.publish("call.ended", number=number)

    assert [event.data["number"] for event in await take_all(listener)] == [7, 8, 9]
    assert listener.dropped == 7


async def test_who_has_left_hears_no_more() -> None:
    feed, listener = Feed(), Listener()
    feed.join(listener)
    assert feed.has_call_listeners
    feed.leave(listener)
    feed.leave(listener)
    feed.publish("call.ended")

    assert (len(listener), feed.has_call_listeners) == (0, False)


async def test_a_listener_hears_only_of_the_types_it_wants() -> None:
    feed, listener = Feed(), Listener(("budget.*", "call.failed"))
    feed.join(listener)
    for kind in ("call.ended", "call.failed", "budget.threshold"):
        feed.publish(kind)

    assert [event.type for event in await take_all(listener)] == ["call.failed", "budget.threshold"]
    assert matches((), "anything.at_all")


def test_ids_differ_between_feeds_and_events() -> None:
    ids = set()
    for feed in (Feed(), Feed()):
        listener = Listener()
        feed.join(listener)
        feed.publish("a.b")
        feed.publish("a.b")
        ids |= {event.id for event in listener._waiting}  # noqa: SLF001 - what it would give

    assert len(ids) == 4


@pytest.mark.parametrize("text", ["the key is sk-very-secret-0815", "https://me:sk-very-secret-0815@there/"])
def test_an_event_is_written_without_secrets(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_hidden", {"sk-very-secret-0815"})
    monkeypatch.setattr(logs, "_encoded", {b"sk-very-secret-0815"})
    written = Event("evt_1", "call.failed", 1.5, {"says": text, "more": [text]}).encode()

    assert b"0815" not in written
    assert msgspec.json.decode(written)["type"] == "call.failed"
