"""Envelopes: ids that come back as they were sent, and bytes that are no message."""

import json
import tracemalloc

import msgspec
import pytest

from bridgehead.mcp import Arguments, Bridge, Context, ProtocolError, jsonrpc
from tests.support.checked import STATELESS, connect


class Said(Arguments):
    text: str


bridge: Bridge[None] = Bridge("envelopes", "1")


@bridge.tool("Say it back.")
async def echo(args: Said, ctx: Context[None]) -> str:
    return args.text


@pytest.mark.parametrize("sent", ["1", "0", "-7", "9007199254740993", '"1"', '""', '"ä \\"quoted\\" 𝄞"'])
@pytest.mark.parametrize("method", ["ping", "tools/list", "nonsense"])
async def test_an_id_comes_back_exactly_as_it_was_sent(sent: str, method: str) -> None:
    async with connect(bridge) as client:
        reply = client.dispatcher.handle_message(
            jsonrpc.decode(f'{{"jsonrpc":"2.0","id":{sent},"method":"{method}"}}'.encode()),
            client.connection,
            client,
        )

    assert isinstance(reply, bytes)
    assert f'"id":{sent},'.encode() in reply.replace(b"\\u00e4", "ä".encode())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"nonsense",
        b'{"jsonrpc":"2.0","id":1,"method":"ping"',
        b'{"jsonrpc":"2.0","id":1,"method":"ping"} and more',
        b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}',
        b"\x00\x01\x02",
        b"[" * 100_000,
        b"[" * 10**6 + b"]" * 10**6,  # deeper than any Python decodes
    ],
)
async def test_bytes_that_are_not_json_are_answered_with_a_parse_error_and_id_null(data: bytes) -> None:
    async with connect(bridge) as client:
        answer = await client.raw(data)

    assert answer["id"] is None
    assert answer["error"]["code"] == -32700
    assert answer["error"]["message"].startswith("Parse error")


@pytest.mark.parametrize(
    ("data", "request_id"),
    [
        (b"42", None),
        (b'"ping"', None),
        (b"null", None),
        (b"{}", None),
        (b"[]", None),
        (b'{"id":5,"method":"ping"}', 5),
        (b'{"jsonrpc":"1.0","id":"a","method":"ping"}', "a"),
        (b'{"jsonrpc":"2.0","id":6}', 6),
        (b'{"jsonrpc":"2.0","id":7,"method":5}', 7),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', None),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', None),
        (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', None),
    ],
)
async def test_json_that_is_no_message_is_an_invalid_request_with_the_id_where_there_is_one(
    data: bytes, request_id: object
) -> None:
    async with connect(bridge) as client:
        answer = await client.raw(data)

    assert answer["id"] == request_id
    assert answer["error"]["code"] == -32600
    assert answer["error"]["message"].startswith("Invalid request: ")


@pytest.mark.parametrize("params", ["5", '"text"', "[]", "true"])
async def test_parameters_that_are_no_object_are_refused(params: str) -> None:
    async with connect(bridge) as client:
        answer = await client.raw(
            f'{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{params}}}'.encode()
        )

    assert answer["error"]["code"] == -32602
    assert "tools/list" in answer["error"]["message"]


@pytest.mark.parametrize(
    "data",
    [
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
        b'{"jsonrpc":"2.0","method":"notifications/unheard/of","params":{"a":1}}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled"}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[]}}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"unknown"}}',
        b'{"jsonrpc":"2.0","method":"tools/list"}',
        b'{"jsonrpc":"2.0","id":99,"result":{}}',
        b'{"jsonrpc":"2.0","id":"","result":{}}',
        b'{"jsonrpc":"2.0","id":99,"error":{"code":1,"message":"no"}}',
        b'{"jsonrpc":"2.0","error":{"code":1,"message":"no"}}',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"no"}}',
    ],
)
async def test_notifications_and_answers_are_never_answered(data: bytes) -> None:
    async with connect(bridge) as client:
        before = len(client.sent)

        assert await client.raw(data) is None
        assert len(client.sent) == before


async def test_half_a_surrogate_pair_is_refused_with_the_id_of_its_request() -> None:
    params = r'{"name":"echo","arguments":{"text":"half an emoji: \ud83d"}}'
    async with connect(bridge) as client:
        answer = await client.raw(
            f'{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}'.encode()
        )

    assert answer["id"] == 7
    assert answer["error"]["code"] == -32700
    assert "half a character" in answer["error"]["message"]


def test_only_half_a_surrogate_pair_is_called_half_a_character() -> None:
    refused = jsonrpc.decode(b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"share":NaN}}')

    assert isinstance(refused, jsonrpc.Malformed)
    assert (refused.error.code, refused.id) == (-32700, 7)
    assert "half a character" not in refused.error.message


