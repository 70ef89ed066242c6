"""Handshake: `initialize`, `server/discover`, `ping` and `logging/setLevel`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import jsonrpc
from ..calls.context import Context, check_level
from ..calls.params import InitializeParams, Params, SetLevelParams
from ..connection import Client
from ..features.results import EMPTY_BODY, Body
from ..features.tools import TASKS_EXTENSION
from ..revisions import STATELESS, Revision, negotiate
from ..values.content import Wire
from .listing import cache_hints


class Capability(Wire, frozen=True):
    """One entry of a server's capabilities."""

    subscribe: bool | None = None
    list_changed: bool | None = None


class Capabilities(Wire, frozen=True):
    """A server's capabilities; None if it lacks the feature."""

    resources: Capability | None = None
    tools: Capability | None = None
    prompts: Capability | None = None
    completions: Capability | None = None
    logging: Capability | None = None
    extensions: dict[str, dict[str, Any]] | None = None


_CONTRACT = Capabilities(
    resources=Capability(subscribe=False, list_changed=False), tools=Capability(), prompts=Capability()
)

if TYPE_CHECKING:
    from ..dispatch import Dispatcher
"""Capabilities shown by a bridge with a contract to a client that names no revision."""


def list_capabilities(dispatcher: Dispatcher, revision: Revision) -> Capabilities:
    """Return the bridge's capabilities as the revision defines them."""
    bridge = dispatcher.bridge

    def listed(name: str, has_any: object, *, subscribe: bool | None = None) -> Capability | None:
        return Capability(subscribe, True if name in bridge.changing else None) if has_any else None

    extensions: dict[str, dict[str, Any]] = {}
    if revision.name != bridge.contract_revision:
        extensions = {
            identifier: extension.settings
            for identifier, extension in bridge.extensions.items()
            if revision.stateless or extension.handshake
        }
        if revision.stateless and bridge.has_tasks:
            extensions[TASKS_EXTENSION] = {}
    return Capabilities(
        resources=listed("resources", bridge.has_resources, subscribe=bridge.subscribable or None),
        tools=listed("tools", bridge.tools),
        prompts=listed("prompts", bridge.prompts),
        completions=Capability() if bridge.completers and revision.completions_capability else None,
        logging=Capability() if bridge.logging else None,
        extensions=extensions or None,
    )


def initialize(dispatcher: Dispatcher, context: Context[Any], params: InitializeParams) -> Body:
    """Agree on a revision of the handshake era."""
    revision = negotiate(params.protocol_version)
    client = Client(revision, params.capabilities, params.client_info)
    client.names_revision = params.protocol_version is not None
    dispatcher.adopt(context.connection, client)
    is_contract = dispatcher.shows_contract(client)
    body: dict[str, Any] = {
        "protocolVersion": revision.name,
        "capabilities": _CONTRACT if is_contract else list_capabilities(dispatcher, revision),
        "serverInfo": dispatcher.bridge.info.fit(revision),
    }
    instructions = dispatcher.bridge.instructions_for(revision)
    if instructions is not None:
        body["instructions"] = instructions
    return jsonrpc.encode(body), None


def discover(dispatcher: Dispatcher, context: Context[Any], _params: Params) -> Body:
    """Answer with the revisions and capabilities, without a handshake."""
    body: dict[str, Any] = {
        "supportedVersions": list(STATELESS),
        "capabilities": list_capabilities(dispatcher, context.revision),
    }
    instructions = dispatcher.bridge.instructions_for(context.revision)
    if instructions is not None:
        body["instructions"] = instructions
    return jsonrpc.encode({**body, **cache_hints(dispatcher, dispatcher.bridge.list_ttl_ms)}), None


def ping(_dispatcher: Dispatcher, _context: Context[Any], _params: Params) -> Body:
    """Answer with an empty result."""
    return EMPTY_BODY


def set_level(_dispatcher: Dispatcher, context: Context[Any], params: SetLevelParams) -> Body:
    """Set the lowest level of log messages to send."""
    context.client.log_level = check_level(params.level)
    return EMPTY_BODY
