"""stdio at its limits: the client waits, nothing is lost, and nothing locks up."""

from pathlib import Path

import pytest

from tests.support.messages import call, cancelled, decode, initialize, request, stateless, text
from tests.support.stdio_peer import Peer, piped

FOUR = {"requests_in_flight": 4}


def most(peer: Peer) -> int:
    """Ask how many handlers ran at once."""
    found: int = decode(text(peer.request("tools/call", call("stats"))).encode())["most"]
    return found


def test_requests_over_the_limit_wait_and_are_all_answered(errors: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    with piped(errors, FOUR) as peer:
        peer.shake_hands()
        asked = [
            request("tools/call", call("wait_for_file", {"file": str(file)}, progress=n), n)
            for n in range(100)
        ]
        peer.send(*asked)
        first = [peer.receive() for _ in range(4)]
        assert {message["params"]["progressToken"] for message in first} == {0, 1, 2, 3}
        file.touch()
        said = [peer.receive() for _ in range(196)]
        answers = {message["id"]: text(message) for message in said if "method" not in message}
        assert answers == dict.fromkeys(range(100), "it is there")
        assert most(peer) == 4


@pytest.mark.parametrize("limit", [1, 4])
def test_a_question_at_the_limit_does_not_lock_up(errors: Path, limit: int) -> None:
    with piped(errors, {"requests_in_flight": limit}) as peer:
        peer.shake_hands(capabilities={"elicitation": {}})
        asking = [request("tools/call", call("ask"), n) for n in range(limit)]
        others = [request("tools/call", call("echo", {"text": "x"}), 100 + n) for n in range(10)]
        peer.send(*asking, *others)
        answered: set[int] = set()
        while len(answered) < limit + 10:
            message = peer.receive()
            if "method" in message:
                result = {"action": "accept", "content": {"name": "Ada"}}
                peer.send({"jsonrpc": "2.0", "id": message["id"], "result": result})
            else:
                answered.add(message["id"])
        assert answered == {*range(limit), *range(100, 110)}


def test_a_listen_stream_takes_no_place_of_a_request(errors: Path) -> None:
    with piped(errors, {"requests_in_flight": 1}) as peer:
        listening = stateless("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, "l")
        peer.send(listening, stateless("tools/call", call("echo", {"text": "x"}), 1))
        assert peer.receive()["method"] == "notifications/subscriptions/acknowledged"
        assert text(peer.receive()) == "x"


def test_a_cancellation_gets_through_although_requests_wait(errors: Path) -> None:
    with piped(errors, {"requests_in_flight": 1}) as peer:
        peer.shake_hands()
        peer.send(
            request("tools/call", call("wait"), 1),
            request("tools/call", call("echo", {"text": "waited"}), 2),
            cancelled(1),
        )
        assert text(peer.receive()) == "waited"


def test_a_batch_keeps_to_the_limit_too(errors: Path) -> None:
    with piped(errors, FOUR) as peer:
        peer.shake_hands("2025-03-26")
        batch = [request("tools/call", call("wait"), n) for n in range(30)]
        peer.send(batch, *(cancelled(n) for n in range(30)))
        assert most(peer) <= 4


def test_listen_streams_have_a_limit_of_their_own(errors: Path) -> None:
    with piped(errors, {"listen_streams": 1}) as peer:
        peer.send(stateless("subscriptions/listen", {"notifications": {}}, 1))
        assert peer.receive()["method"] == "notifications/subscriptions/acknowledged"
        assert peer.stateless("subscriptions/listen", {"notifications": {}})["error"]["code"] == -32000


@pytest.mark.parametrize("tool", ["big", "sync_big"])
def test_answers_larger_than_the_output_limit_keep_coming(errors: Path, tool: str) -> None:
    with piped(errors, {"output_bytes": 1000}) as peer:
        peer.shake_hands()
        peer.send(*(request("tools/call", call(tool, {"size": 300 * n}), n) for n in range(200)))
        sizes = {answer["id"]: len(text(answer)) for answer in (peer.receive() for _ in range(200))}
        assert sizes == {n: 300 * n for n in range(200)}
        assert peer.request("ping")["result"] == {}


@pytest.mark.parametrize("n", [1000, 2000, 3000, 4000, 5000])
def test_progress_waits_for_a_slow_reader_and_then_the_process_reads_on(errors: Path, n: int) -> None:
    with piped(errors, {"output_bytes": 1000}) as peer:
        peer.send(initialize(), request("tools/call", call("count", {"n": n}, progress=1), 1))
        peer.let_pipe_fill()
        peer.answer_to("hello")
        said = [peer.receive() for _ in range(n + 1)]
        assert [message["params"]["progress"] for message in said[:-1]] == list(range(1, n + 1))
        assert text(said[-1]) == f"counted to {n}"
        assert peer.request("ping")["result"] == {}
        peer.close_input()
        assert peer.exit_code() == 0
