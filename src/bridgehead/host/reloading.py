"""Reloading: what a running host reads again on SIGHUP, without ending anything.

Tokens, the certificate, and of the settings those that nothing has been built on: how much is logged and how.
Everything is read before it is used: a file that cannot be read changes nothing, and the log says so.
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
    """Takes over what has changed."""

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
        """Read everything again, and use what is good."""
        if self._tokens is not None:
            self._tokens.refresh()
        if self._certificate is not None:
            self._certificate.renew()
        problem = self._read_settings()
        if problem:
            log.error("the settings were not reloaded; the old ones stay", problem=problem)
        else:
            log.info("reloaded")

    def _read_settings(self) -> str:
        """Read the settings again; gives what is wrong with them."""
        try:
            self._take(HostSettings.of(reread(self._environment), **self._settings.options))
        except BridgeError as error:
            return str(error)
        return ""

    def _take(self, found: HostSettings) -> None:
        changed = {name for name, value in found.values.items() if value != self._settings.values[name]}
        fixed = sorted(changed - CHANGEABLE)
        if fixed:
            log.warn("some settings take effect only after a restart", settings=fixed)
        if changed & CHANGEABLE:
            found.configure_logs()
            self._access_log.set_level(found.access_log)
        self._settings = found
