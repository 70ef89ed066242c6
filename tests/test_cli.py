"""The installed command, run as the process that a person or an MCP client would start."""

import json
import signal
import socket
import subprocess
import sys
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest

from bridgehead.commands import COMMANDS
from bridgehead.runtime import logs, plugins
from tests.support.messages import encode, initialize
from tests.support.person import COMMAND, Person
from tests.support.ports import free_port, wait_until_listening
from tests.support.waiting import PATIENCE

FULL = Path("/dev/full")
HELLO = encode(initialize()).decode() + "\n"


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)


def bridgehead(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run(COMMAND, *arguments)


@cache
def help_text() -> str:
    return bridgehead("--help").stdout


def test_version_is_the_version_of_the_installed_distribution() -> None:
    done = bridgehead("--version")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"bridgehead {metadata.version('bridgehead')}\n"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no HOME")
def test_an_empty_home_is_one_that_is_not_set_and_not_the_root_of_the_disk() -> None:
    unset = run("env", "-u", "HOME", COMMAND, "install", "--list")
    empty = run("env", "HOME=", COMMAND, "install", "--list")

    assert ".cursor" in unset.stdout
    assert empty.stdout == unset.stdout


@pytest.mark.skipif(not FULL.exists(), reason="there is no disk that is always full")
def test_a_command_that_has_no_room_to_write_says_so_in_one_line() -> None:
    with FULL.open("w") as full:
        done = subprocess.run(
            [COMMAND, "tools", "aoc"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    assert done.returncode == 1
    assert done.stderr == "bridgehead: No space left to write the output. Free some and run it again.\n"


@pytest.mark.parametrize("arguments", [[], ["help"], ["--help"], ["-h"], ["help", "help"]])
def test_help_is_what_a_newcomer_gets_on_standard_output(arguments: list[str]) -> None:
    done = bridgehead(*arguments)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: bridgehead ")
    assert all(name in done.stdout for name in ("--version", "help", "install", "doctor"))


def test_help_of_a_command_is_its_own() -> None:
    done = bridgehead("help", "install")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: bridgehead install ")


@pytest.mark.skipif(not FULL.exists(), reason="there is no disk that is always full")
@pytest.mark.parametrize("words", [["help"], ["--version"], ["db", "--help"]])
def test_help_that_has_no_room_to_write_says_so_in_one_line(words: list[str]) -> None:
    with FULL.open("w") as full:
        done = subprocess.run(
            [COMMAND, *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False
        )

    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "No space left" in done.stderr


def test_an_unknown_subcommand_is_named_as_a_command() -> None:
    assert bridgehead("db", "foo").stderr.startswith("bridgehead db: Unknown command 'foo'. ")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps the folder of a running process")
@pytest.mark.parametrize("words", [["doctor", "aoc"], ["aoc", "init"], ["install", "--list"]])
def test_a_current_folder_that_is_gone_is_one_line(tmp_path: Path, words: list[str]) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(
        ["/bin/sh", "-c", 'rmdir "$0" && exec "$@"', str(gone), str(COMMAND), *words],
        cwd=gone,
        env=Person(tmp_path).environment(AOC_DATA_DIR=""),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert (done.returncode, done.stdout) == (1, "")
    assert (
        done.stderr == f"bridgehead {words[0]}: The current folder no longer exists. Change to another one.\n"
    )


@pytest.mark.parametrize("word", ["-V", "-v", "version"])
def test_the_version_has_the_names_that_people_try(word: str) -> None:
    assert bridgehead(word).stdout == bridgehead("--version").stdout


def test_help_of_two_words_is_the_help_of_a_subcommand() -> None:
    assert bridgehead("help", "aoc", "fetch").stdout == bridgehead("aoc", "fetch", "--help").stdout


@pytest.mark.parametrize("command", ["call", "tools", "serve", "doctor", "demo", "install"])
def test_a_bridge_that_is_misspelt_is_named_with_the_one_that_was_meant(command: str) -> None:
    words = {"call": ["bitburnr", "read_file"], "install": ["cursor", "bitburnr"]}.get(command, ["bitburnr"])

    assert "Did you mean 'bitburner'?" in bridgehead(command, *words).stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nonsense"], "Unknown command 'nonsense'. Run 'bridgehead help' for the list."),
        (["instal", "cursor"], "Unknown command 'instal'. Did you mean 'install'?"),
        (["mercuy"], "Unknown command 'mercuy'. Did you mean 'mercury'?"),
        (["--versio"], "Unknown command '--versio'. Did you mean '--version'?"),
        (["two\nlines"], r"Unknown command 'two\nlines'. Run 'bridgehead help' for the list."),
        (["help", "two", "words"], "Unknown command 'two'. Run 'bridgehead help' for the list."),
        (["--version", "please"], "--version takes no arguments. Run 'bridgehead help' for the list."),
    ],
)
def test_wrong_usage_is_answered_by_one_line_that_says_what_to_do(arguments: list[str], said: str) -> None:
    done = bridgehead(*arguments)

    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{said}\n")


def test_importing_the_command_loads_nothing_but_itself() -> None:
    program = (
        "import sys; before = set(sys.modules); import bridgehead.cli; "
        "print(*sorted(set(sys.modules) - before))"
    )

    done = run(sys.executable, "-c", program)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["bridgehead", "bridgehead.cli"]


@pytest.mark.parametrize("name", [*plugins.names(), *COMMANDS])
def test_every_name_of_the_help_leads_to_something_with_a_help_of_its_own(name: str, tmp_path: Path) -> None:
    done = Person(tmp_path).run(name, "--help")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: bridgehead {name}")
    assert f"\n  bridgehead {name} " in done.stdout, "an example"
    assert f"\n  {name} " in help_text()


def test_a_file_named_env_gives_settings_and_the_environment_wins(tmp_path: Path) -> None:
    person = Person(tmp_path)
    (tmp_path / ".env").write_text("export AOC_YEAR='2019'\nAOC_DATA_DIR=puzzles # here\n", encoding="utf-8")

    from_file = person.run("doctor", "aoc", AOC_DATA_DIR="")
    from_both = person.run("doctor", "aoc", AOC_DATA_DIR="", AOC_YEAR="2020")

    assert f"{tmp_path / 'puzzles' / '2019' / 'instructions'} is not there yet" in from_file.stdout
    assert str(Path("2020") / "instructions") in from_both.stdout


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"A=1\nnonsense\n", ".env, line 2 is not NAME=value. Fix the line, or comment it out with #."),
        (b"\xff\xfe", ".env cannot be read: "),
    ],
)
def test_a_broken_file_named_env_is_one_line(tmp_path: Path, content: bytes, line: str) -> None:
    person = Person(tmp_path)
    (tmp_path / ".env").write_bytes(content)

    for words in (["aoc"], ["tools"]):
        done = person.run(*words)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert done.stderr.startswith(f"bridgehead {words[0]}: {line}")


