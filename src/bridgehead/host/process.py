"""Process: one process that serves, alone or as one of several, until it is told to end."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from bridgehead.mcp.http.server import Server, loop_factory
from bridgehead.mcp.process import run_to_end
from bridgehead.runtime import logs
from bridgehead.runtime.clock import SystemClock
from bridgehead.runtime.hosting import Factory

from . import tls
from .app import HostApplication
from .making import limits_of, make_application
from .settings import HostSettings
from .sharding import Sharded
from .siblings import FromSiblings, Siblings
from .tracing import Tracer

log = logs.logger("host")


class Job(Struct, frozen=True):
    """What every process of one host serves."""

    settings: HostSettings
    factories: Mapping[str, Factory]
    environment: Mapping[str, str]
    listening: socket.socket
    state_key: bytes
    """What the questions that a client carries between two requests are sealed with, the same for all."""

    @property
    def address(self) -> str:
        """The address that is served, as a client would write it."""
        scheme = "https" if self.settings.tls_cert else "http"
        host = f"[{self.settings.host}]" if ":" in self.settings.host else self.settings.host
        return f"{scheme}://{host}:{self.listening.getsockname()[1]}"


class Post(Struct, frozen=True):
    """Where one of several processes stands."""

    siblings: Siblings
    listening: socket.socket
    """What its siblings reach it by."""


def serve(job: Job, post: Post | None = None) -> None:
    """Serve until told to end."""
    settings = job.settings
    tracer = Tracer(settings.otel_endpoint) if settings.otel_endpoint else None
    app = make_application(
        settings,
        job.factories,
        job.environment,
        SystemClock(),
        state_key=job.state_key,
        tracer=tracer,
        siblings=None if post is None else post.siblings,
    )
    run_to_end(_serving(job, post, app), loop_factory(), settings.shutdown_seconds)
    if tracer is not None:
        tracer.close()
    log.info("ended")


async def _serving(job: Job, post: Post | None, app: HostApplication) -> None:
    context = tls.context(job.settings)
    if post is None:
        servers = [(_server(job, app, app.end_streams), job.listening, context)]
    else:
        sharded = Sharded(app, post.siblings, limits_of(job.settings))
        inner = FromSiblings(post.siblings, sharded, app.pages.own_metrics)
        servers = [
            (_server(job, sharded, app.end_streams), job.listening, context),
            (_server(job, inner, app.end_streams), post.listening, None),
        ]
    with _told_to_end() as told:
        for server, listening, certificate in servers:
            await server.start(listening, certificate)
        log.info("serving", url=f"{job.address}/mcp", bridges=list(job.factories), **_about(job, post))
        await told.wait()
        log.info("ending")
        await asyncio.gather(*(server.stop() for server, _, _ in servers))


def _server(job: Job, app: Any, end_streams: Callable[[], None]) -> Server:
    return Server(
        app,
        most_connections=job.settings.connections,
        keep_alive_seconds=job.settings.idle_seconds,
        shutdown_seconds=job.settings.shutdown_seconds,
        end_streams=end_streams,
    )


def _about(job: Job, post: Post | None) -> dict[str, object]:
    about: dict[str, object] = {"auth": "on" if job.settings.needs_auth else "off"}
    return about if post is None else about | {"worker": post.siblings.index}


@contextmanager
def _told_to_end() -> Iterator[asyncio.Event]:
    """Give an event that is set when a signal comes that ends a process."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()

    def hear(*_: object) -> None:
        loop.call_soon_threadsafe(told.set)

    before = {number: signal.signal(number, hear) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
