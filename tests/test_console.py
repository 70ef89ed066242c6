"""Every command in a block of a document is run, or held to a form where it cannot run here.

In a `console` block, which has output too, a command begins with `$ `. Our own is run in an empty home, in
the order of the document, and has to succeed; what runs it through uvx, the archive or a container is run as
our own. Of everything else (pip, docker, systemctl, …) the form is checked, and that the files that it names
are there.
"""

import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path
from threading import Timer

import pytest

import tasks
from bridgehead.runtime import plugins
from tests.support import waiting

ROOT = Path(__file__).parent.parent
ELSEWHERE = {"first-bridge.md", "api-aoc.md", "api-bitburner.md", "api-mercury.md"}
"""Pages whose commands other tests run: tests/test_first_bridge.py and tests/test_generated_documents.py."""
DOCUMENTS = sorted(
    page for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")] if page.name not in ELSEWHERE
)
PROGRAM = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHELL = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)

OURS = re.compile(
    r"(?:(?:sudo --user=\w+ )?env )?(?P<settings>(?:[A-Z_]+=\S+ )*)"
    r"(?:uvx |python3 |docker compose run --rm |docker run (?:--\S+ (?:\S*:\S+ )?)*|\S*bridgehead/bin/)?"
    r"bridgehead(?:\.pyz|:[\d.]+)?(?P<arguments>(?: [^&]+)?)"
)
FORMS = [
    re.compile(form)
    for form in (
        r"(?:uv tool|pipx) (?:install|upgrade|uninstall) bridgehead",
        r"pip install ([\"'])bridgehead\[[a-z,]+\]\1",
        r"apt install bubblewrap",
        r"export(?: [A-Z_]+=(?:\$\(openssl rand -base64 32\)|\S+))+(?: && mkdir -p \S+)?",
        r"export PATH=\"\$PWD/\.runtime/bin:\$PATH\"",
        r"curl (?:--no-buffer --header \"Authorization: Bearer \$TOKEN\" )?http://(?:localhost|127\.0\.0\.1):\d+/[a-z]+",
        r"(?:uvicorn|granian --interface asgi) --factory bridgehead\.host\.asgi:create_app --port \d+",
        r"kubectl (?:--namespace bridgehead )?(?:create|apply|exec) .+",
        r"docker compose --file compose\.yaml --file (?P<file>\S+) up --build",
        r"cd \S+",
        r"(?:bridgehead serve [a-z]+ [a-z]+ & ?)+",
        r"python (?P<file>examples/\S+\.py)",
        r"(?:sudo )?python3 -m venv \S+",
        r"(?:sudo )?\S+/bin/pip install (?:--no-deps )?(?:bridgehead|dist/bridgehead-\*\.whl)",
        r"(?:sudo )?\S+/bin/pip install --require-hashes --requirement (?P<file>\S+)",
        r"docker build (?:--build-arg \w+=\w+ )?--tag bridgehead \.",
        r"docker compose (?:up --detach --wait|cp instructions bridgehead:/data/|logs bridgehead)",
        r"sudo useradd --system --home-dir \S+ --shell \S+ bridgehead",
        r"sudo install (?:-D )?--mode=0\d{3} (?:\.env|(?P<file>\S+)) /etc/\S+",
        r"sudo systemctl (?:daemon-reload|(?:enable --now|restart|status) bridgehead)",
        r"journalctl --unit bridgehead --follow",
        r"make (?P<verb>[a-z]+)",
    )
]
SERVING = ("serve", "mercury simulate", "bitburner simulate")
"""What goes on until it is told to end."""
FINDING = ("doctor", "check")
"""What may end with 1, because it found something."""
ASKING = ("aoc cookie", "aoc fetch")
"""What needs something that only the reader has, and says so in one line."""
TOURS = {"demo", "aoc bench --demo"}
"""What takes seconds and has tests of its own: commands/test_demo.py, aoc/bench/test_command.py."""
ABSENT = ("db ", "aoc import", "aoc bench --agent", "aoc bench --init")
"""What needs a database, an agent or a network: tests of their own run it."""
NEEDS_GAME = "bitburner sync"
"""What waits for a game, and says that none has come."""
PATIENCE = waiting.PATIENCE
RECORD = """\
{"day": 1, "entries": [{"llm": "fox", "phase": 1, "speedMs": 12, "timestamp": "2025-12-01T10:30:00.000Z"}]}
"""

SERVER = """\
from bridgehead.mcp import Arguments, Bridge, Context

weather = Bridge("weather", "1.0.0")


class Forecast(Arguments):
    place: str


@weather.tool("The forecast for a place.", read_only=True)
def forecast(args: Forecast, ctx: Context[None]) -> str:
    return f"{args.place}: fine"
"""


def commands(document: Path) -> list[str]:
    """The commands of a document, each in one line."""
    text = document.read_text(encoding="utf-8").replace("\\\n", "")
    shown = "".join(CONSOLE.findall(text)).splitlines()
    typed = [line.removeprefix("$ ") for line in shown if line.startswith("$ ")]
    return [*typed, *filter(None, "".join(SHELL.findall(text)).splitlines())]


@cache
def offered() -> set[str]:
    """The words that the help names first in a line."""
    text = run("--help", {}, ROOT).stdout
    return {line.split()[0] for line in text.splitlines() if line.strip()}


