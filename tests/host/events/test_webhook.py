"""Webhook: events reach a receiver signed and in order; one that fails or hangs costs nothing else."""

import asyncio
import base64
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from bridgehead.host.events import webhook as module
from bridgehead.host.events.webhook import Webhook, read_secret
from bridgehead.runtime.events import Feed
from bridgehead.runtime.metrics import Metrics
from bridgehead.runtime.timing import Backoff, SystemClock
from tests.support.fake_api import Answer, Request, fake_api
from tests.support.host_server import hosting
from tests.support.waiting import PATIENCE, until

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105 - an example
SOON = Backoff(base=0.01, limit=0.02, jitter=0.0)
DOCS = Path(__file__).parents[3] / "docs" / "monitor.md"


class Receiver:
    """An HTTP server that takes events as a test has it."""

    def __init__(self) -> None:
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[int | Literal["hang", "drop"]] = []
        """The statuses of the next answers, then 200; `hang` and `drop` are no answer."""
        self.url = ""

    @property
    def events(self) -> list[dict[str, Any]]:
        """All events that came, in their order."""
        return [event for _, body in self.requests for event in msgspec.json.decode(body)["events"]]

    async def respond(self, request: Request) -> Answer | None:
        """Take a request."""
        self.requests.append((request.headers, request.body))
        answer = self.answers.pop(0) if self.answers else 200
        if answer == "hang":
            await asyncio.sleep(PATIENCE)
        return Answer(answer) if isinstance(answer, int) else None


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    async with fake_api(receiver.respond) as api:
        receiver.url = f"{api.url}/hook?team=a"
        yield receiver


def make(url: str, **options: Any) -> tuple[Webhook, Feed]:
    feed = Feed()
    made = Webhook(url, SECRET, SystemClock(), **{"backoff": SOON, "request_seconds": 0.3, **options})
    made.start(feed)
    return made, feed


def read_snippet() -> Callable[..., bool]:
    """Run the code that the docs give to receivers."""
    (code,) = re.findall(r"```python\n(.*?def verify\(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    found: dict[str, Any] = {}
    exec(code, found)  # noqa: S102 - it is ours
    verify: Callable[..., bool] = found["verify"]
    return verify


async def test_events_are_posted_in_order_and_the_code_in_the_docs_verifies_them() -> None:
    verify = read_snippet()
    async with receiving() as receiver:
        hook, feed = make(receiver.url)
        for number in range(250):
            feed.publish("call.ended", number=number)
        await until(lambda: hook.delivered == 250)
        await hook.stop(feed)

    assert [event["data"]["number"] for event in receiver.events] == list(range(250))
    for headers, body in receiver.requests:
        assert verify(SECRET, headers, body)
        assert not verify(SECRET, headers, body + b" ")
        assert not verify(SECRET, {**headers, "webhook-timestamp": "1000"}, body), "a replay, or a forgery"
        assert not verify("whsec_AAAA", headers, body)


async def test_events_that_are_not_taken_are_sent_again_under_the_same_id() -> None:
    async with receiving() as receiver:
        receiver.answers = [503, "drop", 429, "hang", 200]
        hook, feed = make(receiver.url)
        feed.publish("breaker.opened")
        await until(lambda: hook.delivered == 1)
        await hook.stop(feed)

    assert len(receiver.requests) == 5
    assert len({headers["webhook-id"] for headers, _ in receiver.requests}) == 1


async def test_a_user_and_password_in_the_url_are_sent_as_credentials() -> None:
    async with receiving() as receiver:
        hook, feed = make(receiver.url.replace("://", "://ann:p%40ss@"))
        feed.publish("breaker.opened")
        await until(lambda: hook.delivered == 1)
        await hook.stop(feed)

    ((headers, _),) = receiver.requests
    assert headers["authorization"] == f"Basic {base64.b64encode(b'ann:p@ss').decode()}"
    assert "@" not in headers["host"]


async def test_an_outage_after_a_refusal_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with receiving() as receiver:
        receiver.answers = [410, 503]
        hook, feed = make(receiver.url)
        for _ in range(2):
            feed.publish("call.ended")
            await until(lambda: not len(hook.listener))
        await until(lambda: hook.delivered == 1)
        await hook.stop(feed)

    told = [record.message for record in caplog.records]
    assert any("refuses events" in line for line in told)
    assert any("takes no events" in line for line in told)


async def test_events_that_are_refused_are_dropped_and_the_next_ones_come() -> None:
    async with receiving() as receiver:
        receiver.answers = [410]
        hook, feed = make(receiver.url)
        metrics = Metrics()
        hook.declare_metrics(metrics)
        feed.publish("call.ended")
        await until(lambda: hook.dropped == 1)
        feed.publish("call.failed")
        await until(lambda: hook.delivered == 1)
        await hook.stop(feed)

    shown = {metric.name: metric.values for metric in metrics.all}  # type: ignore[union-attr] # no histogram
    assert shown["bridgehead_webhook_events_total"] == {("delivered",): 1.0, ("dropped",): 1.0}


async def test_a_receiver_that_hangs_bounds_what_waits_and_not_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "CLOSE_SECONDS", 0.05)
    async with receiving() as receiver:
        receiver.answers = ["hang"] * 100
        hook, feed = make(receiver.url, request_seconds=600.0)
        feed.publish("call.ended")
        await until(lambda: receiver.requests)
        for _ in range(1500):
            feed.publish("call.ended")
        assert hook.dropped == 500
        async with asyncio.timeout(PATIENCE):
            await hook.stop(feed, 0.05)


