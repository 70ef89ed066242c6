"""TLS: the server's certificate, from the files that the settings name, renewed when they are.

A certificate and its key are two files, and whoever renews them writes one before the other. So a new pair is
loaded into a context of its own, and used only where the two fit; until then the old pair is served on.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bridgehead.runtime import logs
from bridgehead.runtime.settings import SettingError

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

    from .settings import HostSettings

log = logs.logger("host.tls")

_SEQUENCE, _VERSION, _UTC_TIME = 0x30, 0xA0, 0x17
_LONG_FORM = 0x80


class Certificate:
    """A certificate with its key."""

    def __init__(self, chain: Path, key: Path | None) -> None:
        self._chain = chain
        self._key = key
        self._seen = self._signature()
        self._current = self._load()
        self.context = self._load()
        """What a listener is given; every handshake takes the pair that is current."""
        self.context.sni_callback = self._choose

    def renew(self) -> bool:
        """Take a newer pair for connections to come, if there is one; tells whether it was taken."""
        try:
            seen = self._signature()
            if seen == self._seen:
                return False
            self._current = self._load()
        except OSError as failure:  # which an error of ssl is too
            log.warn("the new certificate cannot be used", problem=failure.strerror or str(failure))
            return False
        self._seen = seen
        log.info("the certificate was renewed", expires=self.expires)
        return True

    @property
    def expires(self) -> float:
        """When the certificate in the file ends, in seconds since 1970; 0 where that cannot be read."""
        import ssl

        try:
            text = self._chain.read_text(encoding="ascii", errors="replace")
            begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
            first = begin + text.partition(begin)[2].partition(end)[0] + end
            return _read_expiry(ssl.PEM_cert_to_DER_cert(first))
        except (OSError, ValueError, IndexError):
            return 0.0

    def _load(self) -> ssl.SSLContext:
        import ssl

        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        context.load_cert_chain(self._chain, self._key)
        return context

    def _choose(self, connection: ssl.SSLObject, _name: str, _context: ssl.SSLContext) -> None:
        connection.context = self._current

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


# --- the date in a certificate (X.509, DER) -------------------------------------------------------------


def _read_expiry(der: bytes) -> float:
    """Read the end of the validity: the standard library shows it only of a peer's certificate."""
    fields = _split(_split(_split(der)[0][1])[0][1])
    validity = fields[4 if fields[0][0] == _VERSION else 3]
    kind, text = _split(validity[1])[1]
    form = "%y%m%d%H%M%SZ" if kind == _UTC_TIME else "%Y%m%d%H%M%SZ"
    return datetime.strptime(text.decode("ascii"), form).replace(tzinfo=UTC).timestamp()


def _split(data: bytes) -> list[tuple[int, bytes]]:
    """Split DER into the tag and the content of each element at its top."""
    found, at = [], 0
    while at < len(data):
        tag, length, at = data[at], data[at + 1], at + 2
        if length & _LONG_FORM:
            size = length & ~_LONG_FORM
            length, at = int.from_bytes(data[at : at + size], "big"), at + size
        found.append((tag, data[at : at + length]))
        at += length
    return found