async def test_an_id_that_cannot_be_said_back_is_answered_with_null() -> None:
    async with connect(bridge) as client:
        answer = await client.raw(rb'{"jsonrpc":"2.0","id":"half an emoji: \ud83d","method":"ping"}')

    assert (answer["id"], answer["error"]["code"]) == (None, -32700)


@pytest.mark.parametrize(
    "method", ["tools/call", "prompts/list", "resources/list", "completion/complete", "x"]
)
async def test_a_method_that_the_bridge_does_not_offer_is_not_found(method: str) -> None:
    empty: Bridge[None] = Bridge("empty", "1", logging=False)
    async with connect(empty) as client, connect(empty, revision=STATELESS) as stateless:
        for one in (client, stateless):
            assert (await one.error(method))["code"] == -32601
            assert method in (await one.error(method))["message"]


@pytest.mark.parametrize(
    ("data", "wants"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', True),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', True),
        (b'{"jsonrpc":"2.0","method":"notifications/initialized"}', False),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', False),
        (b"nonsense", False),
    ],
)
def test_requests_are_told_from_what_wants_no_answer(data: bytes, *, wants: bool) -> None:
    assert jsonrpc.is_request(jsonrpc.decode(data)) is wants


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"[]", "the batch is empty"),
        (b"5", "it is not an object"),
        (b'{"jsonrpc":"2.0","id":1}', "it has no method, result or error"),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', "method must be a string (got an integer)"),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', "jsonrpc cannot be '1.0'"),
        (b"1e999999", "Number out of range"),
    ],
)
def test_what_is_wrong_with_a_message_is_said(data: bytes, problem: str) -> None:
    decoded = jsonrpc.decode(data)

    assert isinstance(decoded, jsonrpc.Malformed)
    assert decoded.error.message == f"Invalid request: {problem}"


@pytest.mark.parametrize(
    ("data", "answered"),
    [
        (b'{"jsonrpc":"1.0","id":5,"result":{}}', 5),
        (b'{"jsonrpc":"1.0","id":"five","error":{}}', "five"),
        (b'{"jsonrpc":"1.0","id":[],"error":{}}', msgspec.UNSET),
    ],
)
def test_a_broken_answer_reaches_whoever_waits_for_it(data: bytes, answered: object) -> None:
    decoded = jsonrpc.decode(data)

    assert isinstance(decoded, jsonrpc.Message)
    assert (decoded.id, decoded.result) == (answered, msgspec.UNSET)
    assert isinstance(decoded.error, msgspec.Raw)
    assert jsonrpc.decode_value(decoded.error) is None


def test_a_broken_request_is_answered_whatever_else_it_holds() -> None:
    decoded = jsonrpc.decode(b'{"jsonrpc":"1.0","id":5,"method":"ping","result":{}}')

    assert isinstance(decoded, jsonrpc.Malformed)
    assert decoded.id == 5


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"unknown":"\x9c"}}',
        b'{"jsonrpc":1e400,"id":"a\xed\xa0\x80","method":"ping"}',
        b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping","params":["\x9c"]}]',
    ],
    ids=["where nobody reads it", "behind a number beyond every type", "in one message of a batch"],
)
def test_broken_utf_8_is_a_parse_error_of_all_wherever_it_stands(line: bytes) -> None:
    expect_parse_error(line)


@pytest.mark.parametrize("space", [b"\x0b", b"\x0c"])
@pytest.mark.parametrize("value", [b"-0", b"[]", b'{"jsonrpc":"2.0","id":1,"method":"ping"}'])
def test_white_space_of_other_languages_is_a_parse_error(space: bytes, value: bytes) -> None:
    expect_parse_error(space + value)


def expect_parse_error(line: bytes) -> None:
    broken = jsonrpc.decode(line)

    assert isinstance(broken, jsonrpc.Malformed)
    assert (broken.error.code, broken.id) == (-32700, None)


@pytest.mark.parametrize(("rest", "code", "request_id"), [(b"}", -32600, 1), (b"", -32700, None)])
def test_a_number_beyond_every_type_is_refused_with_the_id_where_the_rest_is_json(
    rest: bytes, code: int, request_id: int | None
) -> None:
    refused = jsonrpc.decode(b'{"jsonrpc":"1.0","id":1,"method":"ping","params":[1e400]' + rest)

    assert isinstance(refused, jsonrpc.Malformed)
    assert (refused.error.code, refused.id) == (code, request_id)


def test_an_id_in_any_letters_is_one_to_answer_with() -> None:
    decoded = jsonrpc.decode('{"jsonrpc":"1.0","id":"fünf","method":"ping"}'.encode())

    assert isinstance(decoded, jsonrpc.Malformed)
    assert decoded.id == "fünf"


def test_a_batch_inside_a_batch_is_refused_alone() -> None:
    batch = jsonrpc.decode(b'[[{"jsonrpc":"2.0","id":1,"method":"ping"}],{"jsonrpc":"2.0","method":"x"}]')

    assert isinstance(batch, jsonrpc.Batch)
    refused, kept = batch.items
    assert isinstance(refused, jsonrpc.Malformed)
    assert refused.error.message == "Invalid request: a batch inside a batch"
    assert isinstance(kept, jsonrpc.Message)


