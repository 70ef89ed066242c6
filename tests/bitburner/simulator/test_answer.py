"""The simulated game's answers beyond the recording: third generation, times, saves, odd messages."""

from typing import Any

import pytest

from tests.bitburner.simulator.asking import FILES, ask
from tests.support.game import World, answer


@pytest.mark.parametrize(
    ("method", "params", "error"),
    [
        ("getFile", {"filename": 1, "server": "home"}, 'Invalid params: {"filename":1,"server":"home"}'),
        ("getFileNames", {}, "Invalid params: {}"),
        ("getFileNames", {"server": "HOME"}, "Invalid hostname: HOME"),
        ("getFile", {"filename": "a b.js", "server": "home"}, "Invalid file path: a b.js"),
        ("getFile", {"filename": "a.exe", "server": "home"}, "Invalid file extension. Filename: a.exe"),
        (
            "deleteFile",
            {"filename": "NUKE.exe", "server": "home"},
            "Invalid file extension. Filename: NUKE.exe",
        ),
        ("deleteFile", {"filename": "no.js", "server": "home"}, "Script no.js not found."),
        ("deleteFile", {"filename": "no.txt", "server": "home"}, "Text file no.txt not found."),
        ("getFile", {"filename": "no.js", "server": "home"}, "File does not exist. Filename: no.js"),
        ("getFile", {"filename": "/no.js", "server": "home"}, "File does not exist. Filename: /no.js"),
        ("getFile", {"filename": "a.exe", "server": "nope"}, "Invalid file extension. Filename: a.exe"),
        ("calculateRam", {"filename": "x.exe", "server": "home"}, "Invalid file extension. Filename: x.exe"),
        ("getFileMetadata", {"filename": "no.js", "server": "home"}, "File does not exist. Filename: no.js"),
        (
            "calculateRam",
            {"filename": "notes.txt", "server": "home"},
            "File is not a script. Filename: notes.txt",
        ),
        ("calculateRam", {"filename": "no.js", "server": "home"}, "File does not exist. Filename: no.js"),
        (
            "calculateRam",
            {"filename": "bad.js", "server": "home"},
            "Cannot calculate RAM usage of an invalid script. Filename: bad.js",
        ),
        ("toStrin", {}, "Unknown message received"),
    ],
)
def test_the_third_generation_names_what_it_refuses(method: str, params: dict[str, Any], error: str) -> None:
    world = World(3, {"home": {**FILES["home"], "bad.js": "("}})

    assert ask(world, method, **params) == {"error": error}


@pytest.mark.parametrize(
    "params", ['"params": null', '"x": 1', '"params": 0', '"params": ""', '"params": false']
)
def test_without_params_the_third_generation_says_so(params: str) -> None:
    said = answer(World(3), f'{{"id": 1, "method": "getFile", {params}}}')

    assert said == b'{"jsonrpc":"2.0","id":1,"error":"Missing params"}'


def test_the_second_generation_puts_the_id_last_and_the_third_before_the_result() -> None:
    request = '{"jsonrpc":"2.0","id":5,"method":"getFileNames","params":{"server":"home"}}'

    assert answer(World(2, {"home": {}}), request) == b'{"jsonrpc":"2.0","result":[],"id":5}'
    assert answer(World(3, {"home": {}}), request) == b'{"jsonrpc":"2.0","id":5,"result":[]}'


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("constructor", b'{"id":1,"method":"constructor"}'),
        ("valueOf", b"{}"),
        ("toString", b'"[object Object]"'),
        ("hasOwnProperty", None),
        ("__proto__", None),
    ],
)
def test_methods_of_every_object_reach_javascripts_own(method: str, said: bytes | None) -> None:
    assert answer(World(2), f'{{"id":1,"method":"{method}"}}') == said


def test_half_a_surrogate_pair_comes_back_as_a_browser_writes_it() -> None:
    world = World(2)
    push = r'{"id":1,"method":"pushFile","params":{"filename":"a.txt","content":"é\ud83d!","server":"home"}}'
    get = '{"id":2,"method":"getFile","params":{"filename":"a.txt","server":"home"}}'

    assert answer(world, push) == b'{"jsonrpc":"2.0","result":"OK","id":1}'
    assert answer(world, get) == '{"jsonrpc":"2.0","result":"é\\ud83d!","id":2}'.encode()


@pytest.mark.parametrize("text", ["NaN", "[" * 100_000, "{'a': 1}", ""])
def test_what_is_no_json_gets_no_reply(text: str) -> None:
    assert answer(World(3), text) is None


@pytest.mark.parametrize("text", ['{"method": []}', '{"method": {"a": 1}}', "5", '"getFile"', "{}"])
def test_what_names_no_method_is_unknown(text: str) -> None:
    assert answer(World(3), text) == b'{"jsonrpc":"2.0","error":"Unknown message received"}'


def test_there_is_no_fourth_generation() -> None:
    with pytest.raises(ValueError, match="no generation 4"):
        World(4)
