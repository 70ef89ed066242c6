"""stdio under load: everything is answered exactly once, and nothing stays behind."""

import random
from collections import Counter
from pathlib import Path

from tests.support.messages import Json, call, cancelled, initialize, request, stateless, text
from tests.support.stdio_peer import Peer, piped

MEGABYTE = 1024 * 1024
SLACK = 30 * MEGABYTE


def stats(peer: Peer) -> Json:
    """Ask what runs in the process."""
    found: Json = peer.request("tools/call", call("stats"))["result"]["structuredContent"]
    return found


def test_ten_thousand_pipelined_calls_are_answered_exactly_once(client: Peer) -> None:
    stats(client)  # after the first call everything runs that a quiet server has
    quiet, before = stats(client), client.resident()
    asked = []
    for number in range(10_000):
        era = stateless if number % 3 == 0 else request
        tool = "sync_echo" if number % 2 else "echo"
        asked.append(era("tools/call", call(tool, {"text": f"text {number}"}), number))
    client.read_on()
    client.send(*asked)
    answers = [client.receive() for _ in asked]
    assert Counter(answer["id"] for answer in answers) == Counter(range(10_000))
    assert all(text(answer) == f"text {answer['id']}" for answer in answers)
    assert stats(client) == {**quiet, "most": 0}
    assert client.resident() - before < SLACK


def test_of_a_thousand_calls_the_cancelled_half_is_silent_and_the_other_half_answered(
    errors: Path, tmp_path: Path
) -> None:
    dice = random.Random(20_260_728)  # noqa: S311  (the same order each time)
    file = tmp_path / "file"
    numbers = list(range(1000))
    doomed = set(dice.sample(numbers, 500))
    with piped(errors) as peer:
        peer.shake_hands()
        stats(peer)  # after the first call everything runs that a quiet server has
        quiet = stats(peer)
        lines: list[Json] = []
        waiting: list[int] = []
        for number in numbers:
            lines.append(request("tools/call", call("wait_for_file", {"file": str(file)}), number))
            if number in doomed:
                waiting.append(number)
            while waiting and dice.random() < 0.5:
                lines.append(cancelled(waiting.pop(dice.randrange(len(waiting)))))
        lines += [cancelled(number) for number in waiting]
        peer.send(*lines)
        while stats(peer)["running"] > 500:
            continue
        file.touch()
        answers = [peer.receive() for _ in range(500)]
        assert {answer["id"] for answer in answers} == set(numbers) - doomed
        after = stats(peer)
        assert (after["running"], after["tasks"]) == (0, quiet["tasks"])
        peer.close_input()
        assert peer.rest() == []


def test_a_reader_that_sleeps_costs_a_bounded_amount_of_memory_and_then_gets_everything(peer: Peer) -> None:
    size, count = 50_000, 1000
    hello = initialize()
    peer.send(hello)
    peer.read_little(4096)
    before = peer.resident()
    calls = [
        request("tools/call", call("sync_big" if n % 2 else "big", {"size": size}), n) for n in range(count)
    ]
    peer.send(*calls[:200])
    most = peer.resident()
    for start in range(200, count, 200):
        peer.send_soon(*calls[start : start + 200])
        for _ in range(50):
            most = max(most, peer.resident())
    answers = {}
    for _ in range(count):
        answer = peer.receive()
        answers[answer["id"]] = len(text(answer))
        most = max(most, peer.resident())
    assert answers == dict.fromkeys(range(count), size)
    assert most - before < SLACK
    assert stats(peer)["running"] == 0
    assert peer.resident() - before < SLACK


def test_a_client_gone_in_the_middle_leaves_no_process_behind(errors: Path, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    with piped(errors, {"shutdown_seconds": 1.0}) as peer:
        peer.send(initialize(), request("tools/call", call("wait", {"marker": str(marker)}), "w"))
        peer.send(*(request("tools/call", call("big", {"size": 100_000}), n) for n in range(100)))
        peer.let_pipe_fill()
        peer.close_output()
        peer.close_input()
        assert peer.exit_code(8.0) == 0
    assert marker.exists()
    assert errors.read_bytes() == b""
