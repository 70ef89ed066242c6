"""Methods: what each request of the protocol does, and the table that finds it.

A method gets the dispatcher, the context of the call and its decoded parameters, and returns the encoded
result body with its `_meta`, or a coroutine that will. Eras, ids, envelopes and errors are the dispatcher's.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Struct

from . import changes, jsonrpc
from .changes import Listener
from .connection import Client
from .content import BlobResource, TextResource, Wire, fitted
from .context import LOG_LEVELS, Context
from .errors import INVALID_PARAMS, OVERLOADED, ProtocolError, ToolError
from .params import (
    META_PREFIX,
    CallToolParams,
    CompleteParams,
    GetPromptParams,
    InitializeParams,
    ListenFilter,
    ListenParams,
    PageParams,
    Params,
    ReadResourceParams,
    SetLevelParams,
    SubscribeParams,
)
from .tools import InvalidArguments, Tool, encoded, error_result, unknown_tool
from .versions import STATELESS, Revision, negotiated

if TYPE_CHECKING:
    from .dispatch import Dispatcher

Body = tuple[bytes, dict[str, Any] | None]
"""An encoded result object, and the `_meta` that is to go into it."""
Outcome = Body | Coroutine[Any, Any, Body]

EMPTY_BODY: Body = (b"{}", None)
SUBSCRIPTION_ID = META_PREFIX + "subscriptionId"
MOST_COMPLETIONS = 100
_CURSOR = re.compile("p([0-9a-f]{1,8})")


class Method(Struct, frozen=True):
    """One method: its parameters, what it does, and in which era it exists."""

    params: type[Params]
    run: Callable[[Any, Context[Any], Any], Outcome]
    handshake: bool = True
    stateless: bool = True
    offered: Callable[[Any], bool] = lambda _: True


# --- opening -----------------------------------------------------------------------------------------------


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
    if server.bridge.instructions is not None:
        body["instructions"] = server.bridge.instructions
    return jsonrpc.encode(body), None


def fitted_info(server: Dispatcher, revision: Revision) -> Any:
    """Give the server's name and looks as far as a revision knows them."""
    info = fitted(server.bridge.info, revision)
    return info if revision.icons else msgspec.structs.replace(info, description=None, website_url=None)


def discover(server: Dispatcher, context: Context[Any], _params: Params) -> Body:
    """Say what the server speaks and offers, without a handshake."""
    body: dict[str, Any] = {
        "supportedVersions": list(STATELESS),
        "capabilities": capabilities(server, context.revision),
    }
    if server.bridge.instructions is not None:
        body["instructions"] = server.bridge.instructions
    return jsonrpc.encode({**body, **cache_hints(server, server.bridge.list_ttl_ms)}), None


def ping(_server: Dispatcher, _context: Context[Any], _params: Params) -> Body:
    """Answer that the server is there."""
    return EMPTY_BODY


def set_level(_server: Dispatcher, context: Context[Any], params: SetLevelParams) -> Body:
    """Set from which level on the client wants log messages."""
    context.client.log_level = checked_level(params.level)
    return EMPTY_BODY


def checked_level(level: str) -> str:
    """Refuse a log level that does not exist."""
    if level not in LOG_LEVELS:
        raise ProtocolError(INVALID_PARAMS, f"Unknown log level {level!r}; one of {', '.join(LOG_LEVELS)}")
    return level


# --- lists -------------------------------------------------------------------------------------------------


def cache_hints(server: Dispatcher, ttl_ms: int) -> dict[str, Any]:
    """Say how long a client of the stateless era may keep a result."""
    return {"ttlMs": ttl_ms, "cacheScope": server.bridge.cache_scope}


def page(server: Dispatcher, context: Context[Any], name: str, items: list[Any], cursor: str | None) -> Body:
    """Cut one page out of a list."""
    start = 0 if cursor is None else _offset(cursor, len(items), server.bridge.page_size)
    end = start + server.bridge.page_size
    body: dict[str, Any] = {name: items[start:end]}
    if end < len(items):
        body["nextCursor"] = f"p{end:x}"
    if context.revision.stateless:
        body |= cache_hints(server, server.bridge.list_ttl_ms)
    return jsonrpc.encode(body), None


def _offset(cursor: str, length: int, page_size: int) -> int:
    found = _CURSOR.fullmatch(cursor)
    offset = int(found[1], 16) if found else length
    if offset >= length or offset % page_size:
        message = f"Unknown cursor {cursor!r}: use the nextCursor of the page before, or none"
        raise ProtocolError(INVALID_PARAMS, message)
    return offset


def list_tools(server: Dispatcher, context: Context[Any], params: PageParams) -> Body:
    """List the tools, in the order of their declaration."""
    return server.remembered(
        ("tools", context.revision.name, params.cursor),
        lambda: page(
            server,
            context,
            "tools",
            [tool.item(context.revision) for tool in server.bridge.tools.values()],
            params.cursor,
        ),
    )


