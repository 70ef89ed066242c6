"""Command: `bridgehead serve`. Reads the settings, binds the port, serves until told to end."""

from __future__ import annotations

import asyncio
import secrets
import signal
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bridgehead.mcp.http.server import Server, bound, loop_factory
from bridgehead.mcp.process import run_to_end
from bridgehead.runtime import logs
from bridgehead.runtime.clock import SystemClock
from bridgehead.runtime.command_line import Parser
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.hosting import Factory

from . import tls
from .making import make_application, open_tokens
from .registry import installed
from .settings import HostSettings
from .tracing import Tracer

if TYPE_CHECKING:
    import argparse
    import socket

Factories = Callable[[Collection[str]], Mapping[str, Factory]]

log = logs.logger("host")

_EXAMPLES = """\
examples:
  bridgehead serve                               all bridges, at http://localhost:3000/mcp
  bridgehead serve --bridges aoc,mercury         two of them, also at /aoc/mcp and /mercury/mcp
  bridgehead token add alice
  bridgehead serve --host 0.0.0.0                for a team: everyone needs a token

Everything else is a setting: see docs/operations.md.
"""


def main(arguments: list[str], environment: Mapping[str, str], factories: Factories = installed) -> int:
    """Serve until told to end, and return the exit status."""
    given = _parser().parse_args(arguments)
    settings = HostSettings.of(environment, **vars(given))
    settings.configure_logs()
    wanted = factories(settings.bridges)
    open_tokens(settings)  # so that what is missing is said before anything is bound
    listening = _bound(settings)
    _serve(settings, wanted, environment, listening)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="bridgehead serve", description="Serve bridges over HTTP, to a team.", epilog=_EXAMPLES
    )
    parser.add_argument("--host", help="where to listen (localhost)")
    parser.add_argument("--port", help="the port (3000; 0 takes a free one)")
    parser.add_argument("--bridges", metavar="NAMES", help="the bridges, separated by commas (all)")
    parser.add_argument("--workers", metavar="N", help="processes that serve (1)")
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate chain, to speak https")
    parser.add_argument("--tls-key", metavar="FILE", help="the certificate's key")
    parser.add_argument(
        "--read-only", action="store_const", const="1", help="offer only tools that change nothing"
    )
    return parser


def _bound(settings: HostSettings) -> socket.socket:
    try:
        return bound(settings.host, settings.port)
    except OSError as failure:
        raise BridgeError(
            f"{settings.host}:{settings.port} cannot be listened on: {failure.strerror or failure}.",
            next_step="Take another --port, or end what uses this one.",
        ) from failure


def _serve(
    settings: HostSettings,
    factories: Mapping[str, Factory],
    environment: Mapping[str, str],
    listening: socket.socket,
) -> None:
    """Serve in this process."""
    tracer = Tracer(settings.otel_endpoint) if settings.otel_endpoint else None
    app = make_application(
        settings,
        factories,
        environment,
        SystemClock(),
        state_key=secrets.token_bytes(32),
        tracer=tracer,
    )

    async def serving() -> None:
        server = Server(
            app,
            most_connections=settings.connections,
            keep_alive_seconds=settings.idle_seconds,
            shutdown_seconds=settings.shutdown_seconds,
            end_streams=app.end_streams,
        )
        with _told_to_end() as told:
            await server.start(listening, tls.context(settings))
            log.info("serving", **_address(settings, listening, factories))
            await told.wait()
            log.info("ending")
            await server.stop()

    run_to_end(serving(), loop_factory(), settings.shutdown_seconds)
    if tracer is not None:
        tracer.close()
    log.info("ended")


def _address(
    settings: HostSettings, listening: socket.socket, factories: Mapping[str, Factory]
) -> dict[str, object]:
    scheme = "https" if settings.tls_cert else "http"
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return {
        "url": f"{scheme}://{host}:{listening.getsockname()[1]}/mcp",
        "bridges": list(factories),
        "auth": "on" if settings.needs_auth else "off",
    }


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
