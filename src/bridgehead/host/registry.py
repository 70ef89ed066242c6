"""Registry: the bridges of this process, and the status of each.

A bridge that cannot be made (its settings are wrong) or cannot begin (its lifespan fails) does not serve,
says why, and leaves the others alone. One that could not begin is tried again, because a port or a disk may
come free; one with wrong settings waits for whoever fixes them.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

from bridgehead.mcp import Bridge, Lifespans
from bridgehead.runtime import events, logs, plugins
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.manifest import FarSide, Manifest, read_settings
from bridgehead.runtime.metrics import Metrics
from bridgehead.runtime.settings import SettingError
from bridgehead.runtime.timing import Backoff

from .telemetry.audit import StoreAudit, audit_changes
from .telemetry.metrics import CallMetrics, NoteFailure

AGAIN = Backoff(base=1.0, limit=60.0)
_BEGIN_SECONDS = 5.0
"""How long the host waits for its bridges to begin before it takes requests all the same."""
PROBE_LIMIT_SECONDS = 15.0
"""How long a look at a far side may take."""
_LOOK_SECONDS = 5.0
"""How often a far side is looked at that its bridge knows without asking."""
_JITTER = 0.2

log = logs.logger("host.bridges")


class BridgeStatus:
    """One bridge, and whether it can serve."""

    def __init__(
        self, manifest: Manifest, bridge: Bridge[Any] | None, metrics: Metrics, problem: str = ""
    ) -> None:
        self.name = manifest.name
        self.manifest = manifest
        self.bridge = bridge
        """None where it could not be made."""
        self.metrics = metrics
        self.problem = problem
        """Why it does not serve; nothing where it does."""
        self.probe_problem = ""
        """Why the far side could not be looked at; nothing where it could."""


class Registry:
    """All bridges of this process."""

    def __init__(
        self,
        manifests: Mapping[str, Manifest],
        environment: Mapping[str, str],
        *,
        is_traced: bool = False,
        store_audit: StoreAudit | None = None,
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
            counted = self.statuses[name].metrics
            audit = audit_changes(name, bridge, store_audit)
            calls = CallMetrics(name, counted, audit, is_traced=is_traced, note_failure=note_failure)
            bridge.around_calls(calls.hook())
        self.metrics = self._make_metrics()

    def _make_metrics(self) -> Metrics:
        metrics, statuses = Metrics(), self.statuses
        metrics.gauge(
            "bridgehead_bridge_up",
            "Whether a bridge can serve.",
            lambda: {(name,): float(not status.problem) for name, status in statuses.items()},
            "bridge",
        )
        metrics.gauge(
            "bridgehead_far_side_up",
            "Whether a bridge's far side is up.",
            lambda: {(name,): float(self.far_side(status).is_up) for name, status in statuses.items()},
            "bridge",
        )
        return metrics

    @property
    def bridges(self) -> dict[str, Bridge[Any]]:
        """The bridges that could be made, by name."""
        return {s.name: s.bridge for s in self.statuses.values() if s.bridge is not None}

    async def start(self) -> None:
        """Start every bridge, and wait a moment for them."""
        loop = asyncio.get_running_loop()
        begun = []
        for name, bridge in self.bridges.items():
            first = loop.create_future()
            begun.append(first)
            self._keepers.append(loop.create_task(self._keep(self.statuses[name], bridge, first)))
        if begun:
            await asyncio.wait(begun, timeout=_BEGIN_SECONDS)

    async def _keep(self, status: BridgeStatus, bridge: Bridge[Any], first: asyncio.Future[None]) -> None:
        """Begin a bridge, as often as it takes."""
        attempt = 0
        while True:
            try:
                await self.lifespans[bridge].wait_until_entered()
                status.problem = ""
            except Exception as failure:  # noqa: BLE001  (whatever it is, it is this bridge's alone)
                status.problem = _reason(failure)
            if not first.done():
                first.set_result(None)
            if not status.problem:
                log.info("a bridge has started", bridge=status.name, tries=attempt + 1)
                await self._watch_far_side(status, bridge)
                return
            log.error("a bridge could not start", bridge=status.name, problem=status.problem)
            await asyncio.sleep(AGAIN.delay(attempt, self._draw))
            attempt += 1
            del self.lifespans[bridge]  # a lifespan is entered once; the next one is a new one

    async def _watch_far_side(self, status: BridgeStatus, bridge: Bridge[Any]) -> None:
        """Look at a far side now and then, so that it is known to be down before somebody needs it."""
        if not self._probe_seconds:
            return
        probe = status.manifest.probe
        every = self._probe_seconds if probe else min(_LOOK_SECONDS, self._probe_seconds)
        pause, was_up = Backoff(base=every, limit=every, jitter=_JITTER), None
        while True:
            if probe is not None:
                status.probe_problem = await _try_probe(status.name, probe(self.lifespans[bridge].value))
            found = self.far_side(status)
            if found.is_up != was_up:
                _tell_change(status.name, found, is_first=was_up is None)
            was_up = found.is_up
            await asyncio.sleep(pause.delay(0, self._draw))

    async def stop(self, within: float) -> None:
        """Let every bridge end."""
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*(lifespan.stop(within) for lifespan in self.lifespans.values()))

    def far_side(self, status: BridgeStatus) -> FarSide:
        """Ask a bridge how its far side is."""
        if status.problem or status.bridge is None:
            return FarSide(is_up=False, detail=status.problem)
        lifespan = self.lifespans[status.bridge]
        if status.probe_problem:
            return FarSide(is_up=False, detail=status.probe_problem)
        try:
            return status.manifest.far_side(lifespan.value if lifespan.ready else None)
        except Exception as failure:  # noqa: BLE001  (a health page never fails for a bridge)
            log.warn("a bridge could not report on its far side", bridge=status.name, problem=repr(failure))
            return FarSide(is_up=False, detail="The state of the far side is unknown: see the log.")


async def _try_probe(name: str, probing: Awaitable[None]) -> str:
    """Let a bridge look at its far side; returns why it could not."""
    try:
        async with asyncio.timeout(PROBE_LIMIT_SECONDS):
            await probing
    except TimeoutError:
        return f"The far side did not answer within {PROBE_LIMIT_SECONDS:g} s."
    except Exception as failure:  # noqa: BLE001  (a look at a far side ends nothing)
        log.warn("a bridge could not check its far side", bridge=name, problem=repr(failure))
        return "The state of the far side is unknown: see the log."
    return ""


def _tell_change(name: str, found: FarSide, *, is_first: bool) -> None:
    """Say that a far side has gone or has come, but not that it is there from the start."""
    if found.is_up and is_first:
        return
    event = "far_side.returned" if found.is_up else "far_side.lost"
    log_line = log.info if found.is_up else log.warn
    log_line("the far side is up" if found.is_up else "the far side is down", bridge=name, says=found.detail)
    events.publish(event, bridge=name, says=found.detail)


def installed(names: Collection[str] = ()) -> dict[str, Manifest]:
    """Return the manifest of each bridge that is wanted; the built-in ones where none is named.

    What somebody has installed beside them is opened to a team only where it is named.
    """
    known = plugins.names()
    for name in names:
        if name not in known:
            raise SettingError("BRIDGEHEAD_BRIDGES", name, f"one or more of {', '.join(known)}")
    return {name: plugins.load(name) for name in tuple(names) or plugins.built_in_names()}


def _make_status(manifest: Manifest, environment: Mapping[str, str]) -> BridgeStatus:
    metrics, problem = Metrics(), ""
    try:
        bridge: Bridge[Any] | None = manifest.make(read_settings(manifest, environment), metrics)
    except Exception as failure:  # noqa: BLE001  (whatever it is, it is this bridge's alone)
        bridge, problem = None, _reason(failure)
    if bridge is None:
        log.error("a bridge cannot be served", bridge=manifest.name, problem=problem)
    return BridgeStatus(manifest, bridge, metrics, problem)


def _reason(failure: Exception) -> str:
    """Word a failure for whoever asks; what is not meant for them stays in the log."""
    if isinstance(failure, BridgeError):
        return str(failure)
    if isinstance(failure, OSError) and failure.strerror:
        return f"The bridge could not start: {failure.strerror}."
    log.error("unexpected", problem=repr(failure))
    return f"The bridge could not start ({type(failure).__name__}); the host's log has the details."
