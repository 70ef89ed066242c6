"""Opening: how a client and the server get to know each other. Handshake, discovery, ping, log level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from .. import jsonrpc
from ..calls.context import Context, checked_level
from ..calls.params import InitializeParams, Params, SetLevelParams
from ..connection import Client
from ..features.content import Wire, fitted
from ..results import EMPTY_BODY, Body
from ..revisions import STATELESS, Revision, negotiated
from .listing import cache_hints

if TYPE_CHECKING:
    from ..dispatch import Dispatcher


class Capability(Wire, frozen=True):
    """One entry of a server's capabilities."""

    subscribe: bool | None = None
    list_changed: bool | None = None


class Capabilities(Wire, frozen=True):
    """What a server offers."""

    resources: Capability | None = None
    tools: Capability | None = None
    prompts: Capability | None = None
    completions: Capability | None = None
    logging: Capability | None = None


def capabilities(server: Dispatcher, revision: Revision) -> Capabilities:
    """Say what the bridge offers, in the words of a revision."""
    bridge = server.bridge

    def listed(what: str, there: object, *, subscribe: bool | None = None) -> Capability | None:
        return Capability(subscribe, True if what in bridge.changing else None) if there else None

    return Capabilities(
        resources=listed("resources", bridge.has_resources, subscribe=bridge.subscribable or None),
        tools=listed("tools", bridge.tools),
        prompts=listed("prompts", bridge.prompts),
        completions=Capability() if bridge.completers and revision.completions_capability else None,
        logging=Capability() if bridge.logging else None,
    )


def initialize(server: Dispatcher, context: Context[Any], params: InitializeParams) -> Body:
    """Agree on a revision of the handshake era."""
    revision = negotiated(params.protocol_version)
    server.adopt(context.connection, Client(revision, params.capabilities, params.client_info))
    body: dict[str, Any] = {
        "protocolVersion": revision.name,
        "capabilities": capabilities(server, revision),
        "serverInfo": fitted_info(server, revision),
    }
    instructions = server.bridge.instructions_for(revision)
    if instructions is not None:
        body["instructions"] = instructions
    return jsonrpc.encode(body), None


def fitted_info(server: Dispatcher, revision: Revision) -> Any:
    """Give the server's name and looks as far as a revision knows them."""
    info = fitted(server.bridge.info, revision)
    return info if revision.icons else replace(info, description=None, website_url=None)


def discover(server: Dispatcher, context: Context[Any], _params: Params) -> Body:
    """Say what the server speaks and offers, without a handshake."""
    body: dict[str, Any] = {
        "supportedVersions": list(STATELESS),
        "capabilities": capabilities(server, context.revision),
    }
    instructions = server.bridge.instructions_for(context.revision)
    if instructions is not None:
        body["instructions"] = instructions
    return jsonrpc.encode({**body, **cache_hints(server, server.bridge.list_ttl_ms)}), None


def ping(_server: Dispatcher, _context: Context[Any], _params: Params) -> Body:
    """Answer that the server is there."""
    return EMPTY_BODY


def set_level(_server: Dispatcher, context: Context[Any], params: SetLevelParams) -> Body:
    """Set from which level on the client wants log messages."""
    context.client.log_level = checked_level(params.level)
    return EMPTY_BODY
