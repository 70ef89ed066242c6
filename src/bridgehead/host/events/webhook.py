"""Webhook: posts events to a URL in order, signed, and retries with backoff until they are accepted.

Signed as in Standard Webhooks: `webhook-signature` is `v1,` and the base64 of an HMAC-SHA256 over
`ID.TIMESTAMP.BODY`. The queue is bounded; a stopping process waits `CLOSE_SECONDS` for the remaining events.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from urllib.parse import unquote, urlsplit

from bridgehead import __version__
from bridgehead.runtime import logs
from bridgehead.runtime.events import Event, Feed, Listener
from bridgehead.runtime.http import BodyTooLarge, ConnectFailed, ConnectionBroken, Pool, Proxies
from bridgehead.runtime.metrics import Metrics
from bridgehead.runtime.timing import Backoff, Clock

BATCH = 100
"""Events in one request."""
REQUEST_SECONDS = 10.0
CLOSE_SECONDS = 3.0
"""How long a stopping process waits for undelivered events."""
MAX_ATTEMPTS = 10
RETRY_BACKOFF = Backoff(base=1.0, limit=60.0)
LOG_SECONDS = 60.0
"""How often a receiver that takes no events is logged."""
_MAX_ANSWER = 65_536
_TRANSIENT = frozenset({408, 425, 429})
_OK, _SERVER_FAULT = range(200, 300), 500
_SECRET = "whsec_"  # noqa: S105 - the prefix of a secret in Standard Webhooks

log = logs.logger("host.webhook")


def read_secret(text: str) -> bytes:
    """Return the key of a secret: base64 after `whsec_`, otherwise the text itself. Raises ValueError."""
    if text.startswith(_SECRET):
        return base64.b64decode(text.removeprefix(_SECRET), validate=True)
    return text.encode()


def sign(secret: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the signature of a request."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    return f"v1,{base64.b64encode(hmac.digest(secret, signed, 'sha256')).decode()}"


class Webhook:
    """One URL and its queue."""

    def __init__(
        self,
        url: str,
        secret: str,
        clock: Clock,
        *,
        patterns: tuple[str, ...] = (),
        environment: Mapping[str, str] | None = None,
        backoff: Backoff = RETRY_BACKOFF,
        request_seconds: float = REQUEST_SECONDS,
        draw: Callable[[], float] = random.random,
    ) -> None:
        parts = urlsplit(url)
        name, at, host = parts.netloc.rpartition("@")
        self._origin = f"{parts.scheme}://{host}"
        basic = base64.b64encode(unquote(name).encode()).decode()
        self._credentials = [("Authorization", f"Basic {basic}")] if at else []
        """A user and password in the URL, sent as HTTP clients do (RFC 7617)."""
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._secret = read_secret(secret) if secret else b""
        self._clock = clock
        self._proxies = Proxies.from_environment(environment or {})
        self._backoff = backoff
        self._request_seconds = request_seconds
        self._draw = draw
        self.listener = Listener(patterns)
        self.delivered = self._refused = 0
        self._next_lines: dict[str, float] = {}
        """By its words, when a loss is logged again, by the monotonic clock: an outage is not a refusal."""
        self._logged = 0
        """Dropped events that have been logged."""
        self._sending: list[Event] = []
        self._is_idle = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def declare_metrics(self, metrics: Metrics) -> None:
        """Count delivered, dropped and waiting events."""
        metrics.total(
            "bridgehead_webhook_events_total",
            "Events for the webhook that were delivered, and those that were dropped.",
            lambda: {("delivered",): float(self.delivered), ("dropped",): float(self.dropped)},
            "outcome",
        )
        metrics.gauge(
            "bridgehead_webhook_waiting",
            "Events that wait for the webhook.",
            lambda: {(): float(len(self.listener) + len(self._sending))},
        )

    @property
    def dropped(self) -> int:
        """Events lost because the queue was full or the receiver refused them."""
        return self.listener.dropped + self._refused

    def start(self, feed: Feed) -> None:
        """Post events from now on."""
        feed.join(self.listener)
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self, feed: Feed, within: float = CLOSE_SECONDS) -> None:
        """Post the rest of the queue within `within` seconds."""
        feed.leave(self.listener)
        if self._task is None:
            return
        if len(self.listener) or self._sending:
            # Cleared only here: `_run` sets it after every batch, also long before the stop.
            self._is_idle.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._is_idle.wait(), within)
        self._task.cancel()
        # Include events dropped since the last log line, which appears at most once a minute.
        lost = len(self.listener) + len(self._sending) + self.dropped - self._logged
        if lost:
            log.warn("events were not delivered", events=lost)
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        # One connection and one batch at a time keep the events in order, also across retries.
        pool = Pool(self._origin, max_connections=1, proxy=self._proxies.choose(self._origin))
        overflown = 0
        try:
            while True:
                self._sending = await self.listener.take(BATCH)
                if self.listener.dropped > overflown:  # the receiver is slower than the events
                    overflown = self.listener.dropped
                    self._log_loss("the webhook is too slow, so events were dropped")
                if await self._deliver(pool, self._sending):
                    self.delivered += len(self._sending)
                else:
                    self._refused += len(self._sending)
                self._sending = []
                if not len(self.listener):
                    self._is_idle.set()
        finally:
            await pool.close()

    async def _deliver(self, pool: Pool, events: list[Event]) -> bool:
        """Post a batch until it is accepted; return whether it was."""
        body = b'{"events":[%b]}' % b",".join(event.encode() for event in events)
        for attempt in range(MAX_ATTEMPTS):
            # The same message id in every attempt: by it a receiver drops a batch that came twice.
            status, wait = await self._post(pool, events[0].id, body)
            if status in _OK:
                return True
            problem = f"status {status}" if status else "no answer"
            # Other 4xx would fail again: drop the batch, so that later events are not held up.
            if status and status < _SERVER_FAULT and status not in _TRANSIENT:
                self._log_loss("the webhook refuses events", problem=problem)
                return False
            self._log_loss("the webhook takes no events", problem=problem, tries=attempt + 1)
            await asyncio.sleep(max(wait, self._backoff.delay(attempt, self._draw)))
        return False

    def _log_loss(self, words: str, **fields: object) -> None:
        """Log that events are not delivered: at once, then once a minute with what was lost meanwhile."""
        now = self._clock.monotonic()
        if now >= self._next_lines.get(words, 0.0):
            self._next_lines[words] = now + LOG_SECONDS
            lost, self._logged = self.dropped - self._logged, self.dropped
            log.error(words, **fields, dropped=lost, waiting=len(self.listener) + len(self._sending))

    async def _post(self, pool: Pool, message_id: str, body: bytes) -> tuple[int, float]:
        """Post once; return the status (0 without an answer) and the receiver's Retry-After in seconds."""
        timestamp = int(self._clock.now())
        headers = [
            ("Content-Type", "application/json"),
            ("User-Agent", f"bridgehead/{__version__}"),
            ("webhook-id", message_id),
            ("webhook-timestamp", str(timestamp)),
            *self._credentials,
        ]
        if self._secret:
            headers.append(("webhook-signature", sign(self._secret, message_id, timestamp, body)))
        try:
            async with (
                asyncio.timeout(self._request_seconds),
                pool.request("POST", self._path, headers, body) as response,
            ):
                wait = response.header("retry-after") or ""
                with suppress(BodyTooLarge):
                    await response.read_body(_MAX_ANSWER)
                return response.status, min(float(wait), self._backoff.limit) if wait.isdigit() else 0.0
        except (ConnectFailed, ConnectionBroken, TimeoutError):
            return 0, 0.0