def environment(settings: dict[str, str], home: Path) -> dict[str, str]:
    # A port of the system's choice, because another test may run at the same time.
    own = {"PATH": os.environ["PATH"], "HOME": str(home), "XDG_STATE_HOME": str(home), "COLUMNS": "120"}
    return own | {"MCP_SERVER_PORT": "0", "BITBURNER_LISTEN": "127.0.0.1:0"} | settings


def words(arguments: str) -> list[str]:
    command = Path(
        sysconfig.get_path("scripts"), "bridgehead.exe" if sys.platform == "win32" else "bridgehead"
    )
    return [str(command), *arguments.split()]


def run(arguments: str, settings: dict[str, str], home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words(arguments),
        env=environment(settings, home),
        cwd=home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def run_until_it_speaks(arguments: str, settings: dict[str, str], home: Path) -> int:
    """Start what goes on, wait for its first line, tell it to end, and return its exit status."""
    with subprocess.Popen(
        words(arguments),
        env=environment(settings, home),
        cwd=home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        too_late = Timer(PATIENCE, process.kill)
        too_late.start()
        assert process.stdout is not None
        assert process.stdout.readline(), f"bridgehead {arguments}: it said nothing"
        too_late.cancel()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
        return process.returncode


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home of a person with Cursor, a bridge in a file, and an invented puzzle that was solved once."""
    (tmp_path / "server.py").write_text(SERVER, encoding="utf-8")
    (tmp_path / ".cursor").mkdir()
    (tmp_path / "puzzles").mkdir()
    (tmp_path / "instructions").mkdir()
    (tmp_path / "instructions" / "Day01_phase1.md").write_text(
        "How many lanterns are lit?\n", encoding="utf-8"
    )
    (tmp_path / "speeds").mkdir()
    (tmp_path / "speeds" / "day01.json").write_text(RECORD, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("document", [one for one in DOCUMENTS if commands(one)], ids=lambda path: path.name)
def test_every_command_of_a_document_does_what_it_should(document: Path, home: Path) -> None:
    there = offered() | {"--version"}
    if document.name == "README.md":  # it shows the file that its commands use
        program = PROGRAM.findall(document.read_text(encoding="utf-8"))[0]
        (home / "server.py").write_text(program, encoding="utf-8")
    for command in commands(document):
        ours = OURS.fullmatch(command)
        if ours is None:
            check_form(command)
            continue
        arguments = ours["arguments"].strip()
        word = arguments.split(" ")[0]
        assert word in there, f"{command}: there is no such command"
        if arguments not in TOURS and not arguments.startswith(ABSENT):
            check_run(arguments, dict(pair.split("=", 1) for pair in ours["settings"].split()), home)


def check_run(arguments: str, settings: dict[str, str], home: Path) -> None:
    # Places of another machine: what is named must work, not be there.
    settings = {name: value for name, value in settings.items() if not value.startswith("/")}
    if arguments.startswith(SERVING):
        assert run_until_it_speaks(arguments, settings, home) == 0, arguments
        return
    if arguments.startswith(NEEDS_GAME):
        done = run(f"{arguments} --wait 0", settings, home)
        assert (done.returncode, "Traceback" in done.stderr) == (1, False), done.stderr
        assert "Remote API" in done.stdout
        return
    done = run(arguments, settings, home)
    if arguments.startswith(ASKING):
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
        return
    allowed = (0, 1) if any(word in arguments.split() for word in FINDING) else (0,)
    assert done.returncode in allowed, f"bridgehead {arguments}: {done.stderr}{done.stdout}"
    assert "Traceback" not in done.stderr


def check_form(command: str) -> None:
    found = next((match for form in FORMS if (match := form.fullmatch(command))), None)
    assert found is not None, f"{command}: neither ours nor of a known form"
    named = found.groupdict()
    if named.get("file"):
        assert (ROOT / named["file"]).exists(), command
    if named.get("verb"):
        assert named["verb"] in tasks.VERBS, command


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_a_command_that_is_shown_is_marked_as_one(document: Path) -> None:
    blocks = CONSOLE.findall(document.read_text(encoding="utf-8"))

    assert [block for block in blocks if not block.startswith("$ ")] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_no_command_of_ours_is_in_a_block_that_nobody_looks_at(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    blocks = re.findall(r"^```(?:text)?\n(.*?)^```", text, re.MULTILINE | re.DOTALL)

    assert [block for block in blocks if block.startswith("bridgehead ")] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_configuration_that_is_shown_starts_a_bridge_with_settings_that_exist(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    shown = [
        json.loads(block) for block in re.findall(r"^ *```json\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)
    ]
    files = [one for one in shown if isinstance(one, dict) and {"mcpServers", "servers"} & one.keys()]
    for entry in (entry for file in files for servers in file.values() for entry in servers.values()):
        *_, bridge = entry["args"]
        assert [entry["command"], *entry["args"][:-1]] in (["bridgehead"], ["uvx", "bridgehead"])
        declared = {setting.name for setting in plugins.load(bridge).settings.declared}
        assert entry.get("env", {}).keys() <= declared


@pytest.mark.parametrize(
    "command",
    ["docker compose down", "pipx install something", "make coffee", "uvx something", "rm -rf build"],
)
def test_a_command_of_no_known_form_is_noticed(command: str) -> None:
    assert OURS.fullmatch(command) is None
    with pytest.raises(AssertionError):
        check_form(command)
