"""stdio: a bridge served to one client over this process's standard input and output."""

from __future__ import annotations

from typing import Any

from ..bridge import Bridge
from ..calls.multi_round import Keys
from ..connection import Connection
from ..dispatch import Dispatcher
from ..limits import Limits
from ..process import LoopFactory, check_may_serve, run_to_end
from .descriptors import claim
from .server import serve


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
    incoming, outgoing = claim()
    dispatcher = Dispatcher(bridge, limits=limits, state_key=state_key)
    serving = serve(dispatcher, Connection(dispatcher.limits), incoming, outgoing)
    run_to_end(serving, loop_factory, dispatcher.limits.shutdown_seconds)
    return 0
