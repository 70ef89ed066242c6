"""Bridge: the declaration of one MCP server: its name, its parts, its error dialect.

A bridge is written once, at import, with decorators; nothing runs until a transport serves it.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, Unpack, overload

import msgspec

from .calls.context import Context, State
from .changes import Changes
from .errors import DeclarationError, Dialect
from .features.apps import (
    PAGE_TTL_MS,
    UI_EXTENSION,
    UI_MIME_TYPE,
    UI_SCHEME,
    AppPage,
    describe_ui,
)
from .features.bridge_base import BridgeBase, Extension, Implementation, OutputSchemas
from .features.docstrings import read_docstring
from .features.functions import make_completer, make_reader, name_of
from .features.prompts import Prompt
from .features.resources import Resource, ResourceItem, Template, TemplateItem
from .features.tools import Tool, ToolHints, ToolOptions
from .revisions import Revision
from .values.content import Icon

if TYPE_CHECKING:
    from .tasks.store import TaskStore

Function = TypeVar("Function", bound=Callable[..., Any])
Completer = Callable[[str, dict[str, str], Context[Any]], "list[str] | Awaitable[list[str]]"]
Completing = TypeVar("Completing", bound=Callable[..., "Sequence[str] | Awaitable[Sequence[str]]"])
Reading = TypeVar("Reading", bound=Callable[..., Any])
ResourceLister = Callable[[Context[Any]], "list[ResourceItem] | Awaitable[list[ResourceItem]]"]
Changing = Literal["tools", "prompts", "resources"]


class Bridge(BridgeBase, Generic[State]):
    """One MCP server, declared."""

    def __init__(
        self,
        name: str,
        version: str,
        *,
        title: str | None = None,
        description: str | None = None,
        website_url: str | None = None,
        icons: tuple[Icon, ...] = (),
        instructions: str | None = None,
        lifespan: Callable[[], AbstractAsyncContextManager[State]]
        | Callable[[Bridge[State]], AbstractAsyncContextManager[State]]
        | None = None,
        dialect: Dialect | None = None,
        changing: frozenset[Changing] | set[Changing] = frozenset(),
        subscribable: bool = False,
        logging: bool = True,
        page_size: int = 100,
        list_ttl_ms: int = 0,
        read_ttl_ms: int = 0,
        cache_scope: Literal["public", "private"] = "private",
        contract_revision: str | None = None,
        output_schemas: OutputSchemas = "full",
        numeric_strings: bool = True,
        tool_meta: dict[str, Any] | None = None,
        checked: bool = True,
    ) -> None:
        """Declare a server. `numeric_strings` accepts "5" for an integer argument, as many models send it.

        `tool_meta` is in the `_meta` of every tool, such as `{"anthropic/searchHint": "weather forecast"}`.

        Every declaration is checked when it is made. `checked=False` skips that, for a bridge whose tests do
        it: the check takes up to 5 ms at startup.
        """
        info = Implementation(name, version, title, description, website_url, icons or None)
        super().__init__(
            info,
            _take_lifespan(lifespan, self),
            dialect,
            contract_revision,
            output_schemas,
            numeric_strings=numeric_strings,
        )
        self._is_checked = checked
        self._tool_meta = tool_meta or {}
        self.instructions = instructions
        self.changing = frozenset(changing)
        """The lists whose changes are announced."""
        self.subscribable = subscribable
        """Whether clients can subscribe to single resources."""
        self.logging = logging
        self.page_size = page_size
        self.list_ttl_ms = list_ttl_ms
        self.read_ttl_ms = read_ttl_ms
        self.cache_scope = cache_scope
        self.changed = Changes()
        self.bridges: tuple[Bridge[Any], ...] = (self,)
        """The bridges whose parts are offered here: this one, or the combined ones."""
        self.dialects: dict[BridgeBase, Dialect] = {}
        """The dialects of combined bridges whose failures are worded differently here; see `wording`."""
        self.tools: dict[str, Tool] = {}
        self.hidden: dict[str, str] = {}
        """Tools that are declared but not offered, each with a sentence that says why."""
        self.resources: dict[str, Resource] = {}
        self.templates: dict[str, Template] = {}
        self.prompts: dict[str, Prompt] = {}
        self.completers: dict[tuple[str, str], Completer] = {}
        self.listers: dict[BridgeBase, ResourceLister] = {}
        """Functions that list more resources, by the bridge that declared them."""
        self.extensions: dict[str, Extension] = {}
        self.task_store: Callable[[], TaskStore] | None = None
        """Makes the task store when this bridge is served alone; None keeps tasks in memory."""

    def instructions_for(self, revision: Revision) -> str | None:
        """Return the instructions for clients of a revision."""
        return None if revision.name == self.contract_revision else self.instructions

    @property
    def has_tasks(self) -> bool:
        """Whether any call can become a task."""
        return any(tool.task is not None for tool in self.tools.values())

    @property
    def has_skills(self) -> bool:
        """Whether any skill was added."""
        return "io.modelcontextprotocol/skills" in self.extensions

    @property
    def has_resources(self) -> bool:
        """Whether any resource is declared or may be listed."""
        return bool(self.resources or self.templates or self.listers)

    def extension(
        self, identifier: str, settings: dict[str, Any] | None = None, *, handshake: bool = True
    ) -> None:
        """Declare an extension of the protocol, such as `io.modelcontextprotocol/ui`, with its settings.

        It is listed in the capabilities. The client's own extensions are `ctx.client.extensions`.
        """
        prefix, slash, name = identifier.partition("/")
        if not (slash and prefix and name):
            message = f"{identifier!r} is not the name of an extension: expected a prefix, a slash and a name"
            raise ValueError(message)
        self.add(self.extensions, identifier, Extension(settings or {}, handshake))

    @overload
    def tool(self, function: Function, /) -> Function: ...

    @overload
    def tool(
        self, description: str | None = None, /, **options: Unpack[ToolOptions]
    ) -> Callable[[Function], Function]: ...

    def tool(
        self, description: str | Callable[..., Any] | None = None, /, **options: Unpack[ToolOptions]
    ) -> Any:
        """Declare a tool: `@bridge.tool` if its docstring describes it, `@bridge.tool("…")` otherwise.

        The arguments are the function's parameters, or the members of an `Arguments` struct that is its first
        one. A parameter of type `Context` gets the context. A plain `def` must not block; use `async def` to
        wait.

        Declare a plain `def` that blocks or computes for long with `in_thread`; it must not send progress or
        questions through its context, which belongs to the event loop.

        `input_schema` replaces the generated schema in lists; a function gets that schema and returns the
        one to list. Clients of the bridge's `contract_revision` see `contract_schema` and
        `contract_description` instead. Clients that name no revision see only the tools that have a
        `contract_schema`. `defaults` adds default values to the schema that are known only when the bridge
        is made.

        A tool whose calls cost money is `paid`, even if it changes nothing. `effect` says in a few words what
        a call changes, such as "overwrites (can be undone)", on the dashboard of a host; models do not see
        it.

        With `task`, a call that takes longer than the grace time becomes a task, for clients that support
        tasks; with "required", other clients cannot call the tool. A grace time of 0 makes it a task at once.

        A caller over HTTP needs all `scopes`; over stdio there is no caller, so everything is allowed. After
        `seconds` the call is stopped with an error.

        `app` is the URI of an app that shows the answers. A tool that only makes sense beside an app is
        `visible_to` hosts that show apps ("app_hosts"), or to the page alone ("app").
        """
        if callable(description):
            return self.tool()(description)
        kept: dict[str, Any] = {**options}
        app, visible_to = kept.pop("app", None), options.get("visible_to", "everyone")
        if app is not None and app not in self.resources:
            message = f"There is no app {app!r}: declare it before its tools"
            raise ValueError(message)
        meta = {**self._tool_meta, **(kept.pop("meta", None) or {}), **describe_ui(app, visible_to)}
        hints = ToolHints(
            None, *(kept.pop(word, None) for word in ("read_only", "destructive", "idempotent", "open_world"))
        )

        def declare(handler: Function) -> Function:
            tool = Tool(handler, description, bridge=self, hints=hints, meta=meta or None, **kept)
            self._declare("Tool", self.tools, tool)
            return handler

        return declare

    def resource(
        self,
        uri: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        size: int | None = None,
        icons: tuple[Icon, ...] = (),
        meta: dict[str, Any] | None = None,
    ) -> Callable[[Reading], Reading]:
        """Declare a resource with a fixed URI; the function returns text, bytes, data or contents.

        Data (a dict, a list, a dataclass) is sent as JSON. The function's parameter, if it has one, gets the
        context. Its name and docstring are the name and description, unless they are given.

        `meta` is listed, and is sent with text and bytes; ready-made contents have their own `meta`.
        """

        def declare(function: Reading) -> Reading:
            item = ResourceItem(
                uri,
                name or name_of(function),
                title,
                description or read_docstring(function)[0] or None,
                mime_type,
                size=size,
                icons=icons or None,
                meta=meta,
            )
            self.add(self.resources, uri, Resource(item, function, self))
            self._announce(self.resources)
            return function

        return declare

    def app(self, uri: str, page: str, *, name: str, description: str | None = None) -> None:
        """Declare an app: a page in a file, which hosts show beside the answers of the tools that name it.

        The page is self-contained (it loads nothing from elsewhere) and has at most 30,000 bytes. Only hosts
        that show apps find it in the list of resources.
        """
        if not uri.startswith(UI_SCHEME):
            message = f"{uri!r} cannot be an app: its URI begins with {UI_SCHEME}"
            raise ValueError(message)
        document = AppPage(page)
        item = ResourceItem(uri, name, None, description, UI_MIME_TYPE, meta={"ui": {"prefersBorder": True}})
        self.add(self.resources, uri, Resource(item, lambda _context: document.html, self, PAGE_TTL_MS))
        if UI_EXTENSION not in self.extensions:
            self.extension(UI_EXTENSION)

    def template(
        self,
        uri_template: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        icons: tuple[Icon, ...] = (),
        meta: dict[str, Any] | None = None,
    ) -> Callable[[Reading], Reading]:
        """Declare resources by a URI template; each variable is a parameter of the same name.

        `{day}` is one segment of the path, `{+path}` or `{path*}` any number of them, and `{?query,page}` at
        the end may be missing, so their parameters have defaults. A parameter `variables` gets all of them
        in a dict. Everything else is as in `resource`.
        """

        def declare(function: Reading) -> Reading:
            item = TemplateItem(
                uri_template,
                name or name_of(function),
                title,
                description or read_docstring(function)[0] or None,
                mime_type,
                icons=icons or None,
                meta=meta,
            )
            self.add(self.templates, uri_template, Template(item, function, self))
            self._announce(self.templates)
            return function

        return declare

    def resource_list(self, lister: ResourceLister) -> ResourceLister:
        """Declare a function that lists more resources; a client reads them through a template."""
        read = make_reader(lister, "The list of resources")
        self.listers[self] = lambda context: read({}, context)
        return lister

    @overload
    def prompt(self, function: Function, /) -> Function: ...

    @overload
    def prompt(
        self,
        description: str | None = None,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        icons: tuple[Icon, ...] = (),
    ) -> Callable[[Function], Function]: ...

    def prompt(
        self,
        description: str | Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        icons: tuple[Icon, ...] = (),
    ) -> Any:
        """Declare a prompt; the function returns its text or its messages. Parameters as for a tool."""
        if callable(description):
            return self.prompt()(description)

        def declare(handler: Function) -> Function:
            prompt = Prompt(handler, description, bridge=self, name=name, title=title, icons=icons)
            self._declare("Prompt", self.prompts, prompt)
            return handler

        return declare

    def complete_prompt(self, prompt: str, argument: str) -> Callable[[Completing], Completing]:
        """Declare how an argument of a prompt is completed."""
        known = self.prompts.get(prompt)
        names = None
        if known is not None:
            names = [field.encode_name for field in msgspec.structs.fields(known.input_type)]
        return self._complete(prompt, argument, names, "prompt", "argument")

    def complete_template(self, uri_template: str, variable: str) -> Callable[[Completing], Completing]:
        """Declare how a variable of a resource template is completed."""
        known = self.templates.get(uri_template)
        return self._complete(
            uri_template, variable, None if known is None else known.uri.variables, "template", "variable"
        )

    def _complete(
        self, subject: str, argument: str, known: Sequence[str] | None, what: str, part: str
    ) -> Callable[[Completing], Completing]:
        if known is None:
            raise DeclarationError(f"There is no {what} {subject!r} to complete. Declare it first.")
        if argument not in known:
            raise DeclarationError(
                f"The {what} {subject!r} has no {part} {argument!r}. It has {', '.join(known) or 'none'}."
            )

        def declare(handler: Completing) -> Completing:
            completer = make_completer(handler, f"The completer of {argument!r} of {subject}")
            self.add(self.completers, (subject, argument), completer)
            return handler

        return declare

    def _declare(self, what: str, table: dict[str, Any], part: Tool | Prompt) -> None:
        if part.name in table:
            raise DeclarationError(f"{what} {part.name} is declared twice. Give one of them another name=.")
        if self._is_checked:
            part.check()
        table[part.name] = part
        self._announce(table)

    @staticmethod
    def add(table: dict[Any, Any], key: Any, value: Any) -> None:
        """Put a part into a table; raise if the key is taken."""
        if key in table:
            message = f"{key!r} is declared twice"
            raise ValueError(message)
        table[key] = value

    def _announce(self, table: dict[Any, Any]) -> None:
        """Announce a part that is declared while the bridge is served; before that, nobody listens."""
        if table is self.tools:
            self.changed.tools()
        elif table is self.prompts:
            self.changed.prompts()
        else:
            self.changed.resources()


def _take_lifespan(lifespan: Any, bridge: Bridge[Any]) -> Callable[[], Any] | None:
    """Return a lifespan that takes nothing; refuse one that cannot be entered."""
    if lifespan is None:
        return None
    if inspect.isasyncgenfunction(lifespan) or not callable(lifespan):
        raise DeclarationError(
            "The lifespan is not a function that returns an async context manager. Put "
            "@contextlib.asynccontextmanager above it, and pass the function itself."
        )
    needed = [
        one
        for one in inspect.signature(lifespan).parameters.values()
        if one.default is one.empty and one.kind < one.VAR_POSITIONAL
    ]
    if len(needed) > 1:
        raise DeclarationError("A lifespan takes the bridge, or nothing.")
    return partial(lifespan, bridge) if needed else lifespan
