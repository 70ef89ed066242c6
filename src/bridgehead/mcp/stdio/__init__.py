"""stdio: a bridge served to one client over this process's standard input and output.

The first message is answered before there is an event loop: importing asyncio alone takes longer than that
answer. `server.py` does everything after it.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable
from typing import Any

from msgspec import UNSET

from .. import jsonrpc
from ..bridge import Bridge
from ..calls.multi_round import Keys
from ..connection import Connection, NullOutlet
from ..dispatch import Dispatcher
from ..limits import Limits
from ..process import LoopFactory, check_may_serve, end_signals, run_to_end
from .descriptors import claim, is_watchable, write_all

FIRST_READ = 64 * 1024
OPENING = ("initialize", "server/discover")
"""First messages of a client; answering them needs no event loop."""


def run(
    bridge: Bridge[Any],
    *,
    limits: Limits | None = None,
    state_key: Keys | None = None,
    loop_factory: LoopFactory | None = None,
) -> int:
    """Serve a bridge until its client leaves, and return the exit code.

    The standard loop answers a single call on a pipe sooner than uvloop does; a bridge that mostly uses
    sockets may pass another one.
    """
    check_may_serve()
    ending = _EndSignals()
    incoming, outgoing = claim()
    dispatcher = Dispatcher(bridge, limits=limits, state_key=state_key)
    connection = Connection(dispatcher.limits)
    received = _read_first(incoming, ending)
    if received is not None:
        received = _answer_first(
            received, outgoing, lambda m: dispatcher.handle_message(m, connection, NullOutlet())
        )

    from .server import serve  # imports asyncio

    serving = serve(dispatcher, connection, (incoming, outgoing), received, lambda: ending.is_due)
    run_to_end(serving, loop_factory, dispatcher.limits.shutdown_seconds)
    return 0


class _EndSignals:
    """Records a signal that ends the process while there is no event loop to handle it."""

    def __init__(self) -> None:
        self.is_due = False
        for number in end_signals():
            signal.signal(number, self._set_due)

    def _set_due(self, *_: object) -> None:
        self.is_due = True


def _read_first(incoming: int, ending: _EndSignals) -> bytes | None:
    """Wait for the first bytes or a signal; None if nothing was read."""
    if not is_watchable(incoming):
        return None
    woken, waking = os.pipe()
    os.set_blocking(waking, False)
    signal.set_wakeup_fd(waking)  # a signal just before `select` must end it too
    try:
        if not ending.is_due:
            select.select([incoming, woken], [], [])
        return None if ending.is_due else os.read(incoming, FIRST_READ)
    finally:
        signal.set_wakeup_fd(-1)
        os.close(woken)
        os.close(waking)


def _answer_first(received: bytes, outgoing: int, handle: Callable[[jsonrpc.Message], Any]) -> bytes | None:
    """Answer the first message if it is an opening one; return the bytes that are left to serve."""
    line, newline, rest = received.partition(b"\n")
    if not newline:
        return received
    message = jsonrpc.decode(line)
    if not isinstance(message, jsonrpc.Message) or message.method not in OPENING or message.id is UNSET:
        return received
    answer = handle(message)
    if not isinstance(answer, bytes):
        return received
    write_all(outgoing, answer + b"\n")
    return rest or None
