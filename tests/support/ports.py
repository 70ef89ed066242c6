"""Ports of this machine, for processes that have to be told one before they start."""

import secrets
import socket

FIRST, COUNT = 15_000, 17_000
"""Below the ports that systems give to whoever names none: those may be given away before they are used."""


def free_port() -> int:
    """Find a port that nobody listens on."""
    while True:
        port = FIRST + secrets.randbelow(COUNT)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
