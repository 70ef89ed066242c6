"""A peer: owns connecting the official Python client to the interop server in every way it can.

The client comes to a revision by the handshake, at the newest revision that has one or at an older one; by
probing; or by going straight to the newest revision of all.
"""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import mcp_types as types
from mcp import ClientSession
from mcp.client import Client, Transport
from mcp.client.session import ElicitationFnT
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from tests.interop.node import ROOT

SERVER = "tests.interop.server"
SECONDS = 20.0

Peer = Client | ClientSession


@dataclass(frozen=True)
class Way:
    """A transport to go over, and a mode to come to a revision in."""

    transport: str
    mode: str

    @property
    def revision(self) -> str:
        newest = {"legacy": LATEST_HANDSHAKE_VERSION, "auto": LATEST_MODERN_VERSION}
        return newest.get(self.mode, self.mode)

    def __str__(self) -> str:
        return f"{self.transport}-{self.mode}"


# Mode "legacy" offers the newest revision that has a handshake; the older ones are offered by name.
MODES = ("legacy", *HANDSHAKE_PROTOCOL_VERSIONS[:-1], "auto", LATEST_MODERN_VERSION)
WAYS = (
    *(Way(transport, mode) for transport in ("stdio", "http") for mode in MODES),
    Way("sse", "2024-11-05"),
)


@asynccontextmanager
async def connected(way: Way, address: str, elicit: ElicitationFnT | None = None) -> AsyncIterator[Peer]:
    """Connect to the server: a new process over stdio, else the one that listens at the address."""
    if way.mode in HANDSHAKE_PROTOCOL_VERSIONS:
        async with (
            transport(way, address) as streams,
            ClientSession(*streams, read_timeout_seconds=SECONDS, elicitation_callback=elicit) as session,
        ):
            await shake_hands(session, way.mode, elicits=elicit is not None)
            yield session
    else:
        async with Client(
            transport(way, address),
            mode=way.mode,
            read_timeout_seconds=SECONDS,
            elicitation_callback=elicit,
        ) as client:
            yield client


def transport(way: Way, address: str) -> Transport:
    if way.transport == "http":
        return streamable_http_client(f"{address}/mcp")
    if way.transport == "sse":
        return sse_client(f"{address}/sse")
    command = StdioServerParameters(
        command=sys.executable, args=["-m", SERVER], env=dict(os.environ), cwd=ROOT
    )
    return stdio_client(command)


async def shake_hands(session: ClientSession, revision: str, *, elicits: bool) -> None:
    """Shake hands as an older client would: the official client itself only offers its newest revision."""
    capabilities = types.ClientCapabilities(elicitation=types.ElicitationCapability() if elicits else None)
    offer = types.InitializeRequestParams(
        protocol_version=revision,
        capabilities=capabilities,
        client_info=types.Implementation(name="interop", version="1.0.0"),
    )
    session.adopt(await session.send_request(types.InitializeRequest(params=offer), types.InitializeResult))
    await session.send_notification(types.InitializedNotification())
