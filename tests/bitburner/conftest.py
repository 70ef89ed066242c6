"""Fixtures of the bitburner bridge's tests."""

from collections.abc import AsyncIterator, Iterator
from copy import copy
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from bridgehead.bitburner.netscript import search
from tests.bitburner.playing import FILES, GENERATIONS, Play, played
from tests.support.game import Game


@pytest.fixture(params=GENERATIONS)
def generation(request: pytest.FixtureRequest) -> int:
    """Each generation of the game."""
    number: int = request.param
    return number


@pytest.fixture(scope="package", autouse=True)
def _indexed_once() -> Iterator[None]:
    """Index equal definitions once: it takes a tenth of a second, and nearly every test needs the same."""
    make = cache(search.Index)
    with pytest.MonkeyPatch.context() as patched:
        # A copy, because an index knows since when its game is away.
        patched.setattr(search, "Index", lambda text: copy(make(text)))
        yield


@pytest.fixture
async def play(tmp_path: Path, generation: int) -> AsyncIterator[Play]:
    """A bridge with a game, of each generation."""
    async with played(tmp_path, game=Game(generation, FILES)) as one:
        yield one


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for localhost with its key in one file, good for an hour."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = tmp_path_factory.mktemp("certificate") / "both.pem"
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path
