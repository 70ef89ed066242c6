"""ASGI factory: the host as an ASGI application, for those who run another server.

    uvicorn --factory bridgehead.host.asgi:create_app
    granian --interface asgi --factory bridgehead.host.asgi:create_app

The settings are those of `bridgehead serve`, from the environment. What the server itself does (where it
listens, TLS, how many connections it takes, how many processes there are) is that server's to be told. A
session lives in the process that opened it, so run one process, or route by `Mcp-Session-Id`.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Collection, Mapping

from bridgehead.mcp.http.asgi import AsgiApplication, asgi
from bridgehead.runtime.manifest import Manifest
from bridgehead.runtime.timing import SystemClock

from .factory import ApplicationFactory
from .registry import installed
from .replicas.replica import open_replica
from .settings import HostSettings
from .telemetry.exporting import open_telemetry


def create_app(
    environment: Mapping[str, str] | None = None,
    manifests: Callable[[Collection[str]], Mapping[str, Manifest]] = installed,
) -> AsgiApplication:
    """Make the application; raises BridgeError where the settings do not let it serve."""
    env = os.environ if environment is None else environment
    settings = HostSettings(env)
    settings.configure_logs()
    telemetry = open_telemetry(env)
    if telemetry is not None:
        atexit.register(telemetry.close)  # the server says when it stops, and not that nothing comes after
    app = ApplicationFactory(
        settings,
        manifests(settings.bridges),
        env,
        SystemClock(),
        state_keys=settings.derive_keys("request state"),
        telemetry=telemetry,
        replica=open_replica(settings),
    ).make()
    return asgi(app)
