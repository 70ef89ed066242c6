"""Server: runs an application with uvicorn until the process is told to end, and ends in good order.

At SIGTERM or SIGINT nothing new is accepted, streams that would never end are ended, calls are answered
within the limit, and the process exits with 0.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from ..process import LoopFactory, run_to_end
from .application import Application
from .protocol import Http1Protocol

KEEP_ALIVE_SECONDS = 75


def run(app: Application, host: str = "127.0.0.1", port: int = 3000) -> None:
    """Serve the application until the process is told to end."""
    within = app.dispatcher.limits.shutdown_seconds
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=Http1Protocol,
        ws="none",
        log_level="warning",
        access_log=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=max(1, round(within)),
    )
    run_to_end(_Server(config, app).serve(), _loop_factory(), within)


def _loop_factory() -> LoopFactory | None:
    try:
        import uvloop  # not to be had everywhere
    except ImportError:
        return None
    return uvloop.new_event_loop


class _Server(uvicorn.Server):
    """A uvicorn server whose end is no failure."""

    def __init__(self, config: uvicorn.Config, app: Application) -> None:
        super().__init__(config)
        self._app = app

    async def shutdown(self, sockets: Any = None) -> None:
        self._app.end_streams()
        await asyncio.sleep(0)  # what was just ended says so before its connection is closed
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take the signals that end a process; unlike the original, do not raise them again afterwards."""
        before = {
            number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
