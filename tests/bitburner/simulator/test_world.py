"""World: servers by name and address, their files, and the save that holds them."""

import gzip
import json

from bridgehead.bitburner.simulator.world import Times, address
from tests.bitburner.simulator.asking import FILES, ask
from tests.support.clock import Clock
from tests.support.game import World


def test_the_save_file_is_gzip_with_one_character_a_byte() -> None:
    saved = ask(World(2, FILES), "getSaveFile")["result"]

    content = json.loads(gzip.decompress(saved["save"].encode("latin-1")))

    assert saved["binary"] is True
    assert content["data"]["identifier"] == saved["identifier"]
    assert content["data"]["servers"]["home"] == FILES["home"]


def test_a_server_answers_to_its_address_too() -> None:
    assert ask(World(2, FILES), "getFileNames", server=address("home"))["result"] == ["notes.txt", "run.js"]


def test_a_fresh_world_has_the_games_servers_and_one_with_files_only_theirs_and_home() -> None:
    assert {"home", "n00dles", "CSEC"} <= World().servers.keys()
    assert list(World(3, {"n00dles": {}}).servers) == ["home", "n00dles"]


def test_a_file_has_the_times_of_its_first_writing_last_writing_and_last_reading() -> None:
    clock = Clock(0.0)
    world = World(3, {"home": {"old.js": ""}}, now=clock.now)
    clock.advance(1.0)
    world.write("home", "a.js", "1")
    clock.advance(1.0)
    world.write("home", "a.js", "2")
    clock.advance(1.0)
    world.read("home", "a.js")

    assert world.times("home", "a.js") == Times(atime=3000, mtime=2000, btime=1000)
    assert world.times("home", "old.js") == Times(0, 0, 0)


def test_a_file_that_is_written_after_its_delete_is_a_new_one() -> None:
    clock = Clock(1.0)
    world = World(3, {"home": {"a.js": "1"}}, now=clock.now)
    world.delete("home", "a.js")
    clock.advance(4.0)
    world.write("home", "a.js", "2")

    assert world.times("home", "a.js").btime == 5000
    assert world.read("home", "b.js") is None


def test_scripts_and_texts_are_told_apart() -> None:
    world = World(3, {"home": {"a.js": "1", "b.txt": "2"}})

    assert (world.scripts("home"), world.texts("home")) == ({"a.js": "1"}, {"b.txt": "2"})
