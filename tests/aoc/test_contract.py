"""The contract's exchanges, each as it is written down, with the real command as a process."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.aoc.data import ONLY_FILES, Data, entry
from tests.aoc.database_data import DatabaseData
from tests.support.messages import encode
from tests.support.stdio_peer import Peer

DAY_ONE = "# Day 1\n\n## Phase 1\nCount the gulls.\n\n## Phase 2\nNow count the herons."


def filled(data: Data) -> Data:
    data.puzzle(1, "Count the gulls.", "Now count the herons.")
    data.puzzle(2, "Only one phase yet.\r\nWindows\rand older lines.\n")
    return data


@pytest.fixture(params=["files", "database"])
def data(request: pytest.FixtureRequest, tmp_path: Path) -> Data:
    if request.param == "files":
        return filled(Data(tmp_path))
    return filled(DatabaseData(tmp_path, request.getfixturevalue("database_url")))


@pytest.fixture
def peer(data: Data) -> Iterator[Peer]:
    """A client that has said nothing yet."""
    with data.served() as one:
        yield one


@pytest.fixture
def writer(peer: Peer) -> Peer:
    """A client with a data directory of its own."""
    return greeted(peer)


@pytest.fixture(scope="module")
def reading(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Data, Peer]]:
    data = filled(Data(tmp_path_factory.mktemp("shared")))
    with data.served() as one:
        yield data, greeted(one)


@pytest.fixture
def client(reading: tuple[Data, Peer]) -> Peer:
    """A client of a process that several tests share, since none of them writes."""
    return reading[1]


def greeted(peer: Peer) -> Peer:
    """Send the contract's `initialize`."""
    peer.checker.revision = "2024-11-05"
    peer.ask({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}})
    return peer


def answer(peer: Peer, request: dict[str, Any]) -> Any:
    """Send a request exactly as it is; give its answer's bytes, decoded."""
    return peer.ask({"jsonrpc": "2.0", **request})


def called(peer: Peer, request_id: int, tool: str, arguments: Any) -> Any:
    params = {"name": tool, "arguments": arguments}
    return answer(peer, {"id": request_id, "method": "tools/call", "params": params})


