"""An authorisation server on loopback: publishes its metadata and keys, and signs what a test wants."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import cycle
from pathlib import Path
from typing import Any, TypeVar

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from tests.support.clock import Clock
from tests.support.fake_api import Answer, Request, fake_api
from tests.support.host_server import Host, hosting

AUDIENCE = "https://team.example/mcp"


def _make_rsa_keys() -> Iterator[rsa.RSAPrivateKey]:
    """Make eight keys, more than any test has, then give those again: each takes 0.1 s of CPU time."""
    made = []
    for _ in range(8):
        made.append(rsa.generate_private_key(public_exponent=65537, key_size=2048))
        yield made[-1]
    yield from cycle(made)


_rsa_keys = _make_rsa_keys()


class Authority:
    """One authorisation server, which can be away."""

    def __init__(self) -> None:
        self.port = 0
        self.asked: list[str] = []
        self.is_there = True
        self.hangs = False
        self.names_algorithms = True
        """Whether its keys say what they sign with."""
        self.metadata_path = "/.well-known/oauth-authorization-server/realm"
        self._keys: dict[str, Any] = {}
        self.add_key("first")

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}/realm"

    def add_key(self, name: str, kind: str = "rsa") -> None:
        """Have a further key."""
        self._keys[name] = next(_rsa_keys) if kind == "rsa" else ec.generate_private_key(ec.SECP256R1())

    def forget_key(self, name: str) -> Any:
        """No longer publish a key, and return it."""
        return self._keys.pop(name)

    def token(
        self,
        *,
        key: str = "first",
        signer: Any = None,
        algorithm: str | None = None,
        header: dict[str, Any] | None = None,
        **claims: Any,
    ) -> str:
        """Sign a token; claims of None are left out."""
        private = signer or self._keys[key]
        full = {
            "iss": self.issuer,
            "aud": AUDIENCE,
            "sub": "alice",
            "exp": time.time() + 600,
            "scope": "bridgehead",
            **claims,
        }
        default = "RS256" if isinstance(private, rsa.RSAPrivateKey) else "ES256"
        return jwt.encode(
            {name: value for name, value in full.items() if value is not None},
            private,
            algorithm or default,
            {"kid": key} if header is None else header,
        )

    def sign(self, claims: bytes, header: dict[str, Any] | None = None) -> str:
        """Sign claims that are no object that a library would make."""
        return jwt.PyJWS().encode(claims, self._keys["first"], "RS256", {"kid": "first", **(header or {})})

    def metadata(self) -> dict[str, Any]:
        """What it publishes of itself."""
        return {"issuer": self.issuer, "jwks_uri": f"{self.issuer}/keys"}

    def respond(self, request: Request) -> Answer:
        """Answer with a document."""
        if request.path == self.metadata_path:
            return Answer(200, msgspec.json.encode(self.metadata()))
        if request.path == "/realm/keys":
            return Answer(200, msgspec.json.encode({"keys": [self._public(name) for name in self._keys]}))
        return Answer(404)

    def _public(self, name: str) -> dict[str, Any]:
        public = self._keys[name].public_key()
        is_rsa = isinstance(public, rsa.RSAPublicKey)
        algorithm = jwt.algorithms.RSAAlgorithm if is_rsa else jwt.algorithms.ECAlgorithm
        made: dict[str, Any] = algorithm.to_jwk(public, as_dict=True)
        algorithm_name = {"alg": "RS256" if is_rsa else "ES256"} if self.names_algorithms else {}
        return {**made, "kid": name, "use": "sig", **algorithm_name}

    async def _answer(self, request: Request) -> Answer:
        self.asked.append(request.path)
        while self.hangs:
            await asyncio.sleep(0.01)
        return self.respond(request) if self.is_there else Answer(404)


Kind = TypeVar("Kind", bound=Authority)


@asynccontextmanager
async def running(one: Kind) -> AsyncIterator[Kind]:
    """Run an authorisation server."""
    async with fake_api(one._answer) as api:  # noqa: SLF001 - its own
        one.port = api.port
        yield one


def authority() -> AbstractAsyncContextManager[Authority]:
    """Run an authorisation server that only signs."""
    return running(Authority())


@asynccontextmanager
async def guarded(
    folder: Path, clock: Clock | None = None, **settings: str
) -> AsyncIterator[tuple[Host, Authority]]:
    async with authority() as one:
        environment = {
            "BRIDGEHEAD_OAUTH_ISSUER": one.issuer,
            "BRIDGEHEAD_OAUTH_AUDIENCE": AUDIENCE,
            **settings,
        }
        async with hosting(folder, environment, clock=clock or Clock(time.time(), runs=True)) as host:
            yield host, one
