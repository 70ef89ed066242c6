"""`bridgehead dev`: a bridge that is started again while its client stays, and traffic that is shown."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any

from bridgehead.commands.dev import MAX_FOLDERS, inspector_command, list_source_folders
from tests.support.person import COMMAND, Interrupt, Person
from tests.support.waiting import PATIENCE

MODULE = """
from bridgehead.mcp import Arguments, Bridge, Context, stdio

bridge = Bridge("small", "1")

class Nothing(Arguments):
    pass

@bridge.tool("Say it.", read_only=True)
def say(args: Nothing, ctx: Context[None]) -> str:
    return "{said}"
"""
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


class Client:
    """A client of a bridge in development, and what the terminal shows."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.said: Queue[dict[str, Any]] = Queue()
        self.shown: Queue[str] = Queue()
        for stream, put in (
            (process.stdout, lambda line: self.said.put(json.loads(line))),
            (process.stderr, self.shown.put),
        ):
            threading.Thread(
                target=lambda stream=stream, put=put: [put(line) for line in stream], daemon=True
            ).start()
        self._last_id = 0

    def _read_answers(self) -> None:
        for line in self.process.stdout or ():
            self.said.put(json.loads(line))

    def _read_terminal(self) -> None:
        for line in self.process.stderr or ():
            self.shown.put(line)

    def send(self, method: str, params: dict[str, Any] | None = None, *, is_request: bool = True) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        if is_request:
            self._last_id += 1
            message["id"] = self._last_id
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        self.send(method, params)
        while True:
            message = self.said.get(timeout=PATIENCE)
            if message.get("id") == self._last_id:
                return message

    def wait_for(self, text: str) -> str:
        """Wait until the terminal shows something."""
        while text not in (line := self.shown.get(timeout=PATIENCE)):
            pass
        return line


