"""The command `python -m bench.host.soak`: half an hour of bad manners; memory and descriptors stay flat.

Clients open sessions and never close them, open streams and vanish, hang up in the middle of calls, ask for
large answers as event streams and in batches, leave large bodies unfinished, and send what has to be refused.
Another token must get a session whenever it asks for one. The exit status is 1 where the host still grows
once everything that can be open is open.
"""

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from bench import machine, table
from bench.host.calls import HANDSHAKE, INITIALIZE, INITIALIZED, STATELESS, Call, post
from bench.http import free_port, wait
from bench.load import complete
from bench.peers import HERE
from bench.process import Process
from bridgehead.host.auth.tokens import TokenFile, create_token

ROOT = HERE.parent
RESULTS = HERE / "host" / "SOAK.md"
CLIENTS = 16
SESSION_SECONDS = 5
"""How long an unused session lives here, so that thousands come and go in a run."""
WITHIN = 30.0
MOST_GROWTH = 0.05
MOST_MORE_FILES = 8
LATER = Call("/mcp", "later", b'{"text":"call %d"}')
SLOW = Call("/mcp", "block_thread", b'{"seconds":0.05}', b"done")
_LISTEN = (
    b'{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"_meta":{'
    b'"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},'
    b'"notifications":{"toolsListChanged":true}}}'
)
_BOTH = b"application/json, text/event-stream"
_LARGE_CALL = (
    b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"later","arguments":{"text":"'
    + b"x" * 100_000
    + b'"}}}'
)
_LARGE_BODY = 8 * 1024 * 1024
_REFUSED = (
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET / HTTP/1.1\r\nX: %b\r\n\r\n" % (b"y" * 70_000),
    b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer wrong\r\n\r\n",
)


_OVER_ITS_SHARE = b"HTTP/1.1 429"
"""The answer to a caller that holds too much; unfinished bodies and batches reach that at times."""


def _find_session(answer: bytes) -> bytes:
    """Return the header of the session that was opened; nothing if none was."""
    for line in answer.split(b"\r\n"):
        if line.lower().startswith(b"mcp-session-id:"):
            return line + b"\r\n"
    return b""


class Client:
    """One client with bad manners."""

    def __init__(self, port: int, token: str, newcomer: str, seed: int) -> None:
        self._port = port
        self._newcomer = b"Authorization: Bearer %b\r\n" % newcomer.encode()
        self._auth = b"Authorization: Bearer %b\r\n" % token.encode()
        self._dice = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
        self._number = 1_000_000
        self.done: Counter[str] = Counter()

    async def run(self, until: float) -> None:
        """Misbehave until a time."""
        ways: list[tuple[str, Callable[[], Awaitable[bool]]]] = [
            ("sessions left open", self._leave_session),
            ("streams left", self._leave_stream),
            ("listens left", self._leave_listen),
            ("calls aborted", self._abort_call),
            ("requests refused", self._be_refused),
            ("calls answered", self._call),
            ("large events read", self._read_large_events),
            ("large batches", self._send_batch),
            ("bodies left", self._leave_body),
            ("newcomers with a session", self._come_anew),
        ]
        while time.monotonic() < until:
            name, way = self._dice.choice(ways)
            try:
                async with asyncio.timeout(WITHIN):
                    is_taken = await way()
            except OSError:
                self.done["connections lost"] += 1
            else:
                self.done[name if is_taken else "refused, as there were too many"] += 1

    async def _exchange(self, request: bytes, *, wait_for: bytes = b"") -> bytes:
        """Send a request, and read its answer, or only as far as something in it."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            writer.write(request)
            data = b""
            while not (wait_for and wait_for in data):
                # A refusal does not have what is waited for.
                if complete(data) and (not wait_for or not data.startswith(b"HTTP/1.1 200")):
                    break
                piece = await reader.read(65536)
                if not piece:
                    break
                data += piece
            return data
        finally:
            writer.transport.abort()

    async def _open_session(self, hello: bytes = INITIALIZE) -> bytes:
        """Shake hands; returns the session's headers, or nothing where there is no room for another."""
        return _find_session(await self._exchange(post("/mcp", self._port, self._auth, hello)))

    async def _leave_session(self) -> bool:
        if session := await self._open_session():
            await self._exchange(post("/mcp", self._port, self._auth + session, INITIALIZED))
        return bool(session)

    async def _leave_stream(self) -> bool:
        if session := await self._open_session():
            head = b"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept: text/event-stream\r\n%b%b\r\n"
            await self._exchange(head % (self._port, self._auth, session), wait_for=b"\r\n\r\n")
        return bool(session)

    async def _read_large_events(self) -> bool:
        """Leave a session with large answers that could be resumed."""
        if session := await self._open_session():
            headers = self._auth + session
            request = post("/mcp", self._port, headers, _LARGE_CALL % 1)
            request = request.replace(_BOTH, b"text/event-stream, application/json")
            for _ in range(3):
                if b"x" * 1000 not in await self._exchange(request, wait_for=b"0\r\n\r\n"):
                    return False  # over its share
        return bool(session)

    async def _send_batch(self) -> bool:
        hello = INITIALIZE.replace(HANDSHAKE.encode(), b"2025-03-26")
        if session := await self._open_session(hello):
            batch = b"[%b]" % b",".join(_LARGE_CALL % number for number in range(1, 120))
            answer = await self._exchange(post("/mcp", self._port, self._auth + session, batch))
            return answer.startswith(b"HTTP/1.1 200")
        return False

    async def _leave_body(self) -> bool:
        request = post("/mcp", self._port, self._auth, b" " * _LARGE_BODY)
        with suppress(TimeoutError):
            async with asyncio.timeout(0.2):
                await self._exchange(request[:-1])
        return True

    async def _come_anew(self) -> bool:
        """Open a session with a token that has few, whatever the others have."""
        answer = await self._exchange(post("/mcp", self._port, self._newcomer, INITIALIZE))
        if not _find_session(answer):
            self._complain(answer)
        return True

    async def _leave_listen(self) -> bool:
        headers = b"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\n"
        request = post("/mcp", self._port, self._auth + headers, _LISTEN)
        answer = await self._exchange(request, wait_for=b"\r\n\r\n")
        return answer.startswith(b"HTTP/1.1 200")

    async def _abort_call(self) -> bool:
        request = SLOW.filled(SLOW.template(self._port, STATELESS, self._auth), self._number)
        end = self._dice.choice((len(request), len(request) // 2, 40))
        with suppress(TimeoutError):
            async with asyncio.timeout(self._dice.random() / 20):
                await self._exchange(request[:end])
        return True

    async def _be_refused(self) -> bool:
        answer = await self._exchange(self._dice.choice(_REFUSED))
        if not answer.startswith(b"HTTP/1.1 4"):
            self._complain(answer)
        return True

    async def _call(self) -> bool:
        self._number += 1
        request = LATER.filled(LATER.template(self._port, STATELESS, self._auth), self._number)
        answer = await self._exchange(request)
        if answer.startswith(_OVER_ITS_SHARE):
            return False
        if not LATER.is_right(answer, self._number):
            self._complain(answer)
        return True

    def _complain(self, answer: bytes) -> None:
        """Count a wrong answer, and show it."""
        self.done["wrong answers"] += 1
        print(f"wrong: {answer[:500]!r}", file=sys.stderr, flush=True)


@dataclass
class Soak:
    """What was seen: memory in MB and open descriptors, sample after sample, and what the clients did."""

    seconds: float
    memory: list[float] = field(default_factory=list)
    files: list[int] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)

    def quarter(self, samples: list[float] | list[int], number: int) -> float:
        """Return the median of a quarter of the run, from 0 to 3."""
        size = max(1, len(samples) // 4)
        return median(samples[number * size : (number + 1) * size])

    @property
    def growth(self) -> float:
        """How much more memory is used in the last quarter than in the second, when all is loaded."""
        return self.quarter(self.memory, 3) / self.quarter(self.memory, 1) - 1

    @property
    def is_flat(self) -> bool:
        """Whether neither memory nor descriptors grow, and every call that was waited for was answered."""
        more = self.quarter(self.files, 3) - self.quarter(self.files, 1)
        return self.growth < MOST_GROWTH and more <= MOST_MORE_FILES and not self.done["wrong answers"]

    def table(self) -> str:
        """Draw what was measured."""
        rows = [["quarter of the run", "memory", "descriptors"]]
        for number, name in enumerate(("first", "second", "third", "last")):
            memory, files = self.quarter(self.memory, number), self.quarter(self.files, number)
            rows.append([name, f"{memory:.1f} MB", f"{files:.0f}"])
        did = ", ".join(f"{count:,} {name}" for name, count in sorted(self.done.items()))
        verdict = "flat" if self.is_flat else "**not flat**"
        return (
            f"{table.draw(rows)}\n\n{did}. Memory {self.growth:+.1%} from the second quarter on: {verdict}."
        )


async def soak(process: Process, port: int, tokens: tuple[str, str], seconds: float) -> Soak:
    """Let the clients do their worst, and watch the host."""
    found = Soak(seconds)
    end = time.monotonic() + seconds
    clients = [Client(port, *tokens, seed) for seed in range(CLIENTS)]
    running = asyncio.gather(*(client.run(end) for client in clients))
    while not running.done():
        found.memory.append(process.memory())
        found.files.append(sum(1 for _ in Path(f"/proc/{process.pid}/fd").iterdir()))
        await asyncio.wait({running}, timeout=min(1.0, seconds / 40))
    await running
    for client in clients:
        found.done += client.done
    return found


def main() -> int:
    """Soak, print, and record where asked to."""
    parser = argparse.ArgumentParser(prog="python -m bench.host.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1800.0)
    parser.add_argument("--record", action="store_true", help=f"write {RESULTS.relative_to(ROOT)}")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tokens = _prepare(Path(folder))
        port = free_port()
        with Process((sys.executable, "-m", "bench.host.ours", str(port))) as process:
            wait(process, port)
            found = asyncio.run(soak(process, port, tokens, options.seconds))
    notes = (
        f"command: `make soak SECONDS={options.seconds:g}`, {datetime.now(UTC):%Y-%m-%d}",
        machine.facts([])[0],
        f"{CLIENTS} clients at once; a session that nobody uses is forgotten after {SESSION_SECONDS} s",
    )
    text = "\n\n".join(["# Soak", found.table(), "\n".join(f"- {note}" for note in notes)]) + "\n"
    print(text)
    if options.record:
        RESULTS.write_text(text)
    return 0 if found.is_flat else 1


def _prepare(folder: Path) -> tuple[str, str]:
    tokens = TokenFile(folder / "tokens.json")
    made = [create_token(name, 0.0) for name in ("soak", "newcomer")]
    for entry, _ in made:
        tokens.add(entry)
    os.environ |= {
        "BRIDGEHEAD_TOKENS_FILE": str(tokens.path),
        "BRIDGEHEAD_STATE_DIR": str(folder / "state"),
        "BRIDGEHEAD_SESSION_SECONDS": str(SESSION_SECONDS),
        "BRIDGEHEAD_SESSIONS_PER_CLIENT": "1000",
        "LOG_LEVEL": "error",
        "PYTHONPATH": str(ROOT),
    }
    return made[0][1], made[1][1]


if __name__ == "__main__":
    sys.exit(main())
