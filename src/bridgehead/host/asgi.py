"""ASGI factory: the host as an ASGI application, to run it under another server.

    uvicorn --factory bridgehead.host.asgi:create_app
    granian --interface asgi --factory bridgehead.host.asgi:create_app

The settings are those of `bridgehead serve`, from the environment. Configure address, TLS, connections and
processes in that server. A session lives in the process that opened it, so run one process, or route by
`Mcp-Session-Id`.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Collection, Mapping

from bridgehead.mcp.http.asgi import AsgiApplication, asgi
from bridgehead.runtime.manifest import Manifest
from bridgehead.runtime.timing import SystemClock

from .factory import ApplicationFactory, limits_of
from .registry import installed
from .replicas.replica import open_replica
from .settings import HostSettings
from .telemetry.exporting import open_telemetry


def create_app(
    environment: Mapping[str, str] | None = None,
    manifests: Callable[[Collection[str]], Mapping[str, Manifest]] = installed,
) -> AsgiApplication:
    """Build the application. Raises BridgeError if it cannot serve with these settings."""
    env = os.environ if environment is None else environment
    settings = HostSettings(env)
    settings.configure_logs()
    telemetry = open_telemetry(env)
    if telemetry is not None:
        # Not at the lifespan's shutdown: the server may still log afterwards, and those lines are exported.
        atexit.register(telemetry.close)
    app = ApplicationFactory(
        settings,
        manifests(settings.bridges),
        env,
        SystemClock(),
        limits=limits_of(settings),
        state_keys=settings.derive_keys("request state"),
        telemetry=telemetry,
        replica=open_replica(settings),
    ).make()
    return asgi(app)