@contextmanager
def developing(person: Person, *words: str) -> Iterator[Client]:
    with subprocess.Popen(
        [COMMAND, "dev", *words],
        cwd=person.home,
        env=person.environment(PYTHONIOENCODING="utf-8"),  # pipes of Windows have another one
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        client = Client(process)
        try:
            yield client
        finally:
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(PATIENCE) == 0


def text_of(answer: dict[str, Any]) -> str:
    text: str = answer["result"]["content"][0]["text"]
    assert answer["result"]["isError"] is True
    return text


def test_what_is_wrong_with_the_bridge_comes_back_in_the_result_with_file_and_line(person: Person) -> None:
    path = write_module(person, "hello")
    good = path.read_text(encoding="utf-8")
    broken = {
        "def broken(:\n": "SyntaxError",
        "@bridge.tool()\ndef undocumented(x: object) -> object: ...\n": "DeclarationError",
        "import nowhere_at_all\n": "ModuleNotFoundError",
    }
    with developing(person, "small.py") as client:
        client.request("initialize", HELLO)
        client.send("notifications/initialized", is_request=False)
        for code, kind in broken.items():
            path.write_text(good + code, encoding="utf-8")
            client.wait_for("changed")
            client.wait_for(f"{kind}:")
            text = text_of(client.request("tools/call", {"name": "say", "arguments": {}}))
            assert kind in text
            assert f"small.py, line {len(good.splitlines()) + 1}" in text
        path.write_text(good.replace('return "hello"', "return {}['missing']"), encoding="utf-8")
        client.wait_for("changed")
        while "not running" in (
            text := text_of(client.request("tools/call", {"name": "say", "arguments": {}}))
        ):
            pass  # the change is noticed, and the old process has not been replaced yet

    assert text == "small.py, line 11 (return {}['missing']): KeyError: 'missing'"


def test_a_declaration_that_cannot_work_is_a_line_and_a_sentence(person: Person) -> None:
    path = write_module(person, "hello")
    path.write_text(
        path.read_text(encoding="utf-8") + "@bridge.tool()\ndef odd(x: object): ...\n", encoding="utf-8"
    )

    for words in (["dev", "--child", "small.py"], ["tools", "small.py"]):
        done = person.run(*words)

        assert "Traceback" not in done.stderr
        assert "small.py, line 12" in done.stderr
        assert len(done.stderr.splitlines()) <= 2


async def test_alone_in_a_terminal_it_says_what_to_do_next(person: Person) -> None:
    write_module(person, "hello")

    _, _, shown = await person.sits("dev", "small.py", says=[("--inspect", Interrupt)])

    assert f"bridgehead tools {person.home}/small.py" in shown


def write_module(person: Person, said: str) -> Path:
    path = person.home / "small.py"
    path.write_text(MODULE.format(said=said), encoding="utf-8")
    return path


def greet(client: Client) -> None:
    client.request("initialize", HELLO)
    client.send("notifications/initialized", is_request=False)


def say(client: Client) -> dict[str, Any]:
    return client.request("tools/call", {"name": "say", "arguments": {}})


def test_a_change_is_served_to_the_client_that_is_connected(person: Person) -> None:
    write_module(person, "before")
    with developing(person, "small") as client:
        greet(client)
        before = say(client)
        write_module(person, "after")
        client.wait_for("small.py changed")
        told = client.said.get(timeout=PATIENCE)
        after = say(client)

    assert before["result"]["content"][0]["text"] == "before"
    assert told["method"] == "notifications/tools/list_changed"
    assert after["result"]["content"][0]["text"] == "after"


def test_a_bridge_that_does_not_start_is_an_error_until_it_is_fixed(person: Person) -> None:
    path = write_module(person, "before")
    with developing(person, "small") as client:
        greet(client)
        path.write_text("def broken(:\n", encoding="utf-8")
        client.wait_for("SyntaxError")
        broken = say(client)
        write_module(person, "fixed")
        client.wait_for("small.py changed")
        client.wait_for("prompts/list_changed")
        fixed = say(client)

    assert "small, line 1: SyntaxError" in text_of(broken)
    assert fixed["result"]["content"][0]["text"] == "fixed"


def test_the_terminal_shows_each_message_with_its_size_and_time(person: Person) -> None:
    write_module(person, "hello")
    with developing(person, "small") as client:
        greet(client)
        say(client)
        asked = client.wait_for("→ tools/call say")
        answered = client.wait_for("← tools/call say")

    assert " bytes" in asked
    assert " ms" in answered


def test_inspect_prints_a_command_that_starts_the_bridge(person: Person) -> None:
    write_module(person, "hello")
    done = person.run("dev", "small", "--inspect")
    words = done.stdout.split()

    assert (done.returncode, done.stderr) == (0, "")
    assert words[:3] == ["npx", "@modelcontextprotocol/inspector", "--"]
    assert words[4:] == ["-m", "bridgehead", "dev", "small", "--quiet"]


def test_the_inspector_gets_the_settings_of_a_bridge_without_their_values() -> None:
    command = inspector_command("mercury", {"MERCURY_API_KEY": "sk-secret", "AOC_DIR": "x"})

    end = '"--"' if sys.platform == "win32" else "--"
    passed = "$env:MERCURY_API_KEY" if sys.platform == "win32" else "$MERCURY_API_KEY"
    assert f' -e "MERCURY_API_KEY={passed}" {end} ' in command
    assert "sk-secret" not in command
    assert "AOC_DIR" not in command


def test_a_module_that_is_not_there_is_one_line(person: Person) -> None:
    done = person.run("dev", "nowhere.at_all")

    assert done.returncode == 2
    assert done.stderr.startswith("bridgehead dev: There is no module or bridge 'nowhere.at_all'.")
    assert done.stderr.count("\n") == 1


def test_only_folders_that_may_have_modules_of_the_author_are_watched(tmp_path: Path) -> None:
    for name in ("package/inner", ".git/objects", "node_modules/x", "env/lib", "my-data", "__pycache__"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "env" / "pyvenv.cfg").write_text("", encoding="utf-8")

    watched = {path.relative_to(tmp_path).as_posix() for path in list_source_folders(tmp_path)}

    assert watched == {".", "package", "package/inner"}


def test_the_number_of_watched_folders_has_a_limit(tmp_path: Path) -> None:
    for number in range(MAX_FOLDERS + 10):
        (tmp_path / f"folder{number}").mkdir()

    assert len(list_source_folders(tmp_path)) == MAX_FOLDERS


def test_a_file_is_served_and_a_change_of_a_file_beside_it_too(person: Person) -> None:
    (person.home / "beside").mkdir()
    beside = person.home / "beside" / "words.py"
    beside.write_text("SAID = 'before'\n", encoding="utf-8")
    text = MODULE.format(said="x").replace('"x"', "SAID") + "from beside.words import SAID\n"
    (person.home / "small server.py").write_text(text, encoding="utf-8")
    with developing(person, "small server.py:bridge") as client:
        greet(client)
        before = say(client)
        beside.write_text("SAID = 'afterwards'\n", encoding="utf-8")
        client.wait_for("words.py changed")
        client.wait_for("prompts/list_changed")
        after = say(client)

    assert before["result"]["content"][0]["text"] == "before"
    assert after["result"]["content"][0]["text"] == "afterwards"
