"""TLS: https with a certificate from files, renewed while it is served; who fails at it is logged."""

import asyncio
import socket
import ssl
from pathlib import Path

from bridgehead.host import tls
from bridgehead.host.settings import HostSettings
from tests.support.certificates import certificate
from tests.support.host_command import PATIENCE, serving


async def test_https_is_spoken_with_a_certificate(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    with serving(tmp_path, "--tls-cert", str(cert), "--tls-key", str(key)) as host:
        trusting = ssl.create_default_context(cafile=str(cert))
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", host.port, ssl=trusting, server_hostname="localhost"
        )
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer = await asyncio.wait_for(reader.read(), PATIENCE)
        writer.close()

    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert answer.endswith(b'{"status":"ok"}')


async def test_a_new_certificate_is_taken_and_a_bad_one_is_not(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    settings = HostSettings({"BRIDGEHEAD_TLS_CERT": str(cert), "BRIDGEHEAD_TLS_KEY": str(key)})
    served = tls.certificate(settings)
    assert served is not None

    async def shown() -> bytes:
        async with await asyncio.start_server(
            lambda _, w: w.close(), "127.0.0.1", 0, ssl=served.context
        ) as server:
            port = server.sockets[0].getsockname()[1]
            return ssl.PEM_cert_to_DER_cert(
                await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", port))
            )

    first = await shown()
    served.renew()
    certificate(tmp_path)
    assert await shown() == first
    served.renew()
    second = await shown()
    cert.write_text("nothing")
    served.renew()

    assert second != first
    assert await shown() == second


def test_who_speaks_no_tls_is_refused_and_logged(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    with serving(tmp_path, "--tls-cert", str(cert), "--tls-key", str(key)) as host:
        with socket.create_connection(("127.0.0.1", host.port), timeout=PATIENCE) as plain:
            plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert not plain.recv(1000).startswith(b"HTTP")
        line = host.wait_for("connection rejected")

    assert (line["reason"], line["client"]) == ("tls", "127.0.0.1")
