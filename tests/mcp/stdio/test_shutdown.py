"""Shutdown: a real process ends with code 0, in time, and answers first what it can."""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.support.messages import call, initialize, request, stateless, text
from tests.support.stdio_peer import Peer, piped
from tests.support.waiting import PATIENCE

SOON = {"shutdown_seconds": 0.5}
LATE = {"shutdown_seconds": 10 * PATIENCE}
"""Whoever ends in time has not waited for this."""

ENDS = ["end of input", "SIGTERM", "SIGINT", "SIGHUP"]


def end(peer: Peer, how: str) -> None:
    """Tell the process to end; only the end of input closes it."""
    if how == "end of input":
        peer.close_input()
    else:
        os.kill(peer.process.pid, getattr(signal, how))


@pytest.mark.parametrize("how", ENDS)
def test_an_idle_process_ends_at_once(errors: Path, how: str) -> None:
    with piped(errors, LATE) as peer:
        peer.shake_hands()
        end(peer, how)
        assert peer.rest() == []
        assert peer.exit_code() == 0
    assert errors.read_bytes() == b""


def handles_signals(peer: Peer) -> bool:
    """Whether the process has handlers of its own for the signals that end it."""
    status = Path(f"/proc/{peer.process.pid}/status").read_text(encoding="ascii")
    caught = int(status.partition("SigCgt:")[2].split()[0], 16)
    return all(caught & 1 << (number - 1) for number in (signal.SIGTERM, signal.SIGHUP))


@pytest.mark.parametrize("how", ENDS)
def test_a_process_that_was_told_nothing_yet_ends_with_zero_too(peer: Peer, errors: Path, how: str) -> None:
    until = time.monotonic() + PATIENCE
    while not handles_signals(peer):
        assert time.monotonic() < until
    end(peer, how)
    assert peer.exit_code() == 0
    assert errors.read_bytes() == b""


@pytest.mark.parametrize("how", ENDS)
def test_a_call_in_flight_is_answered_first(errors: Path, tmp_path: Path, how: str) -> None:
    file = tmp_path / "file"
    with piped(errors, LATE) as peer:
        peer.shake_hands()
        peer.send(request("tools/call", call("wait_for_file", {"file": str(file)}, progress=1), 1))
        assert peer.receive()["method"] == "notifications/progress"
        end(peer, how)
        file.touch()
        assert [text(answer) for answer in peer.rest()] == ["it is there"]
        assert peer.exit_code() == 0


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("tool", ["wait", "stuck", "stubborn"])
def test_a_call_that_never_ends_does_not_keep_the_process(errors: Path, tool: str, how: str) -> None:
    with piped(errors, SOON) as peer:
        peer.shake_hands()
        peer.send(request("tools/call", call(tool, progress=1), 1))
        assert peer.receive()["method"] == "notifications/progress"
        end(peer, how)
        assert peer.exit_code(PATIENCE) == 0
        assert peer.rest() == []


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT"])
@pytest.mark.parametrize("loop", ["", "uvloop"])
def test_a_tool_that_blocks_the_loop_does_not_keep_the_process(errors: Path, loop: str, how: str) -> None:
    with piped(errors, SOON, loop) as peer:
        peer.shake_hands()
        peer.send(request("tools/call", call("block", progress=1), 1))
        assert peer.receive()["method"] == "notifications/progress"
        end(peer, how)
        assert peer.exit_code(PATIENCE) == 0


def test_an_abandoned_call_still_reaches_its_finally(errors: Path, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    with piped(errors, SOON) as peer:
        peer.shake_hands()
        peer.send(request("tools/call", call("wait", {"marker": str(marker)}, progress=1), 1))
        assert peer.receive()["method"] == "notifications/progress"
        peer.close_input()
        assert peer.exit_code(PATIENCE) == 0
    assert marker.exists()


def test_everything_that_was_said_before_the_end_of_input_is_answered(errors: Path) -> None:
    with piped(errors, {"requests_in_flight": 3, **LATE}) as peer:
        calls = [request("tools/call", call("echo", {"text": str(n)}), n) for n in range(500)]
        peer.send(initialize(), *calls)
        peer.close_input()
        answers = peer.rest()
        assert peer.exit_code() == 0
    assert [answer["id"] for answer in answers] == ["hello", *range(500)]


@pytest.mark.parametrize("tool", ["big", "sync_big"])
def test_large_answers_are_all_handed_over_after_the_end_of_input(errors: Path, tool: str) -> None:
    calls = [request("tools/call", call(tool, {"size": 600_000}), n) for n in range(20)]
    with piped(errors, LATE) as peer:
        peer.send(initialize(), *calls)
        peer.close_input()
        answers = peer.rest()
        assert peer.exit_code() == 0
    assert sorted(answer["id"] for answer in answers[1:]) == list(range(20))
    assert {len(text(answer)) for answer in answers[1:]} == {600_000}


def test_a_question_that_can_no_longer_be_answered_ends_its_call(peer: Peer) -> None:
    peer.shake_hands(capabilities={"elicitation": {}})
    peer.send(request("tools/call", call("ask"), 1))
    assert peer.receive()["method"] == "elicitation/create"
    peer.close_input()
    (answer,) = [message for message in peer.rest() if message.get("id") == 1]
    assert answer["result"]["isError"] is True
    assert peer.exit_code() == 0


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT"])
def test_a_listen_stream_ends_in_good_order_at_a_signal(peer: Peer, how: str) -> None:
    peer.send(stateless("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, 1))
    assert peer.receive()["method"] == "notifications/subscriptions/acknowledged"
    end(peer, how)
    (answer,) = peer.rest()
    assert answer["result"]["resultType"] == "complete"
    assert peer.exit_code() == 0


def test_a_client_that_reads_no_more_ends_the_process_and_its_work(peer: Peer, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    peer.send(initialize(), request("tools/call", call("wait", {"marker": str(marker)}, progress=1), 1))
    said = b""
    while b"notifications/progress" not in said:
        said += peer.read_little(1000)
    peer.close_output()
    peer.send(request("ping", None, 2))
    assert peer.exit_code(PATIENCE) == 0
    assert marker.exists()


@pytest.mark.parametrize("count", [1, 3])
def test_a_client_gone_in_the_middle_of_a_long_answer_ends_the_process(
    peer: Peer, errors: Path, count: int
) -> None:
    calls = (request("tools/call", call("big", {"size": 5_000_000}), n) for n in range(count))
    peer.send(initialize(), *calls)
    peer.let_pipe_fill()
    peer.close_output()
    assert peer.exit_code(PATIENCE) == 0
    assert errors.read_bytes() == b""


def test_an_end_while_the_reader_sleeps_is_bounded(errors: Path) -> None:
    with piped(errors, SOON) as peer:
        peer.send(
            initialize(), *(request("tools/call", call("big", {"size": 3_000_000}), n) for n in range(9))
        )
        assert peer.read_little(100)
        end(peer, "SIGTERM")
        assert peer.exit_code(PATIENCE) == 0


def test_a_signal_leaves_what_was_not_begun(errors: Path) -> None:
    with piped(errors, {"requests_in_flight": 1, **SOON}) as peer:
        peer.shake_hands()
        peer.send(
            request("tools/call", call("wait", progress=1), 1),
            request("tools/call", call("echo", {"text": "never begun"}), 2),
        )
        assert peer.receive()["method"] == "notifications/progress"
        end(peer, "SIGTERM")
        assert peer.rest() == []
        assert peer.exit_code(PATIENCE) == 0
