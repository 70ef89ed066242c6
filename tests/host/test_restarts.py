"""Restarts: a host takes over from another one, and no call fails meanwhile."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.host.conftest import Dial
from tests.support.host_command import PATIENCE, Command, environment, serving
from tests.support.http_server import mirrored
from tests.support.messages import call, stateless
from tests.support.stdio_peer import ROOT

CALLS, RESTARTS, CLIENTS = 6_000, 3, 8
ACTIVATE = """\
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""
"""What systemd does for a service with a socket."""


@contextmanager
def activated(folder: Path, listening: socket.socket) -> Iterator[Command]:
    """Run a host on a socket that somebody else listens on."""
    number = listening.fileno()
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            ACTIVATE,
            str(number),
            "-m",
            "tests.support.host_process",
            "--bridges",
            "alpha",
        ],
        cwd=ROOT,
        env=environment(folder),
        stderr=subprocess.PIPE,
        text=True,
        pass_fds=(number,),
    )
    command = Command(process)
    try:
        command.wait_for("serving")
        yield command
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(PATIENCE)
        assert process.stderr is not None
        process.stderr.close()


def encode_call() -> bytes:
    message = stateless("tools/call", call("alpha_echo", {"text": "hi"}))
    body = json.dumps(message).encode()
    headers = {
        "Host": "localhost",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "Content-Length": str(len(body)),
        "Connection": "close",
        **{str(name): str(value) for name, value in mirrored(message).items()},
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body


async def test_no_call_fails_over_restarts_on_a_passed_socket(tmp_path: Path) -> None:
    request = encode_call()
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listening:
        port = listening.getsockname()[1]
        left, failures = iter(range(CALLS)), []
        done = 0

        async def keep_calling() -> None:
            nonlocal done
            for _ in left:
                try:
                    reader, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.write(request)
                    answer = await asyncio.wait_for(reader.read(), PATIENCE)
                    writer.close()
                    if not answer.startswith(b"HTTP/1.1 200"):
                        failures.append(answer[:200])
                except OSError as failure:
                    failures.append(repr(failure).encode())
                done += 1

        async def restart() -> None:
            for number in range(1, RESTARTS + 2):
                with activated(tmp_path, listening) as host:
                    while done < number * CALLS // (RESTARTS + 1):
                        await asyncio.sleep(0.01)
                    assert await asyncio.to_thread(host.end) == 0

        await asyncio.gather(restart(), *(keep_calling() for _ in range(CLIENTS)))

    assert failures == []
    assert done == CALLS


async def test_while_it_drains_it_answers_and_is_not_ready(tmp_path: Path, dial: Dial) -> None:
    with serving(tmp_path, BRIDGEHEAD_DRAIN_SECONDS="600") as host:
        http = dial(host.port)
        assert (await http.request("GET", "/readyz")).status == 200
        host.process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(host.wait_for, "draining")

        ready = await dial(host.port).request("GET", "/readyz")
        alive = await dial(host.port).request("GET", "/healthz")
        assert (ready.status, alive.status) == (503, 200)
        host.process.kill()
