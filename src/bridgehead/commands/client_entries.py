"""Client entries: whether the servers in a client's configuration start and answer, as that client tries it.

A server that a client starts is started with the command and the variables of its entry, and asked to
initialize. One that runs elsewhere is looked at by `deployed_server`. Nothing is called or changed.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from bridgehead.install import entries
from bridgehead.install.detection import DetectedClient
from bridgehead.runtime.findings import Finding

from . import deployed_server

START_SECONDS = 20.0
END_SECONDS = 5.0
_REFERENCE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}")
_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": deployed_server.REVISION,
        "capabilities": {},
        "clientInfo": {"name": "bridgehead doctor", "version": "1"},
    },
}


class _NotAnswering(Exception):
    """Says why a server gave no answer."""


async def examine(client: DetectedClient, environment: Mapping[str, str]) -> list[Finding]:
    """Try each server of ours in a client's file, all at the same time."""
    return await asyncio.gather(
        *(_examine_entry(client, name, entry, environment) for name, entry in client.entries.items())
    )


async def _examine_entry(
    client: DetectedClient, name: str, entry: Mapping[str, Any], environment: Mapping[str, str]
) -> Finding:
    what = f"{client.client.title}: {name}"
    if not isinstance(entry.get("command"), str):
        url = next((entry[field] for field in entries.URLS if isinstance(entry.get(field), str)), "")
        return await deployed_server.summarize(what, url, _token(entry, environment))
    began = time.monotonic()
    try:
        version = await _start(entry, environment)
    except _NotAnswering as failure:
        return Finding(what, "wrong", str(failure), f"bridgehead install {client.client.id} {name} --force")
    return Finding(
        what, "right", f"{version} answers {(time.monotonic() - began) * 1000:.0f} ms after its start"
    )


def _token(entry: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    """Return the token that an entry holds or refers to."""
    named = entry.get("bearer_token_env_var")
    if isinstance(named, str):
        return environment.get(named, "")
    headers = {**entries.mapping(entry, "headers"), **entries.mapping(entry, "http_headers")}
    value = str(headers.get("Authorization", ""))
    return _resolve(value, environment).removeprefix("Bearer ")


def _resolve(text: str, environment: Mapping[str, str]) -> str:
    """Put in what a text refers to, as a client would."""
    return _REFERENCE.sub(lambda found: environment.get(found[1], ""), text)


async def _start(entry: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    """Start a server and return the name and version that it gives itself."""
    words = [entry["command"], *map(str, entry.get("args") or ())]
    own = {name: _resolve(str(value), environment) for name, value in entries.mapping(entry, "env").items()}
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={**os.environ, **own},
        )
    except OSError as failure:
        reason = failure.strerror or str(failure)
        raise _NotAnswering(f"cannot start {words[0]}: {reason}") from failure
    try:
        async with asyncio.timeout(START_SECONDS):
            return await _ask(process)
    except TimeoutError:
        raise _NotAnswering(f"no answer within {START_SECONDS:.0f} s") from None
    finally:
        await end_server(process, END_SECONDS)


async def _ask(process: asyncio.subprocess.Process) -> str:
    assert process.stdin is not None and process.stdout is not None  # noqa: PT018, S101 - it was started with pipes
    with suppress(ConnectionError):  # it has ended; what it said, if anything, is read below
        process.stdin.write(msgspec.json.encode(_INITIALIZE) + b"\n")
        await process.stdin.drain()
    line = await process.stdout.readline()
    if not line:
        raise _NotAnswering(f"it ended with status {await process.wait()} before it answered")
    try:
        server = msgspec.json.decode(line)["result"]["serverInfo"]
        return f"{server['name']} {server['version']}"
    except (msgspec.DecodeError, LookupError, TypeError):
        raise _NotAnswering("its answer is not MCP") from None


async def end_server(
    process: asyncio.subprocess.Process, seconds: float, reading: asyncio.Task[None] | None = None
) -> None:
    """End a server as a client does, by closing its input, and by force where that is not enough.

    `reading` is what still hands on its answers; the server has until then to give them.
    """
    if process.stdin is not None:
        process.stdin.close()
    try:
        async with asyncio.timeout(seconds):
            if reading is not None:
                await reading
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
