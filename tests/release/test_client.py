"""The client of the smoke test must notice what is wrong, or the smoke test is worth nothing."""

import os
import sys
from pathlib import Path

import pytest

from release.client import Client
from release.dist import ROOT

GREETER = (sys.executable, str(ROOT / "examples" / "greeter.py"))


def client(*command: str, folder: Path) -> Client:
    return Client(command or GREETER, os.environ, folder)


def test_a_server_that_works_is_asked_to_the_end(tmp_path: Path) -> None:
    with client(folder=tmp_path) as asked:
        assert asked.hello()["name"] == "greeter"
        assert asked.tools() == ["greet"]
        assert "Hello, Ada!" in asked.call("greet", {"name": "Ada"})


def test_a_tool_that_fails_is_a_failure(tmp_path: Path) -> None:
    with client(folder=tmp_path) as asked:
        asked.hello()
        with pytest.raises(AssertionError, match="greet failed"):
            asked.call("greet", {"name": 1})


def test_a_method_that_is_refused_is_a_failure(tmp_path: Path) -> None:
    with client(folder=tmp_path) as asked:
        asked.hello()
        with pytest.raises(AssertionError, match="nonsense failed"):
            asked.ask("nonsense", {})


def test_a_server_that_says_nothing_is_a_failure_that_tells_its_log(tmp_path: Path) -> None:
    program = "import sys; sys.stdin.readline(); sys.exit('no key')"
    with (
        pytest.raises(AssertionError, match="did not answer") as failed,
        client(sys.executable, "-c", program, folder=tmp_path) as asked,
    ):
        asked.hello()

    assert failed.value.__notes__ == ["no key\n"]


def test_a_server_that_ends_badly_is_a_failure(tmp_path: Path) -> None:
    program = "import sys; sys.stdin.read(); sys.exit(3)"
    with (
        pytest.raises(AssertionError, match="exit status 3"),
        client(sys.executable, "-c", program, folder=tmp_path),
    ):
        pass
