"""Registry: the bridges of this process, and the status of each.

A bridge whose settings are wrong or whose lifespan fails does not serve and reports why; the others do. A
lifespan that failed is retried, because a port or a disk may come free; wrong settings need a restart.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from bridgehead.mcp import Bridge, Lifespans, current_worker
from bridgehead.runtime import bridge_files, events, logs, plugins
from bridgehead.runtime.errors import BridgeError, StorageError
from bridgehead.runtime.manifest import FarSide, Manifest, read_settings
from bridgehead.runtime.metrics import Metrics
from bridgehead.runtime.settings import SettingError, Settings
from bridgehead.runtime.timing import Backoff
from bridgehead.runtime.tool_filter import add_prefix, prefix_of

from .telemetry.metrics import CallMetrics, NoteCall, NoteFailure

RETRY_BACKOFF = Backoff(base=1.0, limit=60.0)
_BEGIN_SECONDS = 5.0
"""How long the host waits for its bridges to start before it accepts requests anyway."""
PROBE_LIMIT_SECONDS = 15.0
"""Longest probe of a far side."""
_READ_SECONDS = 5.0
"""How often the state of a far side is read if its bridge knows it without a probe."""
_JITTER = 0.2
HARM = (Exception, SystemExit, GeneratorExit, BaseExceptionGroup)
"""What code of a bridge may raise: its failure is its own."""

log = logs.logger("host.bridges")


class BridgeStatus:
    """One bridge, and whether it can serve."""

    def __init__(
        self,
        manifest: Manifest,
        bridge: Bridge[Any] | None,
        metrics: Metrics,
        problem: str = "",
        tool_prefix: str = "",
    ) -> None:
        self.name = manifest.name
        self.manifest = manifest
        self.bridge = bridge
        """None if its settings are wrong."""
        self.metrics = metrics
        self.problem = problem
        """Why it does not serve; empty if it does."""
        self.tool_prefix = tool_prefix
        """The prefix of its tools; the names in `bridge` do not have it."""
        self.probe_problem = ""
        """Why the last probe failed; empty if it did not."""


class Registry:
    """All bridges of this process."""

    def __init__(
        self,
        manifests: Mapping[str, Manifest],
        environment: Mapping[str, str],
        *,
        is_traced: bool = False,
        note_call: NoteCall | None = None,
        note_failure: NoteFailure | None = None,
        probe_seconds: float = 0.0,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self.lifespans = Lifespans()
        self._draw = draw
        self._probe_seconds = probe_seconds
        self._keepers: list[asyncio.Task[None]] = []
        self.statuses = {name: _make_status(manifest, environment) for name, manifest in manifests.items()}
        for name, bridge in self.bridges.items():
            calls = CallMetrics(
                name,
                bridge,
                self.statuses[name].metrics,
                is_traced=is_traced,
                note_failure=note_failure,
                note_call=note_call,
            )
            bridge.around_calls(calls.hook())
        self.metrics, statuses = Metrics(), self.statuses
        self.metrics.gauge(
            "bridgehead_bridge_up",
            "Whether a bridge can serve.",
            lambda: {(name,): float(not status.problem) for name, status in statuses.items()},
            "bridge",
        )
        self.metrics.gauge(
            "bridgehead_far_side_up",
            "Whether a bridge is connected to its game, files or API.",
            lambda: {(name,): float(self.far_side(status).is_up) for name, status in statuses.items()},
            "bridge",
        )

    @property
    def bridges(self) -> dict[str, Bridge[Any]]:
        """The bridges that could be made, by name."""
        return {s.name: s.bridge for s in self.statuses.values() if s.bridge is not None}

    async def start(self) -> None:
        """Start every bridge; return once all have tried, or after `_BEGIN_SECONDS`."""
        loop = asyncio.get_running_loop()
        begun = []
        for name, bridge in self.bridges.items():
            first = loop.create_future()
            begun.append(first)
            self._keepers.append(loop.create_task(self._keep(self.statuses[name], bridge, first)))
        if begun:
            await asyncio.wait(begun, timeout=_BEGIN_SECONDS)

    async def _keep(self, status: BridgeStatus, bridge: Bridge[Any], first: asyncio.Future[None]) -> None:
        """Start a bridge, retrying until it has started, then watch its far side."""
        attempt, cause = 0, BaseException()
        current_worker.set((status.name, ""))  # the lifespan's task inherits it
        while True:
            try:
                await self.lifespans[bridge].wait_until_entered()
                status.problem = ""
            except HARM as failure:
                status.problem, cause = _reason(failure), failure
            if not first.done():
                first.set_result(None)
            if not status.problem:
                log.info("a bridge has started", bridge=status.name, tries=attempt + 1)
                await self._watch_far_side(status, bridge)
                return
            log.error("a bridge could not start", bridge=status.name, problem=str(cause) or status.problem)
            await asyncio.sleep(RETRY_BACKOFF.delay(attempt, self._draw))
            attempt += 1
            del self.lifespans[bridge]  # a lifespan is entered once; the next access makes a new one

    async def _watch_far_side(self, status: BridgeStatus, bridge: Bridge[Any]) -> None:
        """Probe a far side regularly, so that an outage is known before a call meets it."""
        if not self._probe_seconds:
            return
        probe = status.manifest.probe
        seconds = self._probe_seconds if probe else min(_READ_SECONDS, self._probe_seconds)
        # With jitter, so that hosts that started together do not all probe at the same moment.
        pause, was_up = Backoff(base=seconds, limit=seconds, jitter=_JITTER), None
        while True:
            if probe is not None:
                status.probe_problem = await _try_probe(status.name, probe, self.lifespans[bridge].value)
            state = self.far_side(status)
            # Announce every change, but not a far side that is up from the start.
            if state.is_up != was_up and not (state.is_up and was_up is None):
                log_line, words = (log.info, "connected") if state.is_up else (log.warn, "not connected")
                log_line(f"a bridge is {words}", bridge=status.name, says=state.detail)
                event = "far_side.returned" if state.is_up else "far_side.lost"
                events.publish(event, bridge=status.name, says=state.detail)
            was_up = state.is_up
            await asyncio.sleep(pause.delay(0, self._draw))

    def refuse(self, name: str, problem: str) -> None:
        """Do not serve a bridge that was made, because of something that it shares with the others."""
        status = self.statuses[name]
        status.bridge, status.problem = None, problem
        log.error("a bridge cannot be served", bridge=name, problem=problem)

    async def stop(self, within: float) -> None:
        """Stop every bridge, waiting at most `within` seconds for each."""
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*(lifespan.stop(within) for lifespan in self.lifespans.values()))

    def far_side(self, status: BridgeStatus) -> FarSide:
        """Return the state of a bridge's far side. Never raises."""
        if status.problem or status.bridge is None:
            return FarSide(is_up=False, detail=status.problem)
        lifespan = self.lifespans[status.bridge]
        if status.probe_problem:
            return FarSide(is_up=False, detail=status.probe_problem)
        try:
            state: object = status.manifest.far_side(lifespan.value if lifespan.ready else None)
        except HARM as failure:  # a health page never fails for a bridge
            state = failure
        if not isinstance(state, FarSide):
            log.warn("a bridge could not report its connection", bridge=status.name, problem=repr(state))
            return FarSide(is_up=False, detail="It is unknown whether the bridge is connected: see the log.")
        return state