def list_prompts(server: Dispatcher, context: Context[Any], params: PageParams) -> Body:
    """List the prompts."""
    items = [prompt.item(context.revision) for prompt in server.bridge.prompts.values()]
    return page(server, context, "prompts", items, params.cursor)


def list_templates(server: Dispatcher, context: Context[Any], params: PageParams) -> Body:
    """List the resource templates."""
    items = [fitted(template.item, context.revision) for template in server.bridge.templates.values()]
    return page(server, context, "resourceTemplates", items, params.cursor)


async def list_resources(server: Dispatcher, context: Context[Any], params: PageParams) -> Body:
    """List the declared resources, and those that the bridge finds."""
    items = [resource.item for resource in server.bridge.resources.values()]
    if server.bridge.list_resources is not None:
        await server.lifespan.entered()
        found = server.bridge.list_resources(context)
        items += await found if inspect.isawaitable(found) else found
    return page(
        server, context, "resources", [fitted(item, context.revision) for item in items], params.cursor
    )


# --- doing -------------------------------------------------------------------------------------------------


def call_tool(server: Dispatcher, context: Context[Any], params: CallToolParams) -> Outcome:
    """Call a tool. A plain function answers at once; a coroutine is handed back to be run."""
    tool = server.bridge.tools.get(params.name)
    if tool is None:
        raise unknown_tool(params.name, list(server.bridge.tools))
    try:
        arguments = tool.arguments(params.arguments)
    except InvalidArguments as error:
        failure = server.bridge.dialect.invalid_arguments(tool.name, str(error))
        if isinstance(failure, ToolError):
            return encoded(error_result(failure), context.revision)
        raise failure from error
    server.bring_answers(context, params, params.name, params.arguments)
    if tool.is_async or not server.lifespan.ready:
        return _call_later(server, context, tool, arguments)
    return encoded(tool.handler(arguments, context), context.revision)  # type: ignore[arg-type]


async def _call_later(server: Dispatcher, context: Context[Any], tool: Tool, arguments: Any) -> Body:
    if not server.lifespan.ready:
        await server.lifespan.entered()
    returned: Any = tool.handler(arguments, context)
    return encoded(await returned if tool.is_async else returned, context.revision)


async def read_resource(server: Dispatcher, context: Context[Any], params: ReadResourceParams) -> Body:
    """Read a resource by its URI: a declared one, or the first template that fits."""
    server.bring_answers(context, params, params.uri)
    await server.lifespan.entered()
    contents = await _contents_of(server, context, params.uri)
    fitting = [fitted(item, context.revision) for item in contents]
    hints = cache_hints(server, server.bridge.read_ttl_ms) if context.revision.stateless else {}
    return jsonrpc.encode({"contents": fitting, **hints}), None


async def _contents_of(
    server: Dispatcher, context: Context[Any], uri: str
) -> list[TextResource | BlobResource]:
    resource = server.bridge.resources.get(uri)
    if resource is not None:
        return await resource.read(context)
    for template in server.bridge.templates.values():
        variables = template.uri.match(uri)
        if variables is not None:
            return await template.read(uri, variables, context)
    raise resource_not_found(uri, context.revision)


def resource_not_found(uri: str, revision: Revision) -> ProtocolError:
    """Refuse a URI under which there is nothing, with the code that the revision gives it."""
    return ProtocolError(revision.missing_resource_code, f"Resource not found: {uri}", {"uri": uri})


async def get_prompt(server: Dispatcher, context: Context[Any], params: GetPromptParams) -> Body:
    """Make a prompt's messages."""
    prompt = server.bridge.prompts.get(params.name)
    if prompt is None:
        known = list(server.bridge.prompts)
        raise ProtocolError(INVALID_PARAMS, f"Unknown prompt: {params.name}", {"prompts": known})
    arguments = prompt.arguments(params.arguments)
    server.bring_answers(context, params, params.name, params.arguments)
    await server.lifespan.entered()
    return jsonrpc.encode(await prompt.messages(arguments, context)), None


async def complete(server: Dispatcher, context: Context[Any], params: CompleteParams) -> Body:
    """Complete an argument of a prompt or a variable of a template."""
    subject = _completed_subject(server, params)
    completer = server.bridge.completers.get((subject, params.argument.name))
    values: list[str] = []
    if completer is not None:
        await server.lifespan.entered()
        found = completer(params.argument.value, params.context.arguments, context)
        values = await found if inspect.isawaitable(found) else found
    completion = {
        "values": values[:MOST_COMPLETIONS],
        "total": len(values),
        "hasMore": len(values) > MOST_COMPLETIONS,
    }
    return jsonrpc.encode({"completion": completion}), None


