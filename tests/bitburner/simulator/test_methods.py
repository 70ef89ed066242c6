"""Methods: each does what the game of its generation does, and refuses in its words."""

import pytest

from tests.bitburner.simulator.asking import FILES, ask
from tests.support.clock import Clock
from tests.support.game import World


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
    clock = Clock(1.0)
    world = World(3, FILES, now=clock.now)
    clock.advance(1.0)
    ask(world, "pushFile", filename="new.js", content="1", server="home")
    clock.advance(1.0)
    ask(world, "pushFile", filename="new.js", content="2", server="home")
    clock.advance(1.0)
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


def test_a_build_does_not_know_what_it_lacks() -> None:
    world = World(2, lacking={"getAllServers"})

    assert ask(world, "getAllServers") == {"error": "Unknown message received"}
