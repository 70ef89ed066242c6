"""Process: one process that serves, alone or as one of several, until it is told to end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from msgspec import Struct

from bridgehead.mcp import run_to_end, socket_loop, told_to_end
from bridgehead.mcp.http.server import Server
from bridgehead.runtime import logs
from bridgehead.runtime.manifest import Manifest
from bridgehead.runtime.timing import SystemClock

from . import tls
from .app import HostApplication
from .making import limits_of, make_application
from .settings import HostSettings
from .sharding import Sharded
from .siblings import FromSiblings, Siblings
from .tracing import tracer

RENEW_SECONDS = 60.0
"""How often it is looked whether there is a new certificate."""

log = logs.logger("host")


class Job(Struct, frozen=True):
    """What every process of one host serves."""

    settings: HostSettings
    manifests: Mapping[str, Manifest]
    environment: Mapping[str, str]
    listening: socket.socket
    state_key: bytes
    """What the questions that a client carries between two requests are sealed with, the same for all."""

    @property
    def address(self) -> str:
        """The address that is served, as a client would write it."""
        scheme = "https" if self.settings.tls_cert else "http"
        return f"{scheme}://{self.settings.shown_host}:{self.listening.getsockname()[1]}"


class Post(Struct, frozen=True):
    """Where one of several processes stands."""

    siblings: Siblings
    listening: socket.socket
    """What its siblings reach it by."""


def serve(job: Job, post: Post | None = None) -> None:
    """Serve until told to end."""
    settings = job.settings
    _open_as_many_as_allowed()
    spans = tracer(settings.otel_endpoint)
    app = make_application(
        settings,
        job.manifests,
        job.environment,
        SystemClock(),
        state_key=job.state_key,
        tracer=spans,
        siblings=None if post is None else post.siblings,
    )
    run_to_end(_serving(job, post, app), socket_loop, settings.shutdown_seconds)
    if spans is not None:
        spans.close()
    log.info("ended")


async def _serving(job: Job, post: Post | None, app: HostApplication) -> None:
    certificate = tls.certificate(job.settings)
    outer: Any = app
    inner: Server | None = None
    if post is not None:
        outer = Sharded(app, post.siblings, limits_of(job.settings))
        entrance = FromSiblings(post.siblings, outer, app, app.pages.own_metrics, app.refused_early)
        inner = _server(job, app, entrance)
        await inner.start(post.listening)
    server = _server(job, app, outer)
    with told_to_end(server.shutdown_seconds) as told:
        await server.start(job.listening, None if certificate is None else certificate.context)
        log.info("serving", url=f"{job.address}/mcp", bridges=list(job.manifests), **_about(job, post))
        while not await _within(RENEW_SECONDS, told):
            if certificate is not None:
                certificate.renew()
        log.info("ending")
        await server.stop()
        if inner is not None:
            await inner.stop()


async def _within(seconds: float, event: asyncio.Event) -> bool:
    """Wait for an event, but not longer than this; tells whether it came."""
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True


def _server(job: Job, app: HostApplication, served: Any) -> Server:
    return Server(
        served,
        most_connections=job.settings.connections,
        keep_alive_seconds=job.settings.idle_seconds,
        shutdown_seconds=job.settings.shutdown_seconds,
        end_streams=app.end_streams,
        refused=app.refused_early,
    )


def _open_as_many_as_allowed() -> None:
    """Let this process have as many files open as the system allows it: each connection is one."""
    with suppress(ImportError, OSError, ValueError):
        import resource  # not on Windows, which has no such limit

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _about(job: Job, post: Post | None) -> dict[str, object]:
    about: dict[str, object] = {"auth": "on" if job.settings.needs_auth else "off"}
    return about if post is None else about | {"worker": post.siblings.index}
