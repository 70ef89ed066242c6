"""TLS for the far sides of these tests."""

import ssl
from pathlib import Path

import pytest

from tests.support.tcp import certified


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, Path]:
    return certified(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def certificate(tls: tuple[ssl.SSLContext, Path], monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """TLS for a server called localhost, which clients in this process trust meanwhile."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tls[1]))
    return tls[0]
