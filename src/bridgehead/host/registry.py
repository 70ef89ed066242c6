"""Registry: the bridges of this process, and how each of them stands.

A bridge that cannot be made (its settings are wrong) or cannot begin (its lifespan fails) stands still, says
why, and leaves the others alone. One that could not begin is tried again, because a port or a disk may come
free; one with wrong settings waits for whoever fixes them.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Mapping
from typing import Any

from bridgehead.mcp import Bridge, Lifespans
from bridgehead.runtime import logs, plugins
from bridgehead.runtime.errors import BridgeError
from bridgehead.runtime.manifest import FarSide, Manifest, read_settings
from bridgehead.runtime.metrics import Metrics
from bridgehead.runtime.settings import SettingError
from bridgehead.runtime.timing import Backoff

from .metering import Meter
from .tracing import Tracer

AGAIN = Backoff(base=1.0, most=60.0)
_BEGIN_SECONDS = 5.0
"""How long the host waits for its bridges to begin before it takes requests all the same."""

log = logs.logger("host.bridges")


class Standing:
    """One bridge and how it stands."""

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


class Registry:
    """All bridges of this process."""

    def __init__(
        self,
        manifests: Mapping[str, Manifest],
        environment: Mapping[str, str],
        *,
        tracer: Tracer | None = None,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self.lifespans = Lifespans()
        self._draw = draw
        self._keepers: list[asyncio.Task[None]] = []
        self.standings = {
            name: _standing(manifest, environment, tracer) for name, manifest in manifests.items()
        }

    @property
    def bridges(self) -> dict[str, Bridge[Any]]:
        """The bridges that could be made, by name."""
        return {s.name: s.bridge for s in self.standings.values() if s.bridge is not None}

    async def start(self) -> None:
        """Let every bridge begin, and wait a moment for them."""
        loop = asyncio.get_running_loop()
        begun = []
        for name, bridge in self.bridges.items():
            first = loop.create_future()
            begun.append(first)
            self._keepers.append(loop.create_task(self._keep(self.standings[name], bridge, first)))
        if begun:
            await asyncio.wait(begun, timeout=_BEGIN_SECONDS)

    async def _keep(self, standing: Standing, bridge: Bridge[Any], first: asyncio.Future[None]) -> None:
        """Begin a bridge, as often as it takes."""
        attempt = 0
        while True:
            try:
                await self.lifespans[bridge].entered()
                standing.problem = ""
            except Exception as failure:  # noqa: BLE001  (whatever it is, it is this bridge's alone)
                standing.problem = _reason(failure)
            if not first.done():
                first.set_result(None)
            if not standing.problem:
                log.info("a bridge has begun", bridge=standing.name, tries=attempt + 1)
                return
            log.error("a bridge could not begin", bridge=standing.name, problem=standing.problem)
            await asyncio.sleep(AGAIN.delay(attempt, self._draw))
            attempt += 1
            del self.lifespans[bridge]  # a lifespan is entered once; the next one is a new one

    async def stop(self, within: float) -> None:
        """Let every bridge end."""
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*(lifespan.stop(within) for lifespan in self.lifespans.values()))

    def far_side(self, standing: Standing) -> FarSide:
        """Ask a bridge how its far side is."""
        if standing.problem or standing.bridge is None:
            return FarSide(is_there=False, says=standing.problem)
        lifespan = self.lifespans[standing.bridge]
        try:
            return standing.manifest.far_side(lifespan.value if lifespan.ready else None)
        except Exception as failure:  # noqa: BLE001  (a health page never fails for a bridge)
            log.warn("a bridge could not tell of its far side", bridge=standing.name, problem=repr(failure))
            return FarSide(is_there=False, says="The bridge cannot tell; the log says why.")


def installed(names: Collection[str] = ()) -> dict[str, Manifest]:
    """Return the manifest of each bridge that is wanted; the built-in ones where none is named.

    What somebody has installed beside them is opened to a team only where it is named.
    """
    known = plugins.names()
    for name in names:
        if name not in known:
            raise SettingError("BRIDGEHEAD_BRIDGES", name, f"one or more of {', '.join(known)}")
    return {name: plugins.load(name) for name in tuple(names) or plugins.built_in_names()}


def _standing(manifest: Manifest, environment: Mapping[str, str], tracer: Tracer | None) -> Standing:
    metrics, problem = Metrics(), ""
    try:
        bridge: Bridge[Any] | None = manifest.make(read_settings(manifest, environment), metrics)
    except Exception as failure:  # noqa: BLE001  (whatever it is, it is this bridge's alone)
        bridge, problem = None, _reason(failure)
    if bridge is None:
        log.error("a bridge cannot be served", bridge=manifest.name, problem=problem)
        return Standing(manifest, None, metrics, problem)
    Meter(metrics, tracer).watch(bridge)
    return Standing(manifest, bridge, metrics)


def _reason(failure: Exception) -> str:
    """Word a failure for whoever asks; what is not meant for them stays in the log."""
    if isinstance(failure, BridgeError):
        return str(failure)
    if isinstance(failure, OSError) and failure.strerror:
        return f"The bridge could not begin: {failure.strerror}."
    log.error("unexpected", problem=repr(failure))
    return f"The bridge could not begin ({type(failure).__name__}); the host's log has the details."