def _completed_subject(server: Dispatcher, params: CompleteParams) -> str:
    ref = params.ref
    subject, known = (ref.name, server.bridge.prompts) if ref.type == "ref/prompt" else (ref.uri, None)
    if subject is not None and (known is None or subject in known):
        return subject
    raise ProtocolError(INVALID_PARAMS, f"There is nothing to complete for {ref.type} {subject!r}")


# --- hearing of changes ------------------------------------------------------------------------------------


def subscribe(server: Dispatcher, context: Context[Any], params: SubscribeParams) -> Body:
    """Tell the client from now on when a resource changes (handshake era)."""
    listener = context.connection.listener
    if listener is not None:
        if params.uri not in listener.uris and len(listener.uris) >= server.limits.subscriptions:
            raise ProtocolError(OVERLOADED, f"At most {server.limits.subscriptions} subscriptions a client")
        listener.uris.add(params.uri)
    return EMPTY_BODY


def unsubscribe(_server: Dispatcher, context: Context[Any], params: SubscribeParams) -> Body:
    """Stop telling the client of a resource's changes (handshake era)."""
    listener = context.connection.listener
    if listener is not None:
        listener.uris.discard(params.uri)
    return EMPTY_BODY


def listen(server: Dispatcher, context: Context[Any], params: ListenParams) -> Outcome:
    """Open a stream of the changes that the client asks for (stateless era)."""
    granted = _granted(server, params.notifications)
    if len(server.streams) >= server.limits.listen_streams:
        raise ProtocolError(
            OVERLOADED, f"At most {server.limits.listen_streams} listen streams; end one first"
        )
    return _listening(server, context, granted)


def _granted(server: Dispatcher, wanted: ListenFilter) -> ListenFilter:
    bridge = server.bridge
    uris: Any = UNSET
    if bridge.subscribable and wanted.resource_subscriptions is not UNSET:
        uris = wanted.resource_subscriptions[: server.limits.subscriptions]
    return ListenFilter(
        wanted.tools_list_changed and "tools" in bridge.changing,
        wanted.prompts_list_changed and "prompts" in bridge.changing,
        wanted.resources_list_changed and "resources" in bridge.changing,
        uris,
    )


async def _listening(server: Dispatcher, context: Context[Any], granted: ListenFilter) -> Body:
    meta = {SUBSCRIPTION_ID: context.request_id}
    lists = {
        method
        for method, wanted in (
            (changes.TOOLS, granted.tools_list_changed),
            (changes.PROMPTS, granted.prompts_list_changed),
            (changes.RESOURCES, granted.resources_list_changed),
        )
        if wanted
    }
    listener = Listener(lists, set(granted.resource_subscriptions or ()))
    with server.streaming(context.connection, listener):
        acknowledgement = {"_meta": meta, "notifications": granted}
        await context.notify("notifications/subscriptions/acknowledged", acknowledgement)
        while heard := await listener.heard():
            for method, uri in heard:
                await context.notify(method, {"_meta": meta} if uri is None else {"_meta": meta, "uri": uri})
    return b"{}", meta


# --- the table ---------------------------------------------------------------------------------------------


def _has_tools(server: Dispatcher) -> bool:
    return bool(server.bridge.tools)


def _has_prompts(server: Dispatcher) -> bool:
    return bool(server.bridge.prompts)


def _has_resources(server: Dispatcher) -> bool:
    return server.bridge.has_resources


def _is_subscribable(server: Dispatcher) -> bool:
    return server.bridge.subscribable


def _has_completers(server: Dispatcher) -> bool:
    return bool(server.bridge.completers)


def _has_logging(server: Dispatcher) -> bool:
    return server.bridge.logging


METHODS: dict[str, Method] = {
    "initialize": Method(InitializeParams, initialize, stateless=False),
    "server/discover": Method(Params, discover, handshake=False),
    "ping": Method(Params, ping, stateless=False),
    "logging/setLevel": Method(SetLevelParams, set_level, stateless=False, offered=_has_logging),
    "tools/list": Method(PageParams, list_tools, offered=_has_tools),
    "tools/call": Method(CallToolParams, call_tool, offered=_has_tools),
    "resources/list": Method(PageParams, list_resources, offered=_has_resources),
    "resources/templates/list": Method(PageParams, list_templates, offered=_has_resources),
    "resources/read": Method(ReadResourceParams, read_resource, offered=_has_resources),
    "resources/subscribe": Method(SubscribeParams, subscribe, stateless=False, offered=_is_subscribable),
    "resources/unsubscribe": Method(SubscribeParams, unsubscribe, stateless=False, offered=_is_subscribable),
    "prompts/list": Method(PageParams, list_prompts, offered=_has_prompts),
    "prompts/get": Method(GetPromptParams, get_prompt, offered=_has_prompts),
    "completion/complete": Method(CompleteParams, complete, offered=_has_completers),
    "subscriptions/listen": Method(ListenParams, listen, handshake=False),
}
