"""Client entries: checks that the servers in an MCP client's configuration start and answer.

A local server is started with the command and variables of its entry and sent `initialize`. A remote one is
checked by `deployed_server`. No tool is called and nothing is changed.
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
from bridgehead.runtime import plugins
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
    """The server gave no usable answer; the message says why."""


async def examine(client: DetectedClient, environment: Mapping[str, str]) -> list[Finding]:
    """Check each of our servers in a client's file, concurrently."""
    return await asyncio.gather(
        *(_examine_entry(client, name, entry, environment) for name, entry in client.entries.items())
    )


async def _examine_entry(
    client: DetectedClient, name: str, entry: Mapping[str, Any], environment: Mapping[str, str]
) -> Finding:
    what = f"{client.client.title}: {name}"
    if not isinstance(entry.get("command"), str):
        url = next((entry[field] for field in entries.URLS if isinstance(entry.get(field), str)), "")
        variable = entry.get("bearer_token_env_var")  # Codex names a variable, the others write a header
        if isinstance(variable, str):
            token = environment.get(variable, "")
        else:
            headers = {**entries.mapping(entry, "headers"), **entries.mapping(entry, "http_headers")}
            token = _resolve(str(headers.get("Authorization", "")), environment).removeprefix("Bearer ")
        return await deployed_server.summarize(what, url, token)
    began = time.monotonic()
    try:
        version = await _start(entry, environment)
    except _NotAnswering as failure:
        target = entries.starts_file(entry) or name
        return Finding(
            what, "wrong", str(failure), f"Run `bridgehead install {client.client.id} {target} --force`."
        )
    return Finding(
        what, "right", f"{version} answers {(time.monotonic() - began) * 1000:.0f} ms after its start"
    )


def _resolve(text: str, environment: Mapping[str, str]) -> str:
    """Replace ${NAME} and ${env:NAME}, as clients do."""
    return _REFERENCE.sub(lambda match: environment.get(match[1], ""), text)


def _outside_shell() -> dict[str, str]:
    """Return the environment without Bridgehead settings, since clients do not start from this shell.

    Invalid settings are reported once, for each bridge; here they would be blamed on the client.
    """
    settings = set()
    for name in plugins.names():
        with suppress(plugins.PluginError):
            settings |= {setting.name for setting in plugins.load(name).settings.declared}
    return {name: value for name, value in os.environ.items() if name not in settings}


async def _start(entry: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    """Start a server and return its name and version."""
    words = [entry["command"], *map(str, entry.get("args") or ())]
    own = {name: _resolve(str(value), environment) for name, value in entries.mapping(entry, "env").items()}
    # Codex passes on the variables of its own environment that the entry names.
    own |= {name: environment[name] for name in entries.variables_of(entry) - {*own} if name in environment}
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,  # an unread pipe would fill and block the server
            env={**_outside_shell(), **own},
        )
    except OSError as failure:
        reason = failure.strerror or str(failure)
        raise _NotAnswering(f"cannot start {words[0]}: {reason}") from failure
    try:
        async with asyncio.timeout(START_SECONDS):
            # Both pipes exist: they were requested above.
            assert process.stdin is not None and process.stdout is not None  # noqa: PT018, S101
            with suppress(ConnectionError):  # it has ended; its output is read below
                process.stdin.write(msgspec.json.encode(_INITIALIZE) + b"\n")
                await process.stdin.drain()
            line = await process.stdout.readline()
            if not line:
                raise _NotAnswering(f"it ended with status {await process.wait()} before it answered")
            server = msgspec.json.decode(line)["result"]["serverInfo"]
            return f"{server['name']} {server['version']}"
    except (msgspec.DecodeError, LookupError, TypeError):
        raise _NotAnswering("its answer is not MCP") from None
    except TimeoutError:
        raise _NotAnswering(f"no answer within {START_SECONDS:.0f} s") from None
    finally:
        await end_server(process, END_SECONDS)


async def end_server(
    process: asyncio.subprocess.Process, seconds: float, reading: asyncio.Task[None] | None = None
) -> None:
    """Close a server's input, as clients do, and kill it after `seconds`.

    `reading` is the task that passes on its output; it may finish within the same time.
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
