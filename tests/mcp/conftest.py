"""Fixtures of the engine's tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.stdio_peer import Peer, piped


@pytest.fixture
def errors(tmp_path: Path) -> Path:
    """Where the process's standard error goes."""
    return tmp_path / "stderr"


@pytest.fixture
def peer(errors: Path) -> Iterator[Peer]:
    """A client of a real process, before anything is said."""
    with piped(errors) as one:
        yield one


@pytest.fixture
def client(peer: Peer) -> Peer:
    """A client of a real process, after the handshake."""
    peer.shake_hands()
    return peer
