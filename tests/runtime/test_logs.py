"""Logs: one line for each event, for machines or people, at the level asked for, and never with a secret."""

import asyncio
import io
import json
import logging
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgehead.runtime import logs
from bridgehead.runtime.logs import LogSettings
from bridgehead.runtime.settings import SettingError
from tests.support.waiting import PATIENCE, until

part = logs.logger("tested")


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    """Give other tests the logging that they had."""
    root = logging.getLogger(logs.ROOT)
    before = (root.handlers[:], root.level, root.propagate)
    yield
    root.handlers[:], root.level, root.propagate = before


def sent(level: str = "info", form: str = "json") -> io.StringIO:
    stream = io.StringIO()
    logs.configure(level, form, stream)
    return stream


def entries(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_an_event_is_a_line_of_json_with_its_fields() -> None:
    stream = sent()

    part.info(
        "game connected", origin="http://localhost", generation=3, place=Path("/x"), tags={"a": (1, None)}
    )

    (entry,) = entries(stream)
    assert entry.pop("time").endswith("Z")
    assert entry == {
        "level": "info",
        "logger": "bridgehead.tested",
        "event": "game connected",
        "origin": "http://localhost",
        "generation": 3,
        "place": str(Path("/x")),
        "tags": {"a": [1, None]},
    }


@pytest.mark.parametrize(
    ("level", "written"),
    [
        ("debug", ["debug", "info", "warn", "error"]),
        ("info", ["info", "warn", "error"]),
        ("warn", ["warn", "error"]),
        ("error", ["error"]),
    ],
)
def test_what_is_below_the_level_is_not_written(level: str, written: list[str]) -> None:
    stream = sent(level)

    part.debug("it")
    part.info("it")
    part.warn("it")
    part.error("it")

    assert [entry["level"] for entry in entries(stream)] == written


def test_the_last_configuration_holds() -> None:
    first = sent("debug")
    second = sent("error", "pretty")

    part.info("below")
    part.error("above")

    assert first.getvalue() == ""
    assert second.getvalue()[12:] == " error above\n"


def test_a_person_reads_the_time_the_level_the_event_and_fields_that_show_where_they_end() -> None:
    stream = sent(form="pretty")

    part.warn("is slow", tool="greet", seconds=2.5, why="a b", nothing="", odd="tab\t\x9b", given=[1, "x"])

    time, rest = stream.getvalue().split(" ", 1)
    assert [len(part) for part in time.split(":")] == [2, 2, 6]
    assert rest == (
        "warn  is slow tool=greet seconds=2.5 why='a b' nothing='' odd='tab\\t\\x9b' given=\"[1, 'x']\"\n"
    )


@pytest.mark.parametrize("form", logs.FORMATS)
def test_an_event_is_one_line_whatever_is_in_it(form: str) -> None:
    stream = sent(form=form)

    part.info("two\nlines 100% \x1b[31m", field="three\r\nmore\nlines")

    assert stream.getvalue().count("\n") == 1
    assert stream.getvalue()[:-1].isprintable()
    assert r"two\nlines 100% " in stream.getvalue()


@pytest.mark.parametrize("form", logs.FORMATS)
def test_text_that_no_encoding_knows_is_written_out(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    stream = sent(form=form)

    part.info("found \udcff", name="file-\udcfe", values={"\udcfd": ["\udcfc"]})

    stream.getvalue().encode()
    assert all(rf"\udcf{digit}" in stream.getvalue().replace("\\\\", "\\") for digit in "cdef")
    assert capsys.readouterr().err == ""


def test_a_field_does_not_take_the_place_of_what_every_line_has() -> None:
    stream = sent()

    part.info("grown", level=7, time="noon", logger="woods")

    (entry,) = entries(stream)
    assert (entry["level"], entry["logger"], entry["event"]) == ("info", "bridgehead.tested", "grown")
    assert (entry["level_"], entry["time_"], entry["logger_"]) == (7, "noon", "woods")


@pytest.mark.parametrize(
    ("method", "level"), [("warning", "warn"), ("exception", "error"), ("critical", "error")]
)
def test_what_the_engine_logs_looks_the_same(method: str, level: str) -> None:
    stream = sent()

    try:
        raise ValueError("the cause")  # noqa: TRY301 - there has to be one
    except ValueError:
        getattr(logging.getLogger("bridgehead.mcp"), method)("failed: %s", "it", exc_info=True)

    (entry,) = entries(stream)
    assert (entry["level"], entry["logger"], entry["event"]) == (level, "bridgehead.mcp", "failed: it")
    assert entry["traceback"].startswith("Traceback (most recent call last):")
    assert entry["traceback"].endswith("ValueError: the cause")


def strings(value: Any) -> Iterator[str]:
    """Give every text and number in decoded JSON."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
    else:
        yield str(value)


@settings(deadline=None)
@given(odd=st.text(max_size=20), form=st.sampled_from(logs.FORMATS))
def test_a_secret_never_appears_in_a_line_wherever_it_comes_from(odd: str, form: str) -> None:
    secret = f"key<{odd}>"
    logs.hide(secret)
    stream = sent(form=form)

    try:
        raise ValueError(secret)  # noqa: TRY301 - there has to be one
    except ValueError as error:
        part.info(f"used {secret}", header=f"Bearer {secret}", deep=[{secret: (secret,)}], error=error)
        logging.getLogger("bridgehead.mcp").exception("failed with %s", secret)

    assert stream.getvalue().count(logs.HIDDEN) >= 6
    assert "key<" not in stream.getvalue()
    if form == "json":
        assert not [text for entry in entries(stream) for text in strings(entry) if secret in text]


def test_a_secret_that_begins_like_another_does_not_leave_its_end() -> None:
    secrets = ["overlapping-" + "abcdefgh"[:length] for length in range(9)]
    for secret in secrets:
        logs.hide(secret)
    stream = sent()

    part.info("it", secrets=secrets)

    assert entries(stream)[0]["secrets"] == [logs.HIDDEN] * 9


def test_a_secret_of_digits_leaves_the_line_readable() -> None:
    logs.hide("83748291")
    stream = sent()

    part.info("it", number=83748291, text="83748291!", other=12)

    (entry,) = entries(stream)
    assert (entry["number"], entry["text"], entry["other"]) == (logs.HIDDEN, f"{logs.HIDDEN}!", 12)


def test_hiding_nothing_hides_nothing() -> None:
    logs.hide("")
    stream = sent()

    part.info("as it is")

    assert entries(stream)[0]["event"] == "as it is"


PROGRAM = """
from bridgehead.runtime import logs
part = logs.logger("tested")
part.info("before", field=1)
{configure}
part.info("after", field=1)
"""


def run(configure: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(configure=configure)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )


def test_lines_go_to_standard_error_and_never_to_the_protocol() -> None:
    done = run("logs.configure()")

    assert done.stdout == ""
    assert [json.loads(line)["event"] for line in done.stderr.splitlines()] == ["after"]


def test_nothing_is_written_before_somebody_says_where_to() -> None:
    done = run("")

    assert (done.stdout, done.stderr) == ("", "")


def test_a_text_that_leaves_in_another_way_is_scrubbed_too() -> None:
    logs.hide("sk_scrubbed_elsewhere")

    assert logs.scrubbed("with sk_scrubbed_elsewhere and ünïcode") == "with *** and ünïcode"
    assert logs.scrubbed("nothing to hide") == "nothing to hide"


def test_further_fields_are_read_when_a_line_is_written_and_its_own_come_first() -> None:
    stream = io.StringIO()
    logs.configure("info", "json", stream)
    current = {"request": "r1"}
    logs.add_context(lambda: dict(current))

    logs.logger("test").info("one")
    current["request"] = "r2"
    logs.logger("test").info("two", request="own")
    current.clear()
    logs.logger("test").info("three")

    one, two, three = (json.loads(line) for line in stream.getvalue().splitlines())
    assert (one["request"], two["request"], "request" in three) == ("r1", "own", False)


@pytest.mark.parametrize("form", logs.FORMATS)
def test_several_lines_of_one_event_are_written_at_once(form: str) -> None:
    logs.hide("sk_in_one_of_many")
    stream = sent(form=form)

    part.info_each("call", [{"number": 1}, {"key": "sk_in_one_of_many", "level": "high"}])

    one, other = stream.getvalue().splitlines()
    assert "sk_in_one_of_many" not in other
    if form == "json":
        assert (json.loads(one)["event"], json.loads(one)["number"]) == ("call", 1)
        assert (json.loads(other)["level"], json.loads(other)["level_"]) == ("info", "high")
    else:
        assert (one[12:], other[12:]) == (" info  call number=1", " info  call key=*** level=high")


def test_lines_that_nobody_reads_are_not_even_made() -> None:
    stream = sent("warn")
    numbers = iter(range(3))

    part.info_each("call", ({"number": number} for number in numbers))

    assert (next(numbers), stream.getvalue()) == (0, "")


@pytest.mark.parametrize(
    ("environment", "level"),
    [
        ({}, "info"),
        ({"LOG_LEVEL": "debug"}, "debug"),
        ({"MCP_LOG_LEVEL": "error"}, "error"),
        ({"LOG_LEVEL": "warn", "MCP_LOG_LEVEL": "debug"}, "warn"),
    ],
)
def test_log_level_counts_before_its_other_name(environment: dict[str, str], level: str) -> None:
    assert LogSettings(environment).level == level


def test_a_level_that_is_none_is_refused_by_its_name() -> None:
    with pytest.raises(SettingError, match="MCP_LOG_LEVEL is 'loud'"):
        LogSettings({"MCP_LOG_LEVEL": "loud"})


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"LOG_LEVEL": "info", "MCP_LOG_LEVEL": "debug"}, True),
        ({"LOG_LEVEL": "debug", "MCP_LOG_LEVEL": "debug"}, False),
        ({"MCP_LOG_LEVEL": "debug"}, False),
    ],
)
def test_a_difference_is_said(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, *, said: bool
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    LogSettings(environment).configure_logs()
    assert ("LOG_LEVEL and MCP_LOG_LEVEL differ" in stream.getvalue()) == said


def test_on_a_terminal_lines_are_for_people_unless_the_setting_says_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    both = {"LOG_LEVEL": "info", "MCP_LOG_LEVEL": "debug"}
    shown = {}
    for form in ("", "json"):
        stream = Terminal()
        monkeypatch.setattr("sys.stderr", stream)
        LogSettings({**both, "LOG_FORMAT": form}).configure_logs()
        shown[form] = stream.getvalue()
    assert (shown[""][0] == "{", shown["json"][0] == "{") == (False, True)


def test_a_logger_says_which_levels_it_writes() -> None:
    logs.configure("info", stream=io.StringIO())
    log = logs.logger("tests.telling")

    assert [level for level in logs.LEVELS if log.is_enabled(level)] == ["info", "warn", "error"]


def test_a_password_in_an_address_is_not_logged() -> None:
    stream = io.StringIO()
    logs.configure("info", "json", stream)
    part.info("asked", url="http://ann:pw@collector:4318/v1")

    assert "pw" not in stream.getvalue()
    assert "http://***@collector:4318/v1" in stream.getvalue()


def test_a_line_is_utf_8_whatever_the_system_takes_for_text() -> None:
    """JSON is, and what a server of MCP says on standard error; a pipe of Windows has another encoding."""
    written = io.BytesIO()
    logs.configure("info", "json", io.TextIOWrapper(written, encoding="cp1252"))

    part.info("“quoted” → 日本 \udc80")

    assert json.loads(written.getvalue().decode())["event"].startswith("“quoted” → 日本")


# --- a pipe that nobody reads ------------------------------------------------------------------------


@pytest.fixture(params=["asks", "has a thread"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The reading end of a pipe that everything is logged to."""
    if request.param == "has a thread":  # as on Windows
        monkeypatch.setattr(logs, "CAN_POLL_PIPES", False)
    end, other = os.pipe()
    stream = os.fdopen(other, "w", encoding="utf-8")
    logs.configure("info", "json", stream)
    yield end
    rest = Reading(end)  # what nobody read; closing an end that is being read would wait on Windows
    stream.close()
    rest.join()
    os.close(end)


class Reading:
    """Somebody who reads everything from now on."""

    def __init__(self, reader: int) -> None:
        self._reader = reader
        self.data = b""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def join(self) -> None:
        self._thread.join(PATIENCE)

    def _run(self) -> None:
        with suppress(OSError):  # the test is over
            while chunk := os.read(self._reader, 1 << 20):
                self.data += chunk

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.data.split(b"\n")[:-1]]


async def test_a_log_that_nobody_reads_holds_nobody_up_and_says_later_what_is_missing(reader: int) -> None:
    begun = time.monotonic()
    for number in range(2000):
        part.info("event", number=number, text="x" * 200)
    assert time.monotonic() - begun < PATIENCE

    reading, tries = Reading(reader), 0
    while not any("count" in line for line in reading.lines):
        part.info("read again")
        tries += 1
        await asyncio.sleep(0.01)
    await until(lambda: reading.lines[-1]["event"] == "read again")
    numbers = [line["number"] for line in reading.lines if line["event"] == "event"]
    lost = [line["count"] for line in reading.lines if "count" in line]
    again = [line for line in reading.lines if line["event"] == "read again"]

    assert numbers == list(range(len(numbers)))
    assert 10 < len(numbers) < 2000
    assert len(numbers) + len(again) + sum(lost) == 2000 + tries


@pytest.mark.parametrize("letter", ["x", "ü"])
async def test_a_long_line_comes_as_a_whole_where_it_is_read(reader: int, letter: str) -> None:
    reading = Reading(reader)
    part.info("long", text=letter * 12_000)
    await until(lambda: reading.lines)

    assert reading.lines[0]["text"] == letter * 12_000


def test_one_that_is_longer_than_there_is_room_for_is_given_up_in_time(reader: int) -> None:
    begun = time.monotonic()
    part.info("endless", text="x" * 1_000_000)

    assert time.monotonic() - begun < PATIENCE
    assert os.read(reader, 100).startswith(b'{"time"')


def test_no_piece_of_a_line_is_longer_than_a_pipe_with_room_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """On macOS that is 512 bytes; a longer piece would wait for a reader that may never come."""
    written: list[str] = []

    class Stream(io.StringIO):
        def write(self, text: str) -> int:
            written.append(text)
            return len(text)

    monkeypatch.setattr(logs, "CAN_POLL_PIPES", True)
    monkeypatch.setattr(select, "PIPE_BUF", 512, raising=False)
    logs.configure("info", "json", Stream())
    for text in ("x" * 2000, "\U0001f600" * 2000):
        part.info(text)

    events = [json.loads(line)["event"] for line in "".join(written).splitlines()]
    assert events == ["x" * 2000, "\U0001f600" * 2000]
    assert max(len(text.encode()) for text in written) <= 512


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_a_terminal_that_was_stopped_stops_nobody() -> None:
    import pty
    import termios

    master, slave = pty.openpty()
    with os.fdopen(slave, "w", encoding="utf-8") as terminal:
        termios.tcflow(slave, termios.TCOOFF)  # what Ctrl+S does
        logs.configure("info", "json", terminal)
        began = time.monotonic()
        for number in range(200):
            part.info("served", number=number)
        assert time.monotonic() - began < PATIENCE / 2

        termios.tcflow(slave, termios.TCOON)
        shown = b""
        while b"log entries dropped" not in shown:
            part.info("goes on")
            shown += os.read(master, 65536)
        assert b'"number":0' in shown
        logs.configure("info", "json", io.StringIO())
    os.close(master)
