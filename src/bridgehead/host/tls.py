"""TLS: the server's certificate, from the files that the settings name, renewed when they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bridgehead.runtime import logs
from bridgehead.runtime.settings import SettingError

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

    from .settings import HostSettings

log = logs.logger("host.tls")


class Certificate:
    """A certificate with its key."""

    def __init__(self, chain: Path, key: Path | None) -> None:
        import ssl

        self._chain = chain
        self._key = key
        self.context: ssl.SSLContext = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        """What https is spoken with."""
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.context.set_alpn_protocols(["http/1.1"])
        self._seen = self._signature()
        self.context.load_cert_chain(chain, key)

    def renew(self) -> None:
        """Take a newer certificate for connections to come, if there is one; a bad one leaves the old."""
        try:
            seen = self._signature()
            if seen == self._seen:
                return
            self.context.load_cert_chain(self._chain, self._key)
        except OSError as failure:  # which an error of ssl is too
            log.warn("the new certificate cannot be used", problem=failure.strerror or str(failure))
            return
        self._seen = seen
        log.info("the certificate was renewed")

    def _signature(self) -> list[tuple[int, int]]:
        found = [path.stat() for path in (self._chain, self._key) if path is not None]
        return [(one.st_ino, one.st_mtime_ns) for one in found]


def certificate(settings: HostSettings) -> Certificate | None:
    """Read the certificate; None where there is none. Raises SettingError for files that do not fit."""
    if settings.tls_cert is None:
        return None
    try:
        return Certificate(settings.tls_cert, settings.tls_key)
    except OSError as failure:  # which an error of ssl is too
        wanted = f"a certificate chain (PEM) that goes with its key ({failure.strerror or failure})"
        raise SettingError("BRIDGEHEAD_TLS_CERT", str(settings.tls_cert), wanted) from failure