def test_a_file_named_env_sends_no_key_of_the_environment_elsewhere(tmp_path: Path) -> None:
    person = Person(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        address = f"http://127.0.0.1:{elsewhere.getsockname()[1]}"
        (tmp_path / ".env").write_text(f"MERCURY_API_URL={address}\n", encoding="utf-8")

        done = person.run("mercury", "settings", MERCURY_API_KEY="sk_mine_0123456789")
        alone = person.run("mercury", "settings")

    assert address not in done.stdout
    assert address in alone.stdout


@pytest.mark.parametrize(
    ("settings", "level"),
    [
        ({}, "info"),
        ({"MCP_LOG_LEVEL": "debug"}, "debug"),
        ({"LOG_LEVEL": "warn"}, "warn"),
        ({"LOG_LEVEL": "warn", "MCP_LOG_LEVEL": "debug"}, "warn"),
    ],
)
def test_the_level_of_the_log_has_two_names_of_which_one_counts(
    tmp_path: Path, settings: dict[str, str], level: str
) -> None:
    done = Person(tmp_path).run("bitburner", typed=HELLO, **settings)

    lines = [json.loads(line) for line in done.stderr.splitlines()]
    least = logs.LEVELS.index(level)
    assert done.returncode == 0
    assert all(logs.LEVELS.index(line["level"]) >= least for line in lines)
    assert any(line["event"] == "starting" for line in lines) == (least <= 1)
    assert any("LOG_LEVEL counts" in line["event"] for line in lines) == (len(settings) == 2)


def test_who_interrupts_a_command_sees_no_traceback(tmp_path: Path) -> None:
    with subprocess.Popen(
        [COMMAND, "doctor", "bitburner"],
        env=Person(tmp_path).environment(BITBURNER_LISTEN=f"127.0.0.1:{(port := free_port())}"),
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        wait_until_listening(port, process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)

    assert (process.returncode, err) == (130, "")
    assert "bitburner" not in [line.strip() for line in out.splitlines()], "its findings were not there yet"


@pytest.mark.parametrize("words", [["tools"], ["tools", "--json"], ["doctor", "aoc"], ["install", "--list"]])
def test_who_reads_no_further_sees_no_traceback(tmp_path: Path, words: list[str]) -> None:
    with subprocess.Popen(
        [COMMAND, *words],
        env=Person(tmp_path).environment(),
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        err = process.stderr.read()  # `communicate` would read the other one too on Windows
        process.wait(PATIENCE)

    assert (process.returncode, err) == (1, b"")


def test_a_stream_that_cannot_show_everything_shows_something_like_it(tmp_path: Path) -> None:
    done = Person(tmp_path).run("doctor", "aoc", PYTHONIOENCODING="ascii")

    assert (done.returncode, done.stderr) == (0, "")
    assert "+ version" in done.stdout


def test_a_stdio_server_names_variables_and_tools_that_are_misspelt_or_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AOC_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("AOC_YEER", "2024")
    monkeypatch.setenv("AOC_PUZZLES", "mine")
    monkeypatch.setenv("BRIDGEHEAD_PORT", "8080")
    monkeypatch.setenv("AOC_LOCK_WAIT_MS", "100")
    monkeypatch.setenv("BRIDGEHEAD_DENY_TOOLS", "record_sped,delete_file")

    done = subprocess.run(
        [COMMAND, "aoc"], input="", capture_output=True, text=True, timeout=PATIENCE, check=False
    )

    assert done.returncode == 0
    assert done.stderr.splitlines()[:5] == [
        "bridgehead aoc: AOC_LOCK_WAIT_MS is no longer a setting and has no effect. See the changelog.",
        "bridgehead aoc: AOC_PUZZLES is not a setting. It has no effect.",
        "bridgehead aoc: AOC_YEER is not a setting. Did you mean AOC_YEAR?",
        "bridgehead aoc: BRIDGEHEAD_PORT is not a setting. Did you mean MCP_SERVER_PORT?",
        "bridgehead: BRIDGEHEAD_DENY_TOOLS: no tool is called 'record_sped'. Did you mean 'record_speed'?",
    ]
