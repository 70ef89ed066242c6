"""Metering: counts and times every tool call of a bridge, wherever the tool is offered.

Wraps the handlers of the tools in place, once, before the bridge is served; so what is measured is the tool's
own work, and a plain function stays one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from time import perf_counter
from types import CoroutineType
from typing import Any

from bridgehead.mcp import Bridge, CallResult, InputRequired
from bridgehead.runtime.metrics import Metrics

from .tracing import Call, Tracer

Handler = Callable[[Any, Any], Any]


class Meter:
    """The figures of one bridge's tool calls."""

    def __init__(self, metrics: Metrics, tracer: Tracer | None) -> None:
        self.in_flight = 0
        self._tracer = tracer
        self._calls = metrics.counter(
            "bridgehead_tool_calls_total", "Tool calls that are over, by how they ended.", "tool", "outcome"
        )
        self._seconds = metrics.histogram("bridgehead_tool_seconds", "How long a tool call took.", "tool")
        metrics.gauge(
            "bridgehead_tool_calls_in_flight",
            "Tool calls being served that take waiting.",
            lambda: {(): float(self.in_flight)},
        )

    def watch(self, bridge: Bridge[Any]) -> None:
        """Count the calls of every tool of a bridge from now on."""
        for tool in bridge.tools.values():
            call = Call(bridge.info.name, tool.name)
            tool.handler = (self._waiting if tool.is_async else self._plain)(call, tool.handler)

    def _plain(self, call: Call, handler: Handler) -> Handler:
        @wraps(handler)
        def metered(arguments: Any, ctx: Any) -> Any:
            started = perf_counter()
            try:
                returned = handler(arguments, ctx)
            except (Exception, InputRequired) as failure:
                self._over(call, _outcome_of(failure), perf_counter() - started, ctx)
                raise
            if isinstance(returned, CoroutineType):
                return self._later(call, returned, ctx)
            self._over(call, _outcome(returned), perf_counter() - started, ctx)
            return returned

        return metered

    def _waiting(self, call: Call, handler: Handler) -> Handler:
        @wraps(handler)
        async def metered(arguments: Any, ctx: Any) -> Any:
            return await self._later(call, handler(arguments, ctx), ctx)

        return metered

    async def _later(self, call: Call, work: CoroutineType[Any, Any, Any], ctx: Any) -> Any:
        started = perf_counter()
        self.in_flight += 1
        outcome = "cancelled"
        try:
            returned = await work
            outcome = _outcome(returned)
        except (Exception, InputRequired) as failure:
            outcome = _outcome_of(failure)
            raise
        finally:
            self.in_flight -= 1
            self._over(call, outcome, perf_counter() - started, ctx)
        return returned

    def _over(self, call: Call, outcome: str, seconds: float, ctx: Any) -> None:
        self._calls.add(call.tool, outcome)
        self._seconds.observe(seconds, call.tool)
        if self._tracer is not None:
            self._tracer.called(call, outcome, seconds, ctx)


def _outcome(returned: Any) -> str:
    return "error" if isinstance(returned, CallResult) and returned.is_error else "ok"


def _outcome_of(failure: BaseException) -> str:
    return "asked" if isinstance(failure, InputRequired) else "error"
