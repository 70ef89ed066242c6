"""stdio: a bridge served to one client over this process's standard input and output.

Owns the two descriptors. From the start on, standard output belongs to the protocol: whatever else is printed
goes to standard error. The first message is answered before there is an event loop, so that a client sees the
server as soon as it can speak; everything after it is the server's in `stdio_server.py`.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from .. import jsonrpc
from ..bridge import Bridge
from ..connection import Connection, Nowhere
from ..dispatch import Dispatcher
from ..end_signals import end_signals
from ..limits import Limits
from .descriptors import is_watchable

if TYPE_CHECKING:
    from ..process import LoopFactory

FIRST_READ = 64 * 1024
OPENING = ("initialize", "server/discover")
"""What a client begins with; answering it takes no event loop."""


def run(
    bridge: Bridge[Any],
    *,
    limits: Limits | None = None,
    state_key: bytes | None = None,
    loop_factory: LoopFactory | None = None,
) -> int:
    """Serve a bridge until its client goes, and return the exit code.

    The standard loop answers a single call on a pipe sooner than uvloop does; a bridge that lives on sockets
    may pass another one.
    """
    ending = _Ending()
    incoming, outgoing = _claimed()
    dispatcher = Dispatcher(bridge, limits=limits, state_key=state_key)
    connection = Connection(dispatcher.limits)
    received = _first_chunk(incoming, ending)
    if received is not None:
        received = _opened(received, outgoing, lambda m: dispatcher.take(m, connection, Nowhere()))

    from ..process import run_to_end
    from .server import serve

    serving = serve(dispatcher, connection, (incoming, outgoing), received, lambda: ending.is_due)
    run_to_end(serving, loop_factory, dispatcher.limits.shutdown_seconds)
    return 0


class _Ending:
    """Notes a signal that ends the process, until there is an event loop that can hear it."""

    def __init__(self) -> None:
        self.is_due = False
        for number in end_signals():
            signal.signal(number, self._note)

    def _note(self, *_: object) -> None:
        self.is_due = True


def _first_chunk(incoming: int, ending: _Ending) -> bytes | None:
    """Wait for the client to speak, or for a signal; None where nothing was read."""
    if not is_watchable(incoming):
        return None
    woken, waking = os.pipe()
    os.set_blocking(waking, False)
    signal.set_wakeup_fd(waking)  # so that a signal just before the wait ends it too
    try:
        if not ending.is_due:
            select.select([incoming, woken], [], [])
        return None if ending.is_due else os.read(incoming, FIRST_READ)
    finally:
        signal.set_wakeup_fd(-1)
        os.close(woken)
        os.close(waking)


def _opened(received: bytes, outgoing: int, take: Callable[[jsonrpc.Message], Any]) -> bytes | None:
    """Answer the first message if it opens the conversation; return what is left to be served."""
    line, newline, rest = received.partition(b"\n")
    if not newline:
        return received
    message = jsonrpc.decode(line)
    if not isinstance(message, jsonrpc.Message) or message.method not in OPENING or message.id is UNSET:
        return received
    answer = take(message)
    if not isinstance(answer, bytes):
        return received
    _write_all(outgoing, answer + b"\n")
    return rest or None


def _write_all(descriptor: int, data: bytes) -> None:
    """Write an answer to a client that has just asked, and waits for it."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError:
        return  # the client is gone already, as the server will find


def _open_missing() -> None:
    """Put nothing where a standard descriptor is closed, or the next one opened would take its place."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _claimed() -> tuple[int, int]:
    """Take standard input and output for the protocol; prints and children get other ones."""
    _open_missing()
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    if sys.platform == "win32":
        import msvcrt

        for descriptor in (incoming, outgoing):
            msvcrt.setmode(descriptor, os.O_BINARY)
    return incoming, outgoing
