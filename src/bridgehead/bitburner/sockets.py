"""Sockets: the options with which every WebSocket of this bridge is opened, in one place."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .settings import BitburnerSettings

RELAY_PATH = "/bridgehead/relay"
MARK = "Bridgehead"
"""The response header by which a bridge is known."""
TIMEOUT = "Bridgehead-Timeout-Ms"
_CLOSE_SECONDS = 1.0
_OPEN_SECONDS = 5.0


def options(settings: BitburnerSettings) -> dict[str, Any]:
    """Return what server and client have in common.

    Nothing is compressed: both ends are on one machine, and deflating a large reply takes many times longer
    than sending it.
    """
    return {
        "compression": None,
        "max_size": settings.max_frame_bytes,
        "ping_interval": settings.ping_interval_ms / 1000,
        "ping_timeout": settings.ping_timeout_ms / 1000,
        "open_timeout": _OPEN_SECONDS,
        "close_timeout": _CLOSE_SECONDS,
        "logger": quiet(),
    }


def quiet() -> logging.Logger:
    """Return a logger that says nothing: we log what matters, and never a frame's content."""
    logger = logging.getLogger("bridgehead.bitburner.sockets")
    logger.setLevel(logging.CRITICAL + 1)
    return logger
