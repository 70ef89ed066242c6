"""TLS: the server's certificate, read from files and renewed without a restart.

A certificate and its key are two files, written one after the other. Therefore a new pair is loaded into a
context of its own and used only if certificate and key match; until then the old pair is served.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from bridgehead.runtime import logs
from bridgehead.runtime.settings import SettingError

from .settings import HostSettings

if TYPE_CHECKING:
    import ssl


log = logs.logger("host.tls")

_VERSION_TAG, _UTC_TIME_TAG = 0xA0, 0x17
_LONG_FORM = 0x80
"""Bit of a DER length byte: the lower bits then count the bytes of the length that follow."""


class Certificate:
    """A certificate chain with its key; `context` always serves the newest valid pair."""

    def __init__(self, chain: Path, key: Path | None) -> None:
        self._chain = chain
        self._key = key
        self._seen = self._signature()
        self._current = self._load()
        self.context = self._load()
        """The context of the listener, which cannot be replaced while it listens."""
        # OpenSSL calls this in every handshake, also if the client sends no server name. There a
        # connection can still change its context, so a renewed pair needs no new listener.
        self.context.sni_callback = self._use_current

    def renew(self) -> bool:
        """Use the files for new connections if they have changed and match; return whether they are used."""
        try:
            seen = self._signature()
            if seen == self._seen:
                return False
            self._current = self._load()
        except OSError as failure:  # includes ssl.SSLError, such as a key that does not match
            log.warn("the new certificate cannot be used", problem=failure.strerror or str(failure))
            return False
        self._seen = seen
        log.info("the certificate was renewed", expires=self.expires)
        return True

    @property
    def expires(self) -> float:
        """When the certificate in the file expires, in seconds since 1970; 0 if that cannot be read."""
        import ssl

        try:
            text = self._chain.read_text(encoding="ascii", errors="replace")
            begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
            # The first of a chain is the server's own; the others are of its authorities.
            first = begin + text.partition(begin)[2].partition(end)[0] + end
            return _read_expiry(ssl.PEM_cert_to_DER_cert(first))
        except (OSError, ValueError, IndexError):
            return 0.0

    def _load(self) -> ssl.SSLContext:
        import ssl

        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])  # the server speaks no HTTP/2
        context.load_cert_chain(self._chain, self._key)
        return context

    def _use_current(self, connection: ssl.SSLObject, _name: str, _context: ssl.SSLContext) -> None:
        connection.context = self._current

    def _signature(self) -> list[tuple[int, int]]:
        """Return a value that differs after a renewal, whether it replaces the files or writes into them."""
        stats = [path.stat() for path in (self._chain, self._key) if path is not None]
        return [(stat.st_ino, stat.st_mtime_ns) for stat in stats]


def certificate(settings: HostSettings) -> Certificate | None:
    """Read the certificate; None if none is configured. Raises SettingError if it does not match its key."""
    if settings.tls_cert is None:
        return None
    try:
        return Certificate(settings.tls_cert, settings.tls_key)
    except OSError as failure:  # includes ssl.SSLError
        expected = f"a certificate chain (PEM) that goes with its key ({failure.strerror or failure})"
        raise SettingError("BRIDGEHEAD_TLS_CERT", str(settings.tls_cert), expected) from failure


# --- the expiry date in a certificate (X.509, DER) ------------------------------------------------------


def _read_expiry(der: bytes) -> float:
    """Read the end of the validity: the standard library shows it only for a peer's certificate."""
    # RFC 5280, section 4.1: Certificate ::= SEQUENCE { tbsCertificate SEQUENCE { version [0] OPTIONAL,
    # serialNumber, signature, issuer, validity SEQUENCE { notBefore, notAfter }, ... } ... }
    fields = _split_der(_split_der(_split_der(der)[0][1])[0][1])
    validity = fields[4 if fields[0][0] == _VERSION_TAG else 3]
    tag, text = _split_der(validity[1])[1]
    # UTCTime has a year of two digits, GeneralizedTime (from 2050 on) one of four.
    form = "%y%m%d%H%M%SZ" if tag == _UTC_TIME_TAG else "%Y%m%d%H%M%SZ"
    return datetime.strptime(text.decode("ascii"), form).replace(tzinfo=UTC).timestamp()


def _split_der(data: bytes) -> list[tuple[int, bytes]]:
    """Return the tag and content of each top-level element."""
    elements, at = [], 0
    while at < len(data):
        tag, length, at = data[at], data[at + 1], at + 2
        if length & _LONG_FORM:
            size = length & ~_LONG_FORM
            length, at = int.from_bytes(data[at : at + size], "big"), at + size
        elements.append((tag, data[at : at + length]))
        at += length
    return elements
