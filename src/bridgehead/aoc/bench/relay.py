"""Relay: the program that an agent starts as its MCP server. It copies between its pipes and the bench.

The bridge itself stays outside the agent's isolation, because it has the answers. Only the standard library,
because this file is run alone.
"""

from __future__ import annotations

import os
import socket
import sys
import threading


def main(port: int, secret: str) -> int:
    """Connect to the bench, and copy until either side ends."""
    with socket.create_connection(("127.0.0.1", port)) as bench:
        bench.sendall(secret.encode() + b"\n")
        threading.Thread(target=_copy_input, args=(bench,), daemon=True).start()
        while data := bench.recv(1 << 16):
            while data:
                data = data[os.write(1, data) :]
    return 0


def _copy_input(bench: socket.socket) -> None:
    while data := os.read(0, 1 << 16):
        bench.sendall(data)
    bench.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2]))
