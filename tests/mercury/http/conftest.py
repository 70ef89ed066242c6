"""For tests of HTTP towards the API: a peer that speaks HTTP/2 over TLS and whose certificate is trusted."""

import ssl
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from tests.mercury.http.asking import Peer
from tests.support.http2_peer import Http2Peer, ServeStream, http2_peer
from tests.support.tcp import certified


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, Path]:
    return certified(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def certificate(tls: tuple[ssl.SSLContext, Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The certificate of the peer, which clients in this process trust meanwhile."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tls[1]))
    return tls[1]


@pytest.fixture
def peer(tls: tuple[ssl.SSLContext, Path], certificate: Path) -> Peer:
    """Run a server around a function."""

    def one(serve: ServeStream, most_streams: int | None = None) -> AbstractAsyncContextManager[Http2Peer]:
        return http2_peer(serve, tls[0], most_streams=most_streams)

    return one