async def test_nobody_there_is_tried_again_and_given_up_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ATTEMPTS", 3)
    hook, feed = make("http://127.0.0.1:9/hook")
    feed.publish("call.ended")
    await until(lambda: hook.dropped == 1)
    await hook.stop(feed)


async def test_calls_are_told_without_content_unless_that_is_asked_for(tmp_path: Path) -> None:
    async with receiving() as receiver:
        for content in ("0", "1"):
            settings = {"BRIDGEHEAD_WEBHOOK_URL": receiver.url, "BRIDGEHEAD_EVENT_CONTENT": content}
            async with hosting(tmp_path, settings) as host:
                await host.try_call("/mcp", "alpha_echo")
                host.far["beta"].is_there = False
                await host.try_call("/mcp", "beta_echo")
            # What was told when it ended has arrived: the end waits for it.
        calls = [event for event in receiver.events if event["type"].startswith("call.")]

    assert [(event["type"], event["data"]["tool"]) for event in calls] == [
        ("call.ended", "alpha_echo"),
        ("call.failed", "beta_echo"),
    ] * 2
    assert calls[0]["data"]["request"]
    assert ["hello" in str(event) for event in calls] == [False, False, True, True]


def test_a_secret_is_base64_after_its_prefix_or_a_text_as_it_is() -> None:
    assert read_secret("whsec_aGVsbG8=") == b"hello"
    assert read_secret("plain words") == b"plain words"
    with pytest.raises(ValueError, match="base64"):
        read_secret("whsec_not base64")


def has_dropped(hook: Webhook, count: int) -> bool:
    """Tell whether so many events were dropped."""
    return hook.dropped == count


async def test_a_receiver_that_refuses_everything_fills_no_log(caplog: pytest.LogCaptureFixture) -> None:
    async with receiving() as receiver:
        receiver.answers = [403] * 200
        hook, feed = make(receiver.url)
        with caplog.at_level("WARNING", "bridgehead"):
            for number in range(50):
                feed.publish("call.ended")
                await until(partial(has_dropped, hook, number + 1))
            await hook.stop(feed)

    refused, rest = (record for record in caplog.records if record.name == "bridgehead.host.webhook")
    assert refused.getMessage() == "the webhook refuses events"
    # What was dropped after that line is logged when the host ends, less than a minute later.
    assert (rest.getMessage(), vars(rest)["fields"]["events"]) == ("events were not delivered", 50)


async def test_events_that_overflow_the_queue_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with receiving() as receiver:
        hook, feed = make(receiver.url)
        with caplog.at_level("WARNING", "bridgehead"):
            for _ in range(1500):  # in one turn of the loop: nothing can be posted meanwhile
                feed.publish("call.ended")
            await until(lambda: hook.delivered == 1000)
        await hook.stop(feed)

    (line,) = [record for record in caplog.records if "webhook" in record.getMessage()]
    assert line.getMessage() == "the webhook is too slow, so events were dropped"
