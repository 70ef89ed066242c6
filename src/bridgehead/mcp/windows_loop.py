"""Windows loop: an event loop whose servers keep listening after a client resets its connection.

asyncio closes the listening socket when a client has reset its connection before that was accepted
(python/cpython issue 93821): any program that reaches the port could stop a server from accepting for good.
"""

from __future__ import annotations

import asyncio
import errno
import sys
from typing import Any

PAUSE_SECONDS = 0.1
"""Pause after an accept that failed for another reason, so that retries do not fill the loop."""

if sys.platform == "win32":
    import socket

    Accepted = tuple[socket.socket, Any]

    _GONE = frozenset({59, 64, 1236, 10053, 10054, 10057})
    """Error codes of Windows and Wine for a client that is gone before it was accepted."""

    class _Proactor(asyncio.IocpProactor):
        _made: socket.socket | None = None
        """Pre-made socket for the next client (AcceptEx needs one)."""

        def accept(self, listener: socket.socket) -> asyncio.Future[Accepted]:
            if listener.fileno() == -1:  # would make a socket for the next client and leak it
                raise OSError(errno.EBADF, "The listening socket is closed")
            loop, accepting = asyncio.get_running_loop(), self._accept(listener)
            if sys.version_info >= (3, 12):
                return asyncio.Task(accepting, loop=loop, eager_start=True)
            return loop.create_task(accepting)

        async def _accept(self, listener: socket.socket) -> Accepted:
            """Accept the next client that has not reset its connection."""
            while True:
                self._made = None
                try:
                    accepting: asyncio.Future[Accepted] = super().accept(listener)
                except OSError as problem:
                    await self._pass_over(problem, listener, self._made)
                    continue
                made = self._made
                try:
                    return await accepting
                except OSError as problem:
                    await self._pass_over(problem, listener, made)
                except asyncio.CancelledError:
                    if made is not None:  # a client may have connected in this very turn of the loop
                        made.close()
                    raise

        async def _pass_over(
            self, problem: OSError, listener: socket.socket, made: socket.socket | None
        ) -> None:
            if made is not None:
                made.close()
            if listener.fileno() == -1:
                raise problem
            await asyncio.sleep(0 if problem.winerror in _GONE else PAUSE_SECONDS)

        def _get_accept_socket(self, family: int) -> socket.socket:
            self._made = super()._get_accept_socket(family)
            return self._made

    class WindowsLoop(asyncio.ProactorEventLoop):
        """The loop of every server of this package on Windows."""

        def __init__(self) -> None:
            super().__init__(_Proactor())

        def call_exception_handler(self, context: dict[str, Any]) -> None:
            """Drop reports about clients that left early: asyncio never awaits their `accept_coro`."""
            task = context.get("future")
            name = getattr(task.get_coro(), "__name__", "") if isinstance(task, asyncio.Task) else ""
            if name != "accept_coro" or not isinstance(context.get("exception"), OSError):
                super().call_exception_handler(context)
