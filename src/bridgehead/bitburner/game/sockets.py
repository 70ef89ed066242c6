"""Sockets: the options of every WebSocket of this bridge, and the headers between bridges."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..settings import BitburnerSettings

RELAY_PATH = "/bridgehead/relay"
MARK = "Bridgehead"
"""The response header that identifies a bridge."""
TIMEOUT = "Bridgehead-Timeout-Ms"
PING_INTERVAL_SECONDS = 15.0
"""How often an idle game is pinged; short enough that no router on the way drops the connection."""
PING_TIMEOUT_SECONDS = 10.0
"""How long a game may take to answer a ping. Its page can be busy for seconds, for example while saving."""
_CLOSE_SECONDS = 1.0
_HARD_LIMIT_FACTOR = 4
"""The library closes the connection at a frame above its limit, so its limit is a multiple of ours: a frame
between the two fails only its own call."""
_OPEN_SECONDS = 5.0


def make_options(settings: BitburnerSettings) -> dict[str, Any]:
    """Return the options that server and client share.

    No compression: both ends are on one machine, and deflating a large reply takes many times longer than
    sending it.
    """
    # Silent: the bridge logs events itself, and the library would log the content of frames.
    logger = logging.getLogger("bridgehead.bitburner.game.sockets")
    logger.setLevel(logging.CRITICAL + 1)
    return {
        "compression": None,
        "max_size": _HARD_LIMIT_FACTOR * settings.max_frame_bytes,
        "ping_interval": PING_INTERVAL_SECONDS,
        "ping_timeout": PING_TIMEOUT_SECONDS,
        "open_timeout": _OPEN_SECONDS,
        "close_timeout": _CLOSE_SECONDS,
        "logger": logger,
    }
