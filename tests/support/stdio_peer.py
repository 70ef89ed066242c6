"""A client of a real process over stdio: owns the process, its ends of the descriptors, and a reading thread.

Every wait is bounded. Everything that the process writes is held to the official types.
"""

import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.support import waiting
from tests.support.messages import Checker, Json, cancelled, decode, encode, initialize, request, stateless
from tests.support.posix import fcntl, termios

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = waiting.PATIENCE
"""How long to wait for what must come, on a slow machine too."""
FULL_PIPE = 60_000
"""A pipe holds 64 KiB."""
GRACE = 2.0
"""How long a process may take to end by itself after its test; one that waits for something is killed."""


class Peer:
    """One process and the client's side of its standard input and output."""

    def __init__(self, process: subprocess.Popen[bytes], outgoing: int, incoming: int) -> None:
        self.process = process
        self.checker = Checker()
        self._outgoing = outgoing
        self._incoming = incoming
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._reader: threading.Thread | None = None
        self._writer: threading.Thread | None = None
        self._open = {outgoing, incoming}

    # --- out -----------------------------------------------------------------------------------------------

    def send_bytes(self, data: bytes) -> None:
        """Write bytes as they are."""
        view = memoryview(data)
        while view:
            view = view[os.write(self._outgoing, view) :]

    def send(self, *messages: Any) -> None:
        """Write messages, one a line, all at once."""
        for message in messages:
            self.checker.note_requests(message)
        self.send_bytes(b"".join(encode(message) + b"\n" for message in messages))

    def send_soon(self, *messages: Any) -> None:
        """Write messages from a thread, for a process that may not read them yet."""
        for message in messages:
            self.checker.note_requests(message)
        data = b"".join(encode(message) + b"\n" for message in messages)
        before = self._writer

        def write() -> None:
            if before is not None:
                before.join()
            with suppress(BrokenPipeError):  # the process has ended, as the test will see
                self.send_bytes(data)

        self._writer = threading.Thread(target=write, daemon=True)
        self._writer.start()

    def close_input(self) -> None:
        """End the process's standard input."""
        self._close(self._outgoing)

    def close_output(self) -> None:
        """Stop reading for good, so that the process's writes fail."""
        self._close(self._incoming)

    # --- in ------------------------------------------------------------------------------------------------

    def read_on(self) -> None:
        """Begin to read what the process writes."""
        if self._reader is None:
            self._reader = threading.Thread(target=self._read, daemon=True)
            self._reader.start()

    def _read(self) -> None:
        rest = bytearray()
        while chunk := self._chunk():
            rest += chunk
            if b"\n" in chunk:
                *lines, last = bytes(rest).split(b"\n")
                rest = bytearray(last)
                for line in lines:
                    self._lines.put(line)
        if rest:
            self._lines.put(bytes(rest))
        self._lines.put(None)

    def _chunk(self) -> bytes:
        try:
            return os.read(self._incoming, 1 << 20)
        except OSError:
            return b""

    def read_little(self, size: int) -> bytes:
        """Read a few bytes by hand, as a client does that then reads no more."""
        assert self._reader is None
        return os.read(self._incoming, size)

    def let_pipe_fill(self) -> None:
        """Wait, without reading, until the process cannot write any more."""
        deadline = time.monotonic() + PATIENCE
        unread = 0
        while unread < FULL_PIPE:
            assert time.monotonic() < deadline
            unread = int.from_bytes(fcntl.ioctl(self._incoming, termios.FIONREAD, bytes(4)), sys.byteorder)

    def line(self) -> bytes | None:
        """Wait for the next line; None is the end."""
        self.read_on()
        return self._lines.get(timeout=PATIENCE)

    def receive(self) -> Json:
        """Wait for the next message."""
        line = self.line()
        assert line is not None, f"the process said no more, and its exit code is {self.process.poll()}"
        message: Json = decode(line)
        self.checker.check(message)
        return message

    def rest(self) -> list[Json]:
        """Read everything up to the end of the process's output."""
        found = []
        while (line := self.line()) is not None:
            message = decode(line)
            self.checker.check(message)
            found.append(message)
        return found

    def answer_to(self, request_id: int | str) -> Json:
        """Wait for the answer to a request, passing over what comes in between."""
        while True:
            message = self.receive()
            if "method" not in message and message["id"] == request_id:
                return message

    # --- both ----------------------------------------------------------------------------------------------

    def ask(self, message: Json) -> Json:
        """Send a request and wait for its answer."""
        self.send(message)
        return self.answer_to(message["id"])

    def request(self, method: str, params: Json | None = None) -> Json:
        """Send a request of the handshake era and wait for its answer."""
        return self.ask(request(method, params))

    def stateless(self, method: str, params: Json | None = None) -> Json:
        """Send a request of the stateless era and wait for its answer."""
        return self.ask(stateless(method, params))

    def shake_hands(self, version: str = "2025-11-25", capabilities: Json | None = None) -> Json:
        """Begin a session of the handshake era."""
        return self.ask(initialize(version, capabilities))

    def cancel(self, request_id: int | str) -> None:
        """Cancel a request."""
        self.send(cancelled(request_id))

    # --- the end -------------------------------------------------------------------------------------------

    def exit_code(self, within: float = PATIENCE) -> int:
        """Wait for the process to end by itself."""
        return self.process.wait(within)

    def resident(self) -> int:
        """Return how many bytes of memory the process has now."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        (line,) = [line for line in status.splitlines() if line.startswith("VmRSS:")]
        return int(line.split()[1]) * 1024

    def _close(self, descriptor: int) -> None:
        if descriptor in self._open:
            self._open.discard(descriptor)
            os.close(descriptor)

    def dispose(self) -> None:
        """End the process, by force if it does not go, and let go of everything."""
        if self._writer is not None:
            self._writer.join(GRACE)
        if self._writer is None or not self._writer.is_alive():
            self.close_input()
        try:
            self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(PATIENCE)
        if self._writer is not None:
            self._writer.join(PATIENCE)
        self.close_input()
        if self._reader is not None:
            self._reader.join(PATIENCE)
        self.close_output()


def start(
    stdin: int, stdout: int, errors: Path, limits: Json | None = None, *options: str
) -> subprocess.Popen[bytes]:
    """Start the busy bridge with these descriptors as its standard ones; the parent's copies are closed."""
    with errors.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.stdio_bridge", encode(limits or {}).decode(), *options],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=ROOT,
        )
    for descriptor in {stdin, stdout}:
        os.close(descriptor)
    return process


@contextmanager
def piped(errors: Path, limits: Json | None = None, *options: str) -> Iterator[Peer]:
    """Run the busy bridge on two pipes."""
    their_input, outgoing = os.pipe()
    incoming, their_output = os.pipe()
    peer = Peer(start(their_input, their_output, errors, limits, *options), outgoing, incoming)
    try:
        yield peer
    finally:
        peer.dispose()
