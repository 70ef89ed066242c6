"""Descriptors: a real process works the same whatever its standard input and output are."""

import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.messages import call, decode, encode, initialize, request, text
from tests.support.posix import pty, tty
from tests.support.stdio_peer import Peer, start


@contextmanager
def disposed(peer: Peer) -> Iterator[Peer]:
    try:
        yield peer
    finally:
        peer.dispose()


def a_pipe(*, write: bool) -> tuple[int, int]:
    """Give our end and the process's end."""
    reading, writing = os.pipe()
    return (writing, reading) if write else (reading, writing)


def a_socket(*, write: bool) -> tuple[int, int]:
    ours, theirs = socket.socketpair()
    return ours.detach(), theirs.detach()


def a_terminal(*, write: bool) -> tuple[int, int]:
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    return ours, theirs


Kind = Callable[..., tuple[int, int]]


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("output", [a_pipe, a_socket, a_terminal])
@pytest.mark.parametrize("source", [a_pipe, a_socket, a_terminal])
def test_a_conversation_works_on_any_kind_of_descriptor_and_loop(
    source: Kind, output: Kind, loop: str, errors: Path
) -> None:
    outgoing, their_input = source(write=True)
    incoming, their_output = output(write=False)
    process = start(their_input, their_output, errors, {}, loop)
    with disposed(Peer(process, outgoing, incoming)) as peer:
        peer.shake_hands()
        for number in range(50):
            assert text(peer.request("tools/call", call("echo", {"text": str(number)}))) == str(number)
        assert len(text(peer.request("tools/call", call("big", {"size": 300_000})))) == 300_000
        peer.send(request("tools/call", call("echo", {"text": "the last"}), "last"))
        assert text(peer.answer_to("last")) == "the last"
        peer.close_input()
        assert peer.exit_code() == 0


def test_one_socket_can_be_both_input_and_output(errors: Path) -> None:
    ours, theirs = socket.socketpair()
    outgoing = ours.detach()
    process = start(theirs.fileno(), theirs.detach(), errors)
    with disposed(Peer(process, outgoing, os.dup(outgoing))) as peer:
        peer.shake_hands()
        assert len(text(peer.request("tools/call", call("big", {"size": 3_000_000})))) == 3_000_000
        os.kill(process.pid, signal.SIGTERM)
        assert peer.exit_code() == 0


def test_one_terminal_can_be_both_input_and_output(errors: Path) -> None:
    ours, theirs = a_terminal(write=True)
    process = start(theirs, os.dup(theirs), errors)
    with disposed(Peer(process, ours, os.dup(ours))) as peer:
        peer.shake_hands()
        assert text(peer.request("tools/call", call("echo", {"text": "typed"}))) == "typed"
        os.kill(process.pid, signal.SIGTERM)
        assert peer.exit_code() == 0


@pytest.mark.parametrize("tool", ["big", "sync_big"])
def test_a_file_of_requests_becomes_a_file_of_answers(tmp_path: Path, errors: Path, tool: str) -> None:
    questions, answers = tmp_path / "questions", tmp_path / "answers"
    calls = [request("tools/call", call(tool, {"size": 1000 * n}), n) for n in range(1, 101)]
    lines = [encode(message) for message in [initialize(), *calls]]
    questions.write_bytes(b"\n".join(lines))
    flags = os.O_CREAT | os.O_WRONLY
    process = start(os.open(questions, os.O_RDONLY), os.open(answers, flags, 0o600), errors)
    assert process.wait(20) == 0
    said = {answer["id"]: answer for answer in map(decode, answers.read_bytes().splitlines())}
    assert said.pop("hello")["result"]["protocolVersion"] == "2025-11-25"
    assert {number: len(text(answer)) for number, answer in said.items()} == {
        n: 1000 * n for n in range(1, 101)
    }


def test_an_input_with_nothing_in_it_ends_the_process(errors: Path, tmp_path: Path) -> None:
    answers = tmp_path / "answers"
    output = os.open(answers, os.O_CREAT | os.O_WRONLY, 0o600)
    process = start(os.open(os.devnull, os.O_RDONLY), output, errors)
    assert process.wait(20) == 0
    assert answers.read_bytes() == b""


def test_a_full_disk_ends_the_process_in_good_order(errors: Path) -> None:
    their_input, outgoing = os.pipe()
    incoming, unused = os.pipe()
    os.close(unused)
    process = start(their_input, os.open("/dev/full", os.O_WRONLY), errors)
    with disposed(Peer(process, outgoing, incoming)) as peer:
        for number in range(200):
            try:
                peer.send(request("ping", None, number))
            except BrokenPipeError:
                break
            if process.poll() is not None:
                break
        peer.close_input()
        assert peer.exit_code() == 0
    assert errors.read_text(encoding="utf-8") == ""
