"""Events: written as the format has it, numbered, bounded, and given again from any position."""

import asyncio

from bridgehead.mcp import Limits
from bridgehead.mcp.http.accounts import Accounts
from bridgehead.mcp.http.events import EventStream, event, priming


def make_stream(limits: Limits) -> EventStream:
    return EventStream("s", limits, Accounts(limits), "a caller")


def test_a_message_is_an_event_with_its_name_and_where_it_can_be_resumed_its_id() -> None:
    assert event(b"{}") == b"event: message\ndata: {}\n\n"
    assert event(b"/x", name=b"endpoint") == b"event: endpoint\ndata: /x\n\n"
    assert event(b"{}", "s/1") == b"event: message\nid: s/1\ndata: {}\n\n"
    assert priming("s/0", 1500) == b"id: s/0\nretry: 1500\ndata: \n\n"


def test_events_are_numbered_and_given_again_from_a_position_on() -> None:
    stream = make_stream(Limits())
    first, second = stream.append(b"1"), stream.append(b"2")

    assert stream.last_number == 2
    assert stream.events_after(0) == [(1, first), (2, second)]
    assert stream.events_after(1) == [(2, second)]
    assert stream.events_after(2) == []
    assert b"id: s/2\n" in second


def test_the_oldest_events_go_when_there_are_too_many() -> None:
    stream = make_stream(Limits(resume_events=2))
    for number in range(5):
        stream.append(b"%d" % number)

    assert [number for number, _ in stream.events_after(0)] == [4, 5]


def test_the_oldest_events_go_when_they_are_too_large_but_never_the_newest() -> None:
    stream = make_stream(Limits(resume_bytes=100))
    for _ in range(3):
        stream.append(b"x" * 40)
    assert [number for number, _ in stream.events_after(0)] == [3]

    stream.append(b"x" * 1000)
    assert [number for number, _ in stream.events_after(0)] == [4]


async def test_whoever_waits_for_more_is_woken_by_an_event_and_by_the_end() -> None:
    stream = make_stream(Limits())
    assert not await stream.wait_for_more(0.001)

    for say in (lambda: stream.append(b"1"), stream.wake, stream.end):
        waiting = asyncio.ensure_future(stream.wait_for_more(600))
        await asyncio.sleep(0)
        say()
        assert await waiting
    assert stream.has_ended
    assert not await stream.wait_for_more(0.001)
