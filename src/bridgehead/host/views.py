"""Views: what of the bridges one caller sees, as an application of its own.

One bridge or all of them, with all tools or only those that read. Callers who may use the same see the same
view; what is in no view of a caller does not exist for it. All views run on the same lifespans: one
connection to each far side, however many views there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from bridgehead import __version__
from bridgehead.mcp import Bridge, Dispatcher, Limits, Tasks, combine, restrict
from bridgehead.mcp.http import Application
from bridgehead.mcp.http.callers import Callers
from bridgehead.mcp.http.guard import Guard
from bridgehead.mcp.http.sessions import Session
from bridgehead.runtime.tool_filter import ToolFilter

from .auth.grants import Grant
from .registry import Registry
from .telemetry.tracing import TracedDispatcher, Tracer

NAME = "bridgehead"
Key = tuple[str | None, tuple[tuple[str, bool], ...], bool]
"""Which bridge, or all; which parts, each with whether it may be written to; whether money may be spent."""
NO_SPENDING = (
    "This token is read-only and may not call tools that cost money. "
    "Ask who runs the server for one with --may-spend."
)


class Views:
    """The views that have been asked for so far."""

    def __init__(
        self,
        registry: Registry,
        offering: ToolFilter,
        guard: Guard,
        limits: Limits,
        tasks: Tasks,
        *,
        state_keys: tuple[bytes, ...],
        session_prefix: str = "",
        tracer: Tracer | None = None,
        used_states: Any = None,
        on_error: Callable[[str, int], None] | None = None,
    ) -> None:
        self._registry = registry
        self._offering = offering
        self._guard = guard
        self._limits = limits
        self.tasks = tasks
        """The tasks of all views, each known only in its own."""
        self._state_keys = state_keys
        self._session_prefix = session_prefix
        self._tracer = tracer
        self._used_states = used_states
        """Remembers which confirmations were used, for all views: another one must not take them again."""
        self._on_error = on_error
        self._views: dict[Key, Application] = {}
        self.callers = Callers(limits)
        """What each caller has open, over all views."""
        self._by_grant: dict[tuple[str | None, frozenset[str], frozenset[str], bool], Application] = {}

    def find(self, bridge: str | None, grant: Grant) -> Application:
        """Return the view of one bridge, or of all, that a grant opens."""
        asked = (bridge, grant.full, grant.reading, grant.may_spend)
        found = self._by_grant.get(asked)
        if found is None:
            found = self._by_grant[asked] = self._open(bridge, grant)
        return found

    def _open(self, bridge: str | None, grant: Grant) -> Application:
        names = self._registry.bridges if bridge is None else (bridge,)
        open_ = tuple((name, grant.may_write(name)) for name in names if grant.may_read(name))
        key = (bridge, open_, grant.may_spend)
        if key not in self._views:
            self._views[key] = self._make(key)
        return self._views[key]

    def _make(self, key: Key) -> Application:
        bridge, open_, may_spend = key
        parts = [self._part(name, may_write=may_write, may_spend=may_spend) for name, may_write in open_]
        whole = parts[0] if bridge else combine(NAME, __version__, parts, title="Bridgehead")
        dispatcher = self._make_dispatcher(whole, repr(key))
        return Application(
            dispatcher,
            self._guard,
            prefix=f"/{bridge}" if bridge else "",
            session_prefix=self._session_prefix,
            callers=self.callers,
        )

    def _make_dispatcher(self, whole: Bridge[Any], scope: str) -> Dispatcher:
        kind = Dispatcher if self._tracer is None else TracedDispatcher
        dispatcher = kind(
            whole,
            limits=self._limits,
            state_key=self._state_keys,
            lifespans=self._registry.lifespans,
            on_error=self._on_error,
            tasks=self.tasks,
            scope=scope,  # the same in every process; who may use less than before sees another view
        )
        dispatcher.multi_round.used_states = self._used_states
        if isinstance(dispatcher, TracedDispatcher) and self._tracer is not None:
            dispatcher.tracer = self._tracer
        return dispatcher

    def _part(self, name: str, *, may_write: bool, may_spend: bool) -> Bridge[Any]:
        bridge, rule = self._registry.bridges[name], self._offering
        if not may_write:
            rule = ToolFilter(read_only=True, allow=rule.allow, deny=rule.deny)
        part = bridge if rule.is_everything else restrict(bridge, rule)
        if not may_write and not may_spend:
            part.tools.update(
                {tool.name: tool.refuse(NO_SPENDING) for tool in part.tools.values() if tool.is_paid}
            )
        return part

    def sessions(self) -> Iterator[tuple[str | None, Session]]:
        """Give every session, each with the bridge that it is of; None is all of them."""
        for (bridge, *_), view in self._views.items():
            for session in view.endpoint.sessions:
                yield bridge, session

    def end_session(self, session: Session) -> bool:
        """End a session of one of the views; tells whether there was one."""
        for view in self._views.values():
            if session in tuple(view.endpoint.sessions):
                view.endpoint.sessions.close(session)
                return True
        return False

    def end_streams(self) -> None:
        """End what would never end by itself, because the server is going."""
        for view in self._views.values():
            view.end_streams()

    def close(self) -> None:
        """End every session."""
        for view in self._views.values():
            view.endpoint.close()
