"""Audit: every call of a tool and every refusal leaves one line, in a file and in PostgreSQL alike."""

import json
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bridgehead.commands import db
from bridgehead.host.audit import command
from bridgehead.host.audit.stores import FILE, SqliteAudit
from bridgehead.host.audit.trail import Line, Query, Trail
from bridgehead.runtime.errors import StorageError
from bridgehead.runtime.exposition import write_metrics
from bridgehead.runtime.timing import SystemClock
from tests.support.host_server import bearer, hosting
from tests.support.posix import is_private
from tests.support.waiting import until

NOW = 1_800_000_000.0


class Audited:
    """Where the audit of a test is, and how an operator asks it."""

    def __init__(self, folder: Path, url: str | None, capture: pytest.CaptureFixture[str]) -> None:
        own = {} if url is None else {"BRIDGEHEAD_DATABASE_URL": url}
        if url is not None:
            db.main(["migrate"], own)
            capture.readouterr()
        self.environment: Mapping[str, str] = {"BRIDGEHEAD_STATE_DIR": str(folder), **own}
        self._capture = capture

    def ask(self, *arguments: str) -> list[dict[str, Any]]:
        """Run the command, and return the lines, oldest first."""
        self._capture.readouterr()
        assert command.main([*arguments, "--json"], self.environment, SystemClock()) == 0
        found: list[dict[str, Any]] = json.loads(self._capture.readouterr().out)
        return found[::-1]


@pytest.fixture(params=["file", "postgresql"])
def audited(request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Audited:
    url = None if request.param == "file" else request.getfixturevalue("database_url")
    return Audited(tmp_path, url, capsys)


async def test_every_call_leaves_a_line_with_who_what_and_how_it_ended(
    tmp_path: Path, audited: Audited
) -> None:
    async with hosting(tmp_path, audited.environment, tokens={"ann": {}}) as host:
        ann = bearer(host.secrets["ann"])
        read = await host.try_call("/mcp", "alpha_echo", ann)
        body = await read.body()
        await host.try_call("/alpha/mcp", "alpha_echo", ann)
        host.far["alpha"].is_there = False
        await host.try_call("/alpha/mcp", "alpha_write", ann)
    lines = audited.ask()

    told = [(line["client"], line["bridge"], line["tool"], line["outcome"]) for line in lines]
    assert told == [
        ("ann", "alpha", "alpha_echo", "ok"),
        ("ann", "alpha", "alpha_echo", "ok"),
        ("ann", "alpha", "alpha_write", "error"),
    ]
    assert lines[0]["request"] == read.headers["x-request-id"]
    assert 0 < lines[0]["bytes"] <= len(body)
    assert lines[0]["arguments"] == lines[1]["arguments"] != ""
    assert lines[2]["reason"]
    assert [line["tool"] for line in audited.ask("--caller", "ann", "--outcome", "failed")] == ["alpha_write"]
    assert audited.ask("--caller", "bob") == audited.ask("--until", "yesterday") == []
    assert len(audited.ask("--tool", "alpha_e*", "--since", "1h")) == 2
    assert len(audited.ask("--tool", "alpha%")) == 0


async def test_a_refused_call_has_a_line_with_the_name_of_its_caller(
    tmp_path: Path, audited: Audited
) -> None:
    tokens: dict[str, dict[str, Any]] = {
        "reader": {"read_only": True},
        "busy": {"per_minute": 1},
        "other": {"bridges": ("beta",)},
    }
    async with hosting(tmp_path, audited.environment, tokens=tokens) as host:
        reader, busy, other = (bearer(host.secrets[name]) for name in ("reader", "busy", "other"))
        await host.try_call("/mcp", "alpha_write", reader)
        await host.try_call("/mcp", "no_such_tool", reader)
        for _ in range(2):
            await host.try_call("/mcp", "alpha_echo", busy)
        await host.try_call("/alpha/mcp", "alpha_echo", other)
        await host.try_call("/mcp", "alpha_echo")  # nobody: it is in the log alone
    refused = audited.ask("--outcome", "refused")

    assert [(line["client"], line["tool"], line["reason"]) for line in refused] == [
        ("reader", "alpha_write", "not_offered"),
        ("reader", "no_such_tool", "unknown_tool"),
        ("busy", "alpha_echo", "limit"),
        ("other", "alpha_echo", "grant"),
    ]
    assert all(line["request"] for line in refused)


async def test_calls_go_on_when_the_audit_cannot_be_written_and_its_lines_follow(tmp_path: Path) -> None:
    (tmp_path / "host").mkdir(mode=0o700)
    (tmp_path / "host" / FILE).mkdir()
    async with hosting(tmp_path) as host:
        assert (await host.try_call("/mcp", "alpha_echo")).status == 200
        await until(lambda: host.logged("audit lines wait"))
        (tmp_path / "host" / FILE).rmdir()

    with closing(SqliteAudit(tmp_path / "host")) as store:
        assert [line.tool for line in store.find(Query())] == ["alpha_echo"]
    assert is_private(tmp_path / "host" / FILE)


async def test_lines_beyond_the_limit_are_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("bridgehead.host.audit.trail.MAX_LINES", 2)

    class Down(SqliteAudit):
        async def write(self, lines: Any) -> None:
            raise StorageError("The disk is full.")

    trail = Trail(Down(tmp_path), b"key", "r", lambda: NOW, days=1, lines=1000)
    with caplog.at_level("WARNING", "bridgehead"):
        for name in ("one", "two", "three"):
            trail._add(Line(NOW, "ann", name, "ok"), None)  # noqa: SLF001 - otherwise a call is needed for each

    assert [record.getMessage() for record in caplog.records] == ["an audit line is only here"]
    assert b"bridgehead_audit_dropped_total 1" in write_metrics([((), trail.metrics)])


async def test_errors_of_the_engine_carry_the_request_id(tmp_path: Path) -> None:
    async with hosting(tmp_path) as host:
        lost = await host.http.request(
            "POST",
            "/mcp",
            {
                "Content-Type": "application/json",
                "Accept": "application/json, text/event-stream",
                "Mcp-Session-Id": "x",
            },
            b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
        )
        kind = await host.http.request("POST", "/mcp", {"Content-Type": "text/plain", "Accept": "*/*"}, b"{}")
        answers = [(response, await response.json()) for response in (lost, kind)]

    assert [response.status for response, _ in answers] == [404, 415]
    for response, body in answers:
        assert body["error"]["data"]["requestId"] == response.headers["x-request-id"]
