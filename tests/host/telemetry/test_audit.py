"""Audit: each call that may change something leaves one line, in the log and in the database alike."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from bridgehead.commands import db
from tests.support.host_server import Host, bearer, hosting

READ = "select client, bridge, tool, outcome, ms, request from host_audit order by id"


class Trail:
    """Where audit lines are, and how they are read."""

    def __init__(self, url: str | None) -> None:
        self._url = url
        self.environment: Mapping[str, str] = {} if url is None else {"BRIDGEHEAD_DATABASE_URL": url}
        if url is not None:
            db.main(["migrate"], self.environment)

    async def read(self, host: Host) -> list[dict[str, Any]]:
        """Return every line that a host has left, now that it has ended."""
        if self._url is None:
            return host.logged("a call that may change something")
        connection = await asyncpg.connect(self._url)
        try:
            return [dict(row) for row in await connection.fetch(READ)]
        finally:
            await connection.close()


@pytest.fixture(params=["log", "postgresql"])
def trail(request: pytest.FixtureRequest) -> Trail:
    return Trail(None if request.param == "log" else request.getfixturevalue("database_url"))


async def test_a_call_that_writes_leaves_a_line_and_one_that_reads_none(tmp_path: Path, trail: Trail) -> None:
    async with hosting(tmp_path, trail.environment, tokens={"ann": {}}) as host:
        token = bearer(host.secrets["ann"])
        await host.try_call("/mcp", "alpha_echo", token)
        written = await host.try_call("/mcp", "alpha_write", token)
        host.far["alpha"].is_there = False
        await host.try_call("/alpha/mcp", "alpha_write", token)
    lines = await trail.read(host)

    told = [(line["client"], line["bridge"], line["tool"], line["outcome"]) for line in lines]
    assert told == [("ann", "alpha", "alpha_write", "ok"), ("ann", "alpha", "alpha_write", "error")]
    assert lines[0]["request"] == written.headers["x-request-id"]
    assert all(line["request"] and line["ms"] >= 0 for line in lines)


async def test_a_caller_without_a_token_is_anyone(tmp_path: Path, trail: Trail) -> None:
    async with hosting(tmp_path, trail.environment) as host:
        await host.try_call("/alpha/mcp", "alpha_write")

    assert [line["client"] for line in await trail.read(host)] == ["(anyone)"]


async def test_every_call_of_many_leaves_its_own_line(tmp_path: Path, trail: Trail) -> None:
    async with hosting(tmp_path, trail.environment) as host:
        answers = [await host.try_call("/alpha/mcp", "alpha_write") for _ in range(20)]
    lines = await trail.read(host)

    assert [line["request"] for line in lines] == [answer.headers["x-request-id"] for answer in answers]
