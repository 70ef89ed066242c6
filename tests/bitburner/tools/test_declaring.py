"""Declaring: every tool has a schema that fits its failures, and every call is counted and logged."""

import json
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]  # it comes without types
import pytest

from bridgehead.bitburner.bridge import make_bridge
from bridgehead.bitburner.settings import BitburnerSettings
from tests.bitburner.playing import Play, bridged, played


def test_the_schema_of_an_answer_fits_failures_too() -> None:
    """Some clients hold an error's structured content to the schema, and would throw the error away."""
    problem = {"code": "timeout", "message": "m", "next_step": "n", "transient": True}
    tools = make_bridge(BitburnerSettings({})).tools.values()
    schemas = {tool.name: tool.listed_output_schema for tool in tools if tool.visible_to == "everyone"}

    assert "read_file" in schemas
    without = {name for name, schema in schemas.items() if schema is None}
    assert without == {"get_all_files", "get_netscript_definitions"}
    for schema in filter(None, schemas.values()):
        jsonschema.validate(problem, schema)


@pytest.mark.parametrize(("folder", "words"), [(None, " (can be undone)"), ("off", "")])
def test_people_are_told_that_a_change_can_be_undone_only_where_versions_are_kept(
    folder: str | None, words: str
) -> None:
    environment = {} if folder is None else {"BITBURNER_BACKUP_DIR": folder}
    tools = make_bridge(BitburnerSettings(environment)).tools

    told = {name: tool.effect for name, tool in tools.items() if tool.is_destructive}
    assert told == {
        "write_file": f"overwrites{words}",
        "write_files": f"overwrites{words}",
        "edit_file": f"edits{words}",
        "delete_file": f"deletes{words}",
        "move_file": f"moves{words}",
        "restore_file": f"overwrites{words}",
    }


def counts(play: Play, tool: str) -> tuple[float, float]:
    return play.count("tool_calls_total", tool), play.count("tool_errors_total", tool)


async def test_every_call_is_counted_once_and_every_failure_too(tmp_path: Path) -> None:
    async with played(tmp_path) as play:
        await play.ok("list_files")
        await play.ok("list_files")
        await play.fails("read_file", filename="none.js")
        await play.client.answer_to("tools/call", {"name": "read_file", "arguments": {"filename": 7}})

        assert (counts(play, "list_files"), counts(play, "read_file")) == ((2, 0), (2, 2))
        assert counts(play, "write_file") == (0, 0)


async def test_a_call_is_logged_with_its_file_and_size_and_never_with_a_content(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with played(tmp_path, LOG_LEVEL="info", LOG_FORMAT="json") as play:
        await play.ok("write_file", filename="a.txt", content="the secret content")
        await play.fails("read_file", filename="none.js")
    written = capfd.readouterr().err

    lines = [json.loads(line) for line in written.splitlines()]
    (called,) = [line for line in lines if line["event"] == "tool called"]
    (failed,) = [line for line in lines if line["event"] == "tool failed"]
    assert (called["tool"], called["server"], called["filename"], called["characters"]) == (
        *("write_file", "home", "a.txt"),
        18,
    )
    assert (failed["tool"], failed["filename"], failed["code"]) == ("read_file", "none.js", "not_found")
    assert "the secret content" not in written


async def test_where_nothing_may_be_changed_no_tool_that_writes_is_there(tmp_path: Path) -> None:
    async with bridged(tmp_path, BITBURNER_READ_ONLY="1") as play:
        tools = (await play.client.request("tools/list"))["tools"]

    assert {tool["annotations"]["readOnlyHint"] for tool in tools} == {True}
    assert "read_file" in {tool["name"] for tool in tools}
