"""TLS: the server's certificate, from the files that the settings name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bridgehead.runtime.settings import SettingError

if TYPE_CHECKING:
    import ssl

    from .settings import HostSettings


def context(settings: HostSettings) -> ssl.SSLContext | None:
    """Make what https is spoken with; None where it is not. Raises SettingError for files that do not fit."""
    if settings.tls_cert is None:
        return None
    import ssl

    found = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    found.minimum_version = ssl.TLSVersion.TLSv1_2
    found.set_alpn_protocols(["http/1.1"])
    try:
        found.load_cert_chain(settings.tls_cert, settings.tls_key)
    except (OSError, ssl.SSLError) as failure:
        wanted = f"a certificate chain (PEM) that goes with its key ({failure.strerror or failure})"
        raise SettingError("BRIDGEHEAD_TLS_CERT", str(settings.tls_cert), wanted) from failure
    return found