def test_initialize_with_empty_params_is_answered_byte_for_byte(peer: Peer) -> None:
    peer.send_bytes(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n')

    assert peer.line() == (
        b'{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05","capabilities":{"resources":'
        b'{"subscribe":false,"listChanged":false},"tools":{},"prompts":{}},'
        b'"serverInfo":{"name":"aocMCP","version":"1.0.0"}}}'
    )


def test_a_client_that_asks_for_the_contracts_revision_gets_it(peer: Peer) -> None:
    result = peer.shake_hands("2024-11-05")["result"]

    assert (result["protocolVersion"], result["serverInfo"]) == (
        "2024-11-05",
        {"name": "aocMCP", "version": "1.0.0"},
    )


def test_resources_are_listed_newest_day_first_with_the_contracts_words(client: Peer) -> None:
    assert answer(client, {"id": 2, "method": "resources/list", "params": {}}) == {
        "jsonrpc": "2.0",
        "id": 2,
        "result": {
            "resources": [
                {
                    "uri": "aoc://day02",
                    "name": "Day 2 Instructions",
                    "description": "Full puzzle instructions for Advent of Code 2025 Day 2",
                    "mimeType": "text/plain",
                },
                {
                    "uri": "aoc://day01",
                    "name": "Day 1 Instructions",
                    "description": "Full puzzle instructions for Advent of Code 2025 Day 1",
                    "mimeType": "text/plain",
                },
            ]
        },
    }


def test_a_resource_with_both_phases_is_read_byte_for_byte(client: Peer) -> None:
    client.send_bytes(b'{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"aoc://day01"}}\n')

    assert client.line() == (
        b'{"jsonrpc":"2.0","id":3,"result":{"contents":[{"uri":"aoc://day01","mimeType":"text/plain",'
        b'"text":%b}]}}' % json.dumps(DAY_ONE).encode()
    )


def test_a_resource_with_one_phase_is_read_with_its_line_endings_normalised(client: Peer) -> None:
    read = answer(client, {"id": 3, "method": "resources/read", "params": {"uri": "aoc://day02"}})

    assert read["result"]["contents"][0]["text"] == (
        "# Day 2\n\nOnly one phase yet.\nWindows\nand older lines.\n"
    )


def test_a_resource_that_cannot_be_loaded_is_the_contracts_error(client: Peer) -> None:
    read = answer(client, {"id": 3, "method": "resources/read", "params": {"uri": "aoc://day07"}})

    assert read["id"] == 3
    assert read["error"]["code"] == -1
    assert read["error"]["message"].startswith(
        "Error loading instruction: "
        "Instruction file not found for day 7 (tried Day07_phase1.md and day07.json)"
    )


@pytest.mark.parametrize(
    "uri", ["aoc://day26", "aoc://day7", "aoc://day00", "aoc://night01", "file:///day01"]
)
def test_a_uri_that_is_no_day_is_the_contracts_error_too(client: Peer, uri: str) -> None:
    error = answer(client, {"id": 3, "method": "resources/read", "params": {"uri": uri}})["error"]

    assert error["code"] == -1
    assert error["message"].startswith("Error loading instruction: ")


def test_there_are_no_prompts_for_a_client_that_names_no_revision(client: Peer) -> None:
    assert answer(client, {"id": 4, "method": "prompts/list", "params": {}}) == {
        "jsonrpc": "2.0",
        "id": 4,
        "result": {"prompts": []},
    }


def test_a_client_that_names_a_revision_gets_our_additions(data: Data) -> None:
    with data.served() as peer:
        capabilities = peer.shake_hands("2024-11-05")["result"]["capabilities"]
        tools = [tool["name"] for tool in peer.request("tools/list")["result"]["tools"]]
        prompts = [prompt["name"] for prompt in peer.request("prompts/list")["result"]["prompts"]]

    assert capabilities["resources"] == {"subscribe": True, "listChanged": True}
    assert tools[:2] == ["fetch_instruction", "record_speed"]
    assert {"start_attempt", "finish_attempt", "speed_leaderboard"} <= set(tools)
    assert prompts == ["solve_day", "compare_models"]


def test_the_contracts_tools_are_listed_byte_for_byte_and_no_others(client: Peer) -> None:
    client.send_bytes(b'{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{}}\n')

    assert client.line() == (
        b'{"jsonrpc":"2.0","id":5,"result":{"tools":[{"name":"fetch_instruction",'
        b'"description":"Fetch the full puzzle instruction for a specific day",'
        b'"inputSchema":{"type":"object","properties":'
        b'{"day":{"type":"integer","description":"Day number (1-25)"}},"required":["day"]}},'
        b'{"name":"record_speed",'
        b'"description":"Record the solving speed for an LLM on a specific day and phase",'
        b'"inputSchema":{"type":"object","properties":{"day":{"type":"integer","description":"Day number"},'
        b'"phase":{"type":"integer","description":"Phase (1 or 2)"},'
        b'"llm_name":{"type":"string","description":"LLM name"},'
        b'"speed_ms":{"type":"integer","description":"Solving time in milliseconds"}},'
        b'"required":["day","phase","llm_name","speed_ms"]}}]}}'
    )


def test_fetch_instruction_is_answered_byte_for_byte(client: Peer) -> None:
    client.send_bytes(
        b'{"jsonrpc":"2.0","id":6,"method":"tools/call",'
        b'"params":{"name":"fetch_instruction","arguments":{"day":1}}}\n'
    )

    assert client.line() == (
        b'{"jsonrpc":"2.0","id":6,"result":{"content":[{"type":"text","text":%b}]}}' % encode(DAY_ONE)
    )


def test_record_speed_is_answered_byte_for_byte(data: Data, writer: Peer) -> None:
    data.put_speeds(1, [entry("gpt4", 1110), entry("other", 1)])
    writer.send_bytes(
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"record_speed",'
        b'"arguments":{"day":1,"phase":1,"llm_name":"gpt4","speed_ms":1250}}}\n'
    )

    assert writer.line() == (
        b'{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text",'
        b'"text":"Recorded gpt4 Day 1 Phase 1: 1250ms (avg: 1180ms)"}]}}'
    )


@ONLY_FILES
def test_a_speeds_file_is_as_the_contract_has_it(data: Data, writer: Peer) -> None:
    called(writer, 7, "record_speed", {"day": 1, "phase": 2, "llm_name": "gpt4", "speed_ms": 1250})

    document = json.loads(data.speeds_file(1).read_bytes())

    assert list(document) == ["day", "entries"]
    (only,) = document["entries"]
    assert list(only) == ["llm", "phase", "speedMs", "timestamp"]
    assert {**only, "timestamp": ""} == {"llm": "gpt4", "phase": 2, "speedMs": 1250, "timestamp": ""}
    assert only["timestamp"].endswith("Z")
    assert len(only["timestamp"]) == len("2025-12-01T10:30:00.000Z")


def test_a_string_id_comes_back_as_it_was(client: Peer) -> None:
    assert answer(client, {"id": "six", "method": "resources/list", "params": {}})["id"] == "six"


def test_what_is_not_json_is_a_parse_error(client: Peer) -> None:
    client.send_bytes(b"not json\n")

    message = client.receive()

    assert (message["id"], message["error"]["code"]) == (None, -32700)
    assert message["error"]["message"].startswith("Parse error")


def test_an_unknown_method_is_not_found(client: Peer) -> None:
    error = answer(client, {"id": 8, "method": "resources/burn", "params": {}})["error"]

    assert error["code"] == -32601
    assert error["message"].startswith("Method not found")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("fetch_instruction", {}),
        ("fetch_instruction", {"day": 0}),
        ("fetch_instruction", {"day": 26}),
        ("fetch_instruction", {"day": "1"}),
        ("fetch_instruction", {"day": 1, "phase": 1}),
        ("record_speed", {"day": 1, "phase": 3, "llm_name": "gpt4", "speed_ms": 1}),
        ("record_speed", {"day": 1, "phase": 0, "llm_name": "gpt4", "speed_ms": 1}),
        ("record_speed", {"day": 26, "phase": 1, "llm_name": "gpt4", "speed_ms": 1}),
        ("record_speed", {"day": 1, "phase": 1, "llm_name": "", "speed_ms": 1}),
        ("record_speed", {"day": 1, "phase": 1, "llm_name": " \t ", "speed_ms": 1}),
        ("record_speed", {"day": 1, "phase": 1, "llm_name": "a\nb", "speed_ms": 1}),
        ("record_speed", {"day": 1, "phase": 1, "llm_name": "x" * 201, "speed_ms": 1}),
        ("record_speed", {"day": 1, "phase": 1, "llm_name": "gpt4", "speed_ms": -1}),
        ("record_speed", {"day": 1, "phase": 1, "llm_name": "gpt4", "speed_ms": 2**63}),
        ("record_speed", {"day": 1, "phase": 1, "llm_name": "gpt4", "speed_ms": 1.5}),
        ("record_speed", {"day": 1, "phase": 1, "llm_name": "gpt4"}),
        ("record_speed", {"day": True, "phase": 1, "llm_name": "gpt4", "speed_ms": 1}),
        ("no_such_tool", {}),
    ],
)
def test_what_does_not_fit_is_invalid_params(reading: tuple[Data, Peer], tool: str, arguments: Any) -> None:
    data, client = reading
    error = called(client, 9, tool, arguments)["error"]

    assert error["code"] == -32602
    assert error["message"].startswith("Invalid params")
    assert not data.speeds.exists()


def test_instructions_and_more_words_are_for_clients_newer_than_the_contract(data: Data) -> None:
    with data.served() as peer:
        result = peer.shake_hands("2025-06-18")["result"]
        tools = peer.request("tools/list")["result"]["tools"]

    assert "start_attempt before you read" in result["instructions"]
    by_name = {tool["name"]: tool for tool in tools}
    assert "aoc://dayNN/input" in by_name["fetch_instruction"]["description"]
    assert all(tool["title"] for tool in tools)
    properties = by_name["record_speed"]["inputSchema"]["properties"]
    assert properties["measure"]["enum"] == ["solving", "execution"]


def test_a_missing_uri_is_invalid_params(client: Peer) -> None:
    error = answer(client, {"id": 3, "method": "resources/read", "params": {}})["error"]

    assert error["code"] == -32602
    assert error["message"].startswith("Invalid params")


def test_a_missing_instruction_is_the_contracts_error(client: Peer) -> None:
    error = called(client, 6, "fetch_instruction", {"day": 7})["error"]

    assert error["code"] == -1
    assert error["message"].startswith(
        "Instruction file not found for day 7 (tried Day07_phase1.md and day07.json)"
    )
    assert "Put the puzzle text into" in error["message"]
