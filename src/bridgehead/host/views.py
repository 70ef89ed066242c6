"""Views: MCP applications, each with the bridges and tools that one set of rights opens.

A view has one bridge or all of them, with all tools or only the read-only ones. Callers of equal rights share
a view; a tool outside of it does not exist for them. All views share the bridges' lifespans, so each far side
has one connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec.structs import replace

from bridgehead import __version__
from bridgehead.mcp import (
    Bridge,
    Dispatcher,
    Limits,
    NonceStore,
    ProtocolError,
    Tasks,
    combine,
    prefix_tools,
    restrict,
)
from bridgehead.mcp.http.accounts import Accounts
from bridgehead.mcp.http.endpoint import Application
from bridgehead.mcp.http.guard import Guard
from bridgehead.mcp.http.sessions import Session
from bridgehead.runtime.tool_filter import ToolFilter, add_prefix

from .auth.grants import Grant
from .registry import Registry
from .settings import HostSettings
from .telemetry.tracing import TracedDispatcher, Tracer

NAME = "bridgehead"
Key = tuple[str | None, tuple[tuple[str, bool], ...], bool, tuple[str, ...]]
"""The bridge (None: all), the open bridges each with `may_write`, `may_spend`, and the tool patterns."""
READ_ONLY = "This token is read-only. Ask the server's operator for one that may write."
NOT_OPEN = "This token does not open it. Ask the server's operator for one whose tools name it."
NO_SPENDING = (
    "This token is read-only and may not call tools that cost money. "
    "Ask the server's operator for one with --may-spend."
)


class Views:
    """Makes views when a grant first needs them, and keeps them."""

    def __init__(
        self,
        registry: Registry,
        settings: HostSettings,
        guard: Guard,
        limits: Limits,
        tasks: Tasks,
        *,
        state_keys: tuple[bytes, ...],
        session_prefix: str = "",
        tracer: Tracer | None = None,
        nonces: NonceStore | None = None,
        on_error: Callable[[str, ProtocolError], None] | None = None,
    ) -> None:
        self._registry = registry
        self._settings = settings
        for bridge in registry.bridges.values():
            add_prefix(bridge, settings, settings.tool_prefix)  # fails early if a prefix is too long
        self._refuse_taken_names()
        self._guard = guard
        self._limits = limits
        self.tasks = tasks
        """The tasks of all views; a task is visible only in the view that created it."""
        self._state_keys = state_keys
        self._session_prefix = session_prefix
        self._tracer = tracer
        self._nonces = nonces
        """The NonceStore of all views: a confirmation that one view has used is used up in every other."""
        self._on_error = on_error
        self._views: dict[Key, Application] = {}
        self.accounts = Accounts(limits)
        """The accounts of all callers, over all views."""
        tasks.ledger = self.accounts
        self._by_grant: dict[
            tuple[str | None, frozenset[str], frozenset[str], bool, tuple[str, ...]], Application
        ] = {}

    def _refuse_taken_names(self) -> None:
        """Leave out each bridge with a name that an earlier one has: `/mcp` offers all of them together."""
        accepted: list[Bridge[Any]] = []
        for name in self._registry.bridges:
            part = self._offer(name, self._settings.tool_prefix, (), may_write=True, may_spend=True)
            try:
                combine(NAME, __version__, [*accepted, part])
            except ValueError as taken:
                problem = f"Another bridge has a tool, prompt or resource of the same name: {taken}."
                self._registry.refuse(name, problem)
            else:
                accepted.append(part)

    def find(self, bridge: str | None, grant: Grant) -> Application:
        """Return the view of one bridge, or of all, that a grant opens."""
        # Two steps, because every request comes here: a look-up by the grant's own fields and, only the
        # first time, the computation of its rights, under which other grants may share the view.
        rights = (bridge, grant.full, grant.reading, grant.may_spend, grant.tools)
        view = self._by_grant.get(rights)
        if view is None:
            names = self._registry.bridges if bridge is None else (bridge,)
            readable = tuple((name, grant.may_write(name)) for name in names if grant.may_read(name))
            key = (bridge, readable, grant.may_spend, grant.tools)
            if key not in self._views:
                self._views[key] = self._make(key)
            view = self._by_grant[rights] = self._views[key]
        return view

    def _make(self, key: Key) -> Application:
        bridge, readable, may_spend, tools = key
        prefix = "" if bridge else self._settings.tool_prefix
        parts = [
            self._offer(name, prefix, tools, may_write=may_write, may_spend=may_spend)
            for name, may_write in readable
        ]
        served = parts[0] if bridge else combine(NAME, __version__, parts, title="Bridgehead")
        # Without an exporter the plain dispatcher runs: tracing then costs nothing.
        kind = Dispatcher if self._tracer is None else TracedDispatcher
        dispatcher = kind(
            served,
            limits=self._limits,
            state_key=self._state_keys,
            lifespans=self._registry.lifespans,
            on_error=self._on_error,
            tasks=self.tasks,
            # Part of the owner of each task. The same in every process, so that any of them finds the task.
            # It changes with the caller's rights, so that a caller who lost some no longer finds earlier
            # tasks.
            scope=repr(key if tools else key[:3]),  # without patterns as in earlier versions
            nonces=self._nonces,
        )
        if isinstance(dispatcher, TracedDispatcher) and self._tracer is not None:
            dispatcher.tracer = self._tracer
        return Application(
            dispatcher,
            self._guard,
            prefix=f"/{bridge}" if bridge else "",
            session_prefix=self._session_prefix,
            accounts=self.accounts,
        )

    def _offer(
        self, name: str, prefix: str, tools: tuple[str, ...], *, may_write: bool, may_spend: bool
    ) -> Bridge[Any]:
        """Return a bridge with the tools that a caller may use; an empty `prefix` means the bridge's own."""
        bridge, settings = self._registry.bridges[name], self._settings
        own_prefix = self._registry.statuses[name].tool_prefix
        # A denied tool is denied under each of its names, at every URL.
        rule = replace(settings.tool_filter, prefixes=(own_prefix, settings.tool_prefix))
        # The operator's lists still hold: a read-only token opens fewer tools than they do, never more.
        if not may_write:
            rule = replace(rule, read_only=True, read_only_reason=READ_ONLY)
        part = bridge if rule.is_everything else restrict(bridge, rule, rule.reason)
        if tools:  # a second restriction: the operator's list and the token's must both name a tool
            own = ToolFilter(allow=tools, prefixes=rule.prefixes)
            part = restrict(part, own, lambda _tool: NOT_OPEN)
        # Tools that cost money stay in the list and refuse: the message names the right that is missing.
        if not may_write and not may_spend:
            part.tools.update(
                {tool.name: tool.refuse(NO_SPENDING) for tool in part.tools.values() if tool.is_paid}
            )
        return prefix_tools(part, prefix or own_prefix)

    def sessions(self) -> Iterator[tuple[str | None, Session]]:
        """Yield every session with its bridge; None for the view of all bridges."""
        for (bridge, *_), view in self._views.items():
            for session in view.endpoint.sessions:
                yield bridge, session

    def end_session(self, session: Session) -> bool:
        """End a session; return whether a view had it."""
        for view in self._views.values():
            if session in tuple(view.endpoint.sessions):
                view.endpoint.sessions.close(session)
                return True
        return False

    def end_streams(self) -> None:
        """End the open streams, because the server stops."""
        for view in self._views.values():
            view.end_streams()

    def close(self) -> None:
        """End every session."""
        for view in self._views.values():
            view.endpoint.close()