async def _try_probe(name: str, probe: Callable[[Any], Awaitable[None]], value: Any) -> str:
    """Run a bridge's probe; return why it failed, or nothing."""
    try:
        async with asyncio.timeout(PROBE_LIMIT_SECONDS):
            await probe(value)
    except TimeoutError:
        return f"No answer to the check within {PROBE_LIMIT_SECONDS:g} s."
    except HARM as failure:  # a failed probe must not end the watch
        log.warn("a bridge could not check its connection", bridge=name, problem=repr(failure))
        return "It is unknown whether the bridge is connected: see the log."
    return ""


def installed(names: Collection[str] = ()) -> dict[str, Manifest]:
    """Return the manifests of bridges by name, file or module; without any, of the built-in ones.

    A third-party bridge is served to a team only if it is named. One that cannot be loaded has a status and
    never serves; if none can be loaded, the first failure is raised.
    """
    manifests: dict[str, Manifest] = {}
    failures: list[BridgeError] = []
    for target in tuple(names) or plugins.built_in_names():
        try:
            manifest = bridge_files.load(target)
        except plugins.UnknownBridge:
            expected = f"one or more of {', '.join(plugins.names())}, or the paths of files"
            raise SettingError("BRIDGEHEAD_BRIDGES", target, expected) from None
        except BridgeError as failure:
            failures.append(failure)
            manifest = _stand_in(target, failure)
        if manifest.name in manifests:
            raise BridgeError(
                f"Two of the bridges to serve are called {manifest.name!r}.",
                next_step="Rename the one in your file, or leave one out.",
            )
        manifests[manifest.name] = manifest
    if len(failures) == len(manifests):
        raise failures[0]
    return manifests


def _stand_in(target: str, failure: BridgeError) -> Manifest:
    """Make the manifest of a bridge that cannot be loaded: it has a name and a status, and never serves."""
    name = re.sub("[^a-z0-9_-]+", "-", Path(target).stem.lower()).strip("-_") or "bridge"

    def make(_settings: Any, _metrics: Metrics | None) -> Bridge[Any]:
        raise failure

    return Manifest(
        name=name,
        title=name,
        summary="",
        description="",
        settings=Settings,
        make=make,
        far_side=lambda _value: FarSide(is_up=False, detail=str(failure)),
    )


def _make_status(manifest: Manifest, environment: Mapping[str, str]) -> BridgeStatus:
    metrics, problem, prefix = Metrics(), "", ""
    bridge: Bridge[Any] | None = None
    cause: object = ""
    try:
        settings = read_settings(manifest, environment)
        prefix = prefix_of(settings)
        made = manifest.make(settings, metrics)
        add_prefix(made, settings, prefix)  # fails early if a prefix is too long
        bridge = made
    except HARM as failure:
        problem, cause = _reason(failure), failure
    if bridge is None:
        log.error("a bridge cannot be served", bridge=manifest.name, problem=str(cause) or problem)
    return BridgeStatus(manifest, bridge, metrics, problem, prefix)


def _reason(failure: BaseException) -> str:
    """Word a failure for callers; unexpected details go only to the log."""
    if isinstance(failure, StorageError) and failure.path:
        return "The bridge could not start: its files cannot be used. The host's log has the details."
    if isinstance(failure, SettingError):
        return failure.without_value
    if isinstance(failure, BridgeError):
        return str(failure)
    if isinstance(failure, OSError) and failure.strerror:
        return f"The bridge could not start: {failure.strerror}."
    log.error("unexpected", problem=repr(failure))
    return f"The bridge could not start ({type(failure).__name__}); the host's log has the details."
