"""The simulated game's answers beyond the recording: third generation, times, saves, odd messages."""

import gzip
import json
from typing import Any

import pytest

from bridgehead.bitburner.simulator import World, answer
from bridgehead.bitburner.simulator.world import address

FILES = {"home": {"run.js": "ns.scan()", "notes.txt": "héllo"}, "n00dles": {}}


def ask(world: World, method: str, **params: Any) -> dict[str, Any]:
    """Ask for a method and return the reply."""
    said = answer(world, json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}))
    assert said is not None
    reply: dict[str, Any] = json.loads(said)
    assert (reply.pop("jsonrpc"), reply.pop("id")) == ("2.0", 7)
    return reply


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


@pytest.mark.parametrize("generation", [2, 3])
def test_a_running_script_is_not_deleted(generation: int) -> None:
    world = World(generation, FILES)
    world.running.add(("home", "run.js"))

    refused = ask(world, "deleteFile", filename="run.js", server="home")

    assert refused == {"error": "Cannot delete a script that is currently running!"}
    assert "run.js" in world.servers["home"]


def test_style_sheets_are_files_of_the_third_generation_only() -> None:
    push = {"filename": "a.css", "content": "a{}", "server": "home"}

    assert ask(World(3, FILES), "pushFile", **push) == {"result": "OK"}
    assert ask(World(2, FILES), "pushFile", **push) == {"error": "Invalid file extension"}


def test_in_the_second_generation_a_deleted_program_is_lost() -> None:
    world = World(2)

    assert ask(world, "deleteFile", filename="NUKE.exe", server="home") == {"result": "OK"}
    assert ask(world, "deleteFile", filename="NUKE.exe", server="home") == {
        "error": "Program NUKE.exe does not exist"
    }


def test_metadata_tell_when_a_file_was_read_written_and_made() -> None:
    now = [1.0]
    world = World(3, FILES, now=lambda: now[0])
    now[0] = 2.0
    ask(world, "pushFile", filename="new.js", content="1", server="home")
    now[0] = 3.0
    ask(world, "pushFile", filename="new.js", content="2", server="home")
    now[0] = 4.0
    ask(world, "getFile", filename="new.js", server="home")

    one = ask(world, "getFileMetadata", filename="new.js", server="home")["result"]
    every = ask(world, "getAllFileMetadata", server="home")["result"]

    assert one == {"filename": "new.js", "atime": 4000, "mtime": 3000, "btime": 2000}
    assert [told["filename"] for told in every] == ["run.js", "new.js", "notes.txt"]
    assert every[0] == {"filename": "run.js", "atime": 1000, "mtime": 1000, "btime": 1000}


def test_later_builds_tell_the_size_in_bytes() -> None:
    world = World(3, FILES)
    world.tells_size = True

    told = ask(world, "getFileMetadata", filename="notes.txt", server="home")["result"]

    assert told["size"] == 6


def test_the_save_file_is_gzip_with_one_character_a_byte() -> None:
    saved = ask(World(2, FILES), "getSaveFile")["result"]

    content = json.loads(gzip.decompress(saved["save"].encode("latin-1")))

    assert saved["binary"] is True
    assert content["data"]["identifier"] == saved["identifier"]
    assert content["data"]["servers"]["home"] == FILES["home"]


def test_the_definitions_are_as_long_as_the_games_and_can_be_searched() -> None:
    text = ask(World(2), "getDefinitionFile")["result"]

    assert 330_000 < len(text) < 340_000
    assert "  hack(host: string, opts?: BasicHGWOptions): Promise<number>;" in text
    assert "RAM cost: 1.3 GB\n" in text
    assert "  exec(script: string, hostname: string," in text
    for hidden in (
        "class: number;",
        "public: boolean;",
        "declare enum PositionType",
        "RAM cost: 2 GB * 16/4/1",
    ):
        assert hidden in text


def test_a_server_answers_to_its_address_too() -> None:
    assert ask(World(2, FILES), "getFileNames", server=address("home"))["result"] == ["notes.txt", "run.js"]


def test_a_build_does_not_know_what_it_lacks() -> None:
    world = World(2, lacking={"getAllServers"})

    assert ask(world, "getAllServers") == {"error": "Unknown message received"}


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
