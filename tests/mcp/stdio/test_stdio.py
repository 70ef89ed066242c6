"""stdio: what a client sees that talks to a real process over two pipes."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.messages import (
    META,
    STATELESS,
    SUBSCRIPTION,
    call,
    cancelled,
    encode,
    initialize,
    notification,
    request,
    stateless,
    text,
)
from tests.support.stdio_peer import PATIENCE, ROOT, Peer, piped

MEGABYTE = 1024 * 1024


def test_a_handshake_and_a_call_are_answered(peer: Peer) -> None:
    hello = peer.shake_hands()
    assert hello["result"]["serverInfo"]["name"] == "busy"
    peer.send(notification("notifications/initialized"))
    assert text(peer.request("tools/call", call("echo", {"text": "ahoy"}))) == "ahoy"
    assert text(peer.request("tools/call", call("sync_echo", {"text": "ahoy"}))) == "ahoy"


def test_a_stateless_call_needs_no_handshake(peer: Peer) -> None:
    assert text(peer.stateless("tools/call", call("echo", {"text": "ahoy"}))) == "ahoy"


def test_both_eras_share_one_input(peer: Peer) -> None:
    calls = []
    for number in range(40):
        era = stateless if number % 2 else request
        calls.append(era("tools/call", call("echo", {"text": str(number)}), number))
    peer.send(initialize(), *calls)
    assert peer.answer_to("hello")["result"]["protocolVersion"] == "2025-11-25"
    answers = {answer["id"]: answer for answer in (peer.receive() for _ in calls)}
    assert {number: text(answer) for number, answer in answers.items()} == {n: str(n) for n in range(40)}
    kinds = {number: answer["result"].get("resultType") for number, answer in answers.items()}
    assert kinds == {number: "complete" if number % 2 else None for number in range(40)}


def test_a_request_before_the_handshake_is_refused(peer: Peer) -> None:
    assert peer.request("tools/list")["error"]["code"] == -32600


def test_blank_lines_and_carriage_returns_do_no_harm(client: Peer) -> None:
    asked = request("tools/call", call("echo", {"text": "a"}), 1)
    client.checker.note_requests(asked)
    client.send_bytes(b"\n\r\n   \n" + encode(asked) + b"\r\n\n\r\n")
    assert text(client.receive()) == "a"
    assert client.request("ping")["result"] == {}


def test_a_message_may_come_in_pieces(client: Peer) -> None:
    asked = request("tools/call", call("echo", {"text": "piece by piece"}), 1)
    client.checker.note_requests(asked)
    for byte in encode(asked):
        client.send_bytes(bytes([byte]))
    client.send_bytes(b"\n")
    assert text(client.receive()) == "piece by piece"


def test_the_last_line_needs_no_newline(client: Peer) -> None:
    asked = request("tools/call", call("echo", {"text": "last"}), 1)
    client.checker.note_requests(asked)
    client.send_bytes(encode(asked))
    client.close_input()
    assert [text(answer) for answer in client.rest()] == ["last"]
    assert client.exit_code() == 0


@pytest.mark.parametrize(
    "line", [b"this is not JSON", b"{", b'{"jsonrpc": "2.0", "id": 1', b"\xff\xfe", b"[" * 100_000]
)
def test_a_line_that_is_not_json_is_a_parse_error_and_the_connection_lives_on(
    client: Peer, line: bytes
) -> None:
    client.send_bytes(line + b"\n")
    answer = client.receive()
    assert answer["id"] is None
    assert answer["error"]["code"] == -32700
    assert client.request("ping")["result"] == {}


def test_json_that_is_no_message_is_an_invalid_request_with_its_id(client: Peer) -> None:
    client.send_bytes(b'{"id": 7, "method": "ping"}\n')
    answer = client.receive()
    assert answer["id"] == 7
    assert answer["error"]["code"] == -32600


def test_a_message_of_64_megabytes_is_refused_and_costs_no_memory(client: Peer) -> None:
    before = client.resident()
    client.read_on()
    piece = b"x" * MEGABYTE
    client.send_bytes(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"')
    most = before
    for _ in range(64):
        client.send_bytes(piece)
        most = max(most, client.resident())
    client.send_bytes(b'"}}\n')
    answer = client.receive()
    assert answer["id"] is None
    assert answer["error"]["code"] == -32600
    assert str(16 * MEGABYTE) in answer["error"]["message"]
    assert text(client.request("tools/call", call("echo", {"text": "still here"}))) == "still here"
    assert most - before < 40 * MEGABYTE
    assert client.resident() - before < 30 * MEGABYTE


BEGINNINGS = {
    "in two pieces": [encode(initialize())[:20], encode(initialize())[20:] + b"\n"],
    "with what follows": [encode(initialize()) + b"\n" + encode(request("ping", None, 7)) + b"\n"],
    "with half of what follows": [
        encode(initialize()) + b"\n" + b'{"jsonrpc":"2.0",',
        b'"id":7,"method":"ping"}\n',
    ],
    "after a blank line": [b"\n\r\n" + encode(initialize()) + b"\n"],
    "after a notification": [
        encode(notification("notifications/initialized")) + b"\n",
        encode(initialize()) + b"\n",
    ],
}


@pytest.mark.parametrize("pieces", BEGINNINGS.values(), ids=BEGINNINGS)
def test_a_conversation_may_begin_in_any_way(peer: Peer, pieces: list[bytes]) -> None:
    peer.checker.note_requests(initialize())
    peer.checker.note_requests(request("ping", None, 7))
    for piece in pieces:
        peer.send_bytes(piece)
    assert peer.receive()["result"]["protocolVersion"] == "2025-11-25"
    if b'"ping"' in b"".join(pieces):
        assert peer.receive() == {"jsonrpc": "2.0", "id": 7, "result": {}}
    assert text(peer.request("tools/call", call("echo", {"text": "hello"}))) == "hello"


def test_a_message_just_under_the_limit_is_taken(errors: Path) -> None:
    with piped(errors, {"message_bytes": 2000}) as peer:
        peer.shake_hands()
        for length in (1500, 2500):
            asked = request("tools/call", call("echo", {"text": "y" * length}), length)
            peer.send(asked)
        answers = {answer["id"]: answer for answer in (peer.receive(), peer.receive())}
    assert text(answers[1500]) == "y" * 1500
    assert "2000" in answers[None]["error"]["message"]


@pytest.mark.parametrize(("closed", "answers"), [("<&-", 0), (">&-", 0), ("2>&-", 2), ("<&- >&- 2>&-", 0)])
def test_a_standard_descriptor_may_be_closed_from_the_start(closed: str, answers: int) -> None:
    done = subprocess.run(
        ["sh", "-c", f"exec {sys.executable} -m tests.support.stdio_bridge {closed}"],
        input=b"%b\n%b\n" % (encode(initialize()), encode(request("ping"))),
        capture_output=True,
        cwd=ROOT,
        timeout=PATIENCE,
        check=False,
    )

    assert (done.returncode, len(done.stdout.splitlines()), done.stderr) == (0, answers, b"")


def test_a_tool_that_leaves_does_not_take_the_process_with_it(client: Peer) -> None:
    assert client.request("tools/call", call("leave"))["result"]["isError"]
    assert text(client.request("tools/call", call("echo", {"text": "still here"}))) == "still here"


def test_whatever_is_printed_goes_to_standard_error(client: Peer, errors: Path) -> None:
    answer = client.request("tools/call", call("chatter"))
    assert text(answer) == "the child read 0 characters"
    client.close_input()
    assert client.rest() == []
    assert client.exit_code() == 0
    said = errors.read_text(encoding="utf-8")
    assert said.splitlines()[:3] == ["said by print", "said by os.write", "said by a child"]


def test_a_bug_leaves_its_text_in_the_log_only(client: Peer, errors: Path) -> None:
    answer = client.request("tools/call", call("bug"))
    assert answer["result"]["isError"]
    assert "secret" not in str(answer)
    reference = text(answer).partition("reference ")[2][:8]
    client.close_input()
    assert client.exit_code() == 0
    log = errors.read_text(encoding="utf-8")
    assert reference in log
    assert "the secret text of a bug" in log


def test_progress_comes_before_its_answer_and_grows(client: Peer) -> None:
    client.send(request("tools/call", call("count", {"n": 5}, progress="p"), 1))
    said = [client.receive() for _ in range(6)]
    assert [message["params"]["progress"] for message in said[:-1]] == [1, 2, 3, 4, 5]
    assert text(said[-1]) == "counted to 5"


@pytest.mark.parametrize("era", [request, stateless])
def test_a_cancelled_call_ends_in_its_finally_and_is_not_answered(
    client: Peer, tmp_path: Path, era: type
) -> None:
    marker = tmp_path / "marker"
    asked = era("tools/call", call("wait", {"marker": str(marker)}, progress=1), 1)
    client.send(asked)
    assert client.receive()["method"] == "notifications/progress"
    assert not marker.exists()
    client.cancel(1)
    answer = client.request("tools/call", call("stats"))
    assert answer["result"]["structuredContent"]["running"] == 0
    assert marker.read_text(encoding="utf-8") == "the end was reached"
    client.close_input()
    assert client.rest() == []


def test_a_cancellation_of_nothing_is_ignored(client: Peer) -> None:
    client.cancel(4711)
    client.send(
        notification("notifications/cancelled"), notification("notifications/cancelled", {"requestId": []})
    )
    assert client.request("ping")["result"] == {}


def test_a_call_cancelled_in_the_same_breath_never_runs(client: Peer, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    client.send(request("tools/call", call("wait", {"marker": str(marker)}), 1), cancelled(1))
    assert client.request("tools/call", call("stats"))["result"]["structuredContent"]["most"] == 0
    assert not marker.exists()


def test_a_question_is_asked_and_its_answer_used(peer: Peer) -> None:
    peer.shake_hands(capabilities={"elicitation": {}})
    asked = request("tools/call", call("ask"), 1)
    peer.send(asked)
    question = peer.receive()
    assert question["method"] == "elicitation/create"
    peer.send(
        {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"name": "Ada"}}}
    )
    assert text(peer.receive()) == "Hello, Ada!"


def test_a_handshake_client_hears_that_a_list_changed(client: Peer) -> None:
    client.send(request("tools/call", call("change", {"what": "tools"}), 1))
    said = [client.receive(), client.receive()]
    assert {message.get("method") for message in said} == {None, "notifications/tools/list_changed"}


def test_a_handshake_client_hears_of_the_resources_that_it_subscribed_to(client: Peer) -> None:
    assert client.request("resources/subscribe", {"uri": "memo://today"})["result"] == {}
    client.send(request("tools/call", call("change", {"what": "memo://other"}), 1))
    assert text(client.receive()) == "announced"
    client.send(request("tools/call", call("change", {"what": "memo://today"}), 2))
    said = [client.receive(), client.receive()]
    (heard,) = [message for message in said if "method" in message]
    assert heard["params"] == {"uri": "memo://today"}


def test_a_listen_stream_is_acknowledged_fed_and_ended_in_good_order(peer: Peer) -> None:
    wanted = {"toolsListChanged": True, "resourceSubscriptions": ["memo://today"]}
    peer.send(stateless("subscriptions/listen", {"notifications": wanted}, "listening"))
    acknowledged = peer.receive()
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert acknowledged["params"]["notifications"] == wanted
    for what, method in (("tools", "tools/list_changed"), ("memo://today", "resources/updated")):
        peer.send(stateless("tools/call", call("change", {"what": what}), what))
        said = [peer.receive(), peer.receive()]
        (heard,) = [message for message in said if "method" in message]
        assert heard["method"] == "notifications/" + method
        assert heard["params"]["_meta"] == {SUBSCRIPTION: "listening"}
    peer.close_input()
    (end,) = peer.rest()
    assert end["id"] == "listening"
    assert end["result"]["resultType"] == "complete"
    assert end["result"]["_meta"][SUBSCRIPTION] == "listening"
    assert peer.exit_code() == 0


def test_a_cancelled_listen_stream_ends_without_an_answer(peer: Peer) -> None:
    peer.send(stateless("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, 1))
    assert peer.receive()["method"] == "notifications/subscriptions/acknowledged"
    peer.cancel(1)
    peer.send(stateless("tools/call", call("change", {"what": "tools"}), 2))
    assert peer.receive()["id"] == 2
    peer.close_input()
    assert peer.rest() == []


def test_a_stateless_request_of_an_unknown_version_names_the_known_ones(peer: Peer) -> None:
    answer = peer.ask(stateless("tools/list", version="1999-01-01"))
    assert answer["error"]["code"] == -32022
    assert answer["error"]["data"]["supported"] == [STATELESS]


def test_a_batch_is_answered_as_one_line_in_the_revision_that_has_batches(peer: Peer) -> None:
    peer.shake_hands("2025-03-26")
    batch = [request("tools/call", call("echo", {"text": str(n)}), n) for n in range(3)]
    peer.send(batch)
    line = peer.line()
    assert line is not None
    assert line.count(b'"result"') == 3
    peer.send([notification("notifications/initialized")], request("ping", None, "after"))
    assert peer.receive()["id"] == "after"


def test_a_batch_of_which_everything_is_cancelled_is_not_answered(peer: Peer) -> None:
    peer.shake_hands("2025-03-26")
    peer.send([request("tools/call", call("wait"), 1)], cancelled(1))
    assert peer.request("ping")["result"] == {}
    peer.close_input()
    assert peer.rest() == []


def test_a_server_speaks_of_its_name_in_every_stateless_answer(peer: Peer) -> None:
    answer = peer.stateless("server/discover")
    assert answer["result"]["_meta"][META + "serverInfo"]["name"] == "busy"
