"""Gateway: serves the bridge to one agent through relays. Uses threads; ends every process that it started.

Each connection gets a bridge process of its own, as an MCP client over stdio expects.
"""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from . import relay

_GREETING_SECONDS = 10.0
_END_SECONDS = 10.0
MAX_CONNECTIONS = 32
"""Per run: bounds the bridge processes of an agent that keeps reconnecting."""


class Gateway:
    """Listens on loopback while an agent runs."""

    def __init__(self, environment: Mapping[str, str], folder: Path) -> None:
        self._environment = environment
        self._folder = folder
        self._secret = secrets.token_hex(16)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._bridges: list[subprocess.Popen[bytes]] = []
        self._connections: list[socket.socket] = []
        # Protects both lists against an agent that still connects while the run ends.
        self._lock = threading.Lock()
        self._is_closed = False

    @property
    def server_command(self) -> list[str]:
        """The command that an agent starts as its MCP server."""
        port = self._listener.getsockname()[1]
        # Isolated mode: nothing in the agent's folder or environment changes what the relay imports.
        return [sys.executable, "-I", relay.__file__, str(port), self._secret]

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._is_closed = True
            # Shut down first: closing a socket does not wake a thread that waits in `accept`.
            with suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            for connection in self._connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
                connection.close()
        for bridge in self._bridges:
            if bridge.stdin is not None:
                with suppress(OSError):
                    bridge.stdin.close()
            try:
                bridge.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                bridge.kill()
                bridge.wait()
            if bridge.stdout is not None:
                bridge.stdout.close()

    def _accept(self) -> None:
        for _ in range(MAX_CONNECTIONS):
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(_GREETING_SECONDS)
        greeting = b""
        with suppress(OSError):
            while b"\n" not in greeting and len(greeting) <= len(self._secret):
                byte = connection.recv(1)
                if not byte:
                    break
                greeting += byte
        if not secrets.compare_digest(greeting, self._secret.encode() + b"\n"):
            connection.close()
            return
        connection.settimeout(None)
        with self._lock:
            if self._is_closed:
                connection.close()
                return
            bridge = subprocess.Popen(
                [sys.executable, "-m", "bridgehead", "aoc"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=self._folder,
                env={**self._environment},
                bufsize=0,
            )
            self._bridges.append(bridge)
            self._connections.append(connection)
        threading.Thread(target=_copy_answers, args=(bridge, connection), daemon=True).start()
        with suppress(OSError, ValueError):  # either side has ended
            while data := connection.recv(1 << 16):
                if bridge.stdin is not None:
                    view = memoryview(data)
                    while view:
                        view = view[bridge.stdin.write(view) or 0 :]
        if bridge.stdin is not None:
            with suppress(OSError):
                bridge.stdin.close()


def _copy_answers(bridge: subprocess.Popen[bytes], connection: socket.socket) -> None:
    if bridge.stdout is None:
        return
    with suppress(OSError, ValueError):  # either side has ended
        while data := os.read(bridge.stdout.fileno(), 1 << 16):
            connection.sendall(data)
    with suppress(OSError):
        connection.shutdown(socket.SHUT_WR)
