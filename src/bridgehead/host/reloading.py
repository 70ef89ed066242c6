"""Reloading: on SIGHUP, reads the tokens, the certificate and the log settings again.

Other settings need a restart; the log says which have changed. A file that cannot be read changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from bridgehead.runtime import logs
from bridgehead.runtime.env_file import reread
from bridgehead.runtime.errors import BridgeError

from .auth.tokens import Tokens
from .settings import HostSettings
from .telemetry.access_log import AccessLog
from .tls import Certificate

CHANGEABLE = frozenset({"LOG_LEVEL", "MCP_LOG_LEVEL", "LOG_FORMAT", "BRIDGEHEAD_ACCESS_LOG"})

log = logs.logger("host.reload")


class Reloader:
    """Applies changes to a running host."""

    def __init__(
        self,
        settings: HostSettings,
        environment: Mapping[str, str],
        *,
        tokens: Tokens | None,
        certificate: Certificate | None,
        access_log: AccessLog,
    ) -> None:
        self._settings = settings
        self._environment = environment
        self._tokens = tokens
        self._certificate = certificate
        self._access_log = access_log

    def reload(self) -> None:
        """Read everything again and apply what is valid."""
        if self._tokens is not None:
            self._tokens.refresh()
        if self._certificate is not None:
            self._certificate.renew()
        try:
            settings = HostSettings.of(reread(self._environment), **self._settings.options)
        except BridgeError as error:
            log.error("the settings were not reloaded; the old ones stay", problem=str(error))  # noqa: TRY400
            return
        changed = {name for name, value in settings.values.items() if value != self._settings.values[name]}
        fixed = sorted(changed - CHANGEABLE)
        if fixed:
            log.warn("some settings take effect only after a restart", settings=fixed)
        if changed & CHANGEABLE:
            settings.configure_logs()
            self._access_log.set_level(settings.access_log)
        # Also values that need a restart, so that the next reload warns only of newer changes.
        self._settings = settings
        log.info("reloaded")
