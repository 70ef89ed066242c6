"""Any line: whatever bytes come in, each line gets exactly the answer it deserves, and the process lives."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.mcp.http.test_any_body import json_values, judge, near_messages
from tests.support.messages import decode, encode
from tests.support.stdio_peer import Peer, piped

SLOW = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
halves = st.text(st.characters(categories=("L", "Cs")))
"""Text with halves of surrogate pairs, which JSON can write and UTF-8 cannot."""
unsayable = st.builds(
    lambda request_id, name: json.dumps(
        {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": {"name": name}}
    ).encode(),
    st.integers() | halves,
    halves,
)
lines = (st.binary(max_size=300) | json_values.map(encode) | near_messages.map(encode) | unsayable).map(
    lambda data: data.replace(b"\n", b" ")
)
_markers = itertools.count()


@pytest.fixture(scope="module")
def survivor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    """One process for all examples."""
    errors: Path = tmp_path_factory.mktemp("any-line") / "stderr"
    with piped(errors) as peer:
        peer.shake_hands()
        yield peer


def deserves_an_answer(line: bytes) -> bool:
    """Tell whether JSON-RPC asks for an answer: not to a notification, an answer, or nothing at all."""
    if not line.strip():
        return False
    try:
        message: Any = decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return True
    if not isinstance(message, dict):
        return True
    if "method" not in message:  # an answer, however broken, is not answered itself
        return message.keys().isdisjoint(("result", "error"))
    is_message = message.get("jsonrpc") == "2.0" and isinstance(message["method"], str)
    return not is_message or "id" in message


@SLOW
@given(batch=st.lists(lines, min_size=1, max_size=5))
def test_every_line_gets_the_answer_it_deserves(survivor: Peer, batch: list[bytes]) -> None:
    marker = f"marker {next(_markers)}"
    end = encode({"jsonrpc": "2.0", "id": marker, "method": "ping"})
    survivor.send_bytes(b"\n".join([*batch, end, b""]))
    answers = []
    while (line := survivor.line()) is not None:
        answers.append(decode(line))
        if answers[-1].get("id") == marker:
            break
    # What takes a while may be answered behind the ping: ask again until everything is there.
    wanted = sum(map(deserves_an_answer, batch))
    while len(answers) - 1 < wanted:
        line = survivor.line()
        assert line is not None
        answers.append(decode(line))
    for answer in answers:
        judge(answer)
    assert len(answers) == wanted + 1


def test_the_process_has_survived_all_that(survivor: Peer) -> None:
    assert survivor.request("ping")["result"] == {}
    survivor.close_input()
    assert survivor.rest() == []
    assert survivor.exit_code() == 0
