"""The official clients against the host, at a bridge's own URL, with a token and without."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bridgehead.host.auth.tokens import TokenFile, create_token
from tests.interop import inspector, typescript
from tests.interop.check import Check
from tests.interop.server_process import serving

SERVER = "tests.interop.host_server"


@contextmanager
def addresses(home: Path) -> Iterator[dict[str, tuple[str, str]]]:
    """Run a host that asks nobody and one that asks for a token; give the address and the token of each."""
    tokens = TokenFile(home / "tokens.json")
    entry, secret = create_token("interop", 0.0, bridges=("interop",))
    tokens.add(entry)
    asking = {"BRIDGEHEAD_TOKENS_FILE": str(tokens.path)}
    with serving(SERVER, "--http") as near, serving(SERVER, "--http", asking) as guarded:
        yield {"open host": (f"{near}/interop", ""), "host with tokens": (f"{guarded}/interop", secret)}


def checks(node: str, home: Path, found: dict[str, tuple[str, str]]) -> list[Check]:
    """Every check of the official clients over HTTP, against each host."""
    return [
        check
        for name, (address, token) in found.items()
        for check in (
            *typescript.checks(node, address, token, about=f"{name}, "),
            *inspector.checks(node, address, home, token, about=f"{name}, "),
        )
    ]