def test_what_we_send_is_written_as_json_rpc() -> None:
    failure = ProtocolError(-32000, "No.", {"why": 1})

    assert json.loads(jsonrpc.request("a", "m", {"p": 1})) == {
        "jsonrpc": "2.0",
        "id": "a",
        "method": "m",
        "params": {"p": 1},
    }
    assert json.loads(jsonrpc.notification("m")) == {"jsonrpc": "2.0", "method": "m"}
    assert json.loads(jsonrpc.notification("m", {})) == {"jsonrpc": "2.0", "method": "m", "params": {}}
    assert json.loads(jsonrpc.result(7, b"{}")) == {"jsonrpc": "2.0", "id": 7, "result": {}}
    assert json.loads(jsonrpc.error(None, failure)) == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -32000, "message": "No.", "data": {"why": 1}},
    }


def test_an_error_with_data_that_json_cannot_write_is_sent_without_it() -> None:
    sent = json.loads(jsonrpc.error(1, ProtocolError(-32000, "Nö.", object())))

    assert sent["error"] == {"code": -32000, "message": "'N\\xf6.'"}


def test_a_part_of_a_message_is_decoded_as_a_type_or_as_values() -> None:
    assert jsonrpc.decode_as(msgspec.Raw(b'{"text":"a"}'), Said).text == "a"
    assert jsonrpc.decode_value(msgspec.Raw(b"[1]")) == [1]
    assert jsonrpc.decode_value(msgspec.UNSET) is None


@pytest.mark.parametrize("item", [b"1", b"[]", b"{}", b'{"jsonrpc":"2.0","id":1,"method":"ping"}'])
def test_an_array_of_more_than_a_batch_may_have_is_refused_without_reading_it(item: bytes) -> None:
    jsonrpc._items_type.cache_clear()  # noqa: SLF001 - made anew, as by a process that has just begun
    most = jsonrpc.MAX_BATCH_ITEMS
    full = jsonrpc.decode(b"[%b]" % b",".join([item] * most))
    over = jsonrpc.decode(b"[%b nonsense" % ((item + b",") * (most + 1)))

    assert isinstance(full, jsonrpc.Batch)
    assert len(full.items) == most
    assert isinstance(over, jsonrpc.Malformed)
    assert over.error.message == "Invalid request: a batch may have 1024 messages"


@pytest.mark.parametrize(
    "data",
    [
        b'{"jsonrpc":"1.0","id":7,"method":"ping","params":[%b{}]}',
        b"[%b{}]",
        b"[[%b{}]]",
        b"%b",
        b'{"jsonrpc":"2.0","id":7,"method":"ping","params":[%b"\\ud800"]}',
    ],
)
def test_what_is_large_and_wrong_is_refused_without_building_it(data: bytes) -> None:
    large = data % (b"{}," * 300_000)
    tracemalloc.start()
    try:
        found = jsonrpc.decode(large)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert not isinstance(found, jsonrpc.Message)
    assert peak < 4 * len(large)  # its values would take twenty times as much


@pytest.mark.parametrize(
    ("head", "request_id"),
    [
        (b'"id":7', 7),
        (b'"id":"a"', "a"),
        (b'"id":null', None),
        (b'"id":[1]', None),
        (b'"no":7', None),
        (b'"id":"%b"' % (b"a" * 1022), "a" * 1022),
        (b'"id":"%b"' % (b"a" * 1023), None),
    ],
)
def test_what_is_large_and_wrong_is_answered_under_its_id(head: bytes, request_id: object) -> None:
    found = jsonrpc.decode(b'{"jsonrpc":"1.0",%b,"method":"ping","params":"%b"}' % (head, b"x" * 100_000))

    assert isinstance(found, jsonrpc.Malformed)
    assert (found.error.code, found.id) == (-32600, request_id)


@pytest.mark.parametrize(
    "large",
    [b'{"jsonrpc":"1.0","id":7,"method":"\xff%b"}', b'"%b', b"%b"],
)
def test_what_is_large_and_not_json_is_a_parse_error(large: bytes) -> None:
    found = jsonrpc.decode(large % (b"x" * 100_000))

    assert isinstance(found, jsonrpc.Malformed)
    assert (found.error.code, found.id) == (-32700, None)


def test_the_id_of_a_small_message_is_found_though_only_a_lax_reader_can_read_it() -> None:
    half = b'{"jsonrpc":"1.0","id":7,"method":"ping","params":["\\ud800","%b"]}'
    for size, request_id in ((60_000, 7), (70_000, None)):
        found = jsonrpc.decode(half % (b"x" * size))
        assert isinstance(found, jsonrpc.Malformed)
        assert found.id == request_id
