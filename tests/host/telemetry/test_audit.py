"""Audit: each call that may change something leaves one line, whatever came of it."""

from pathlib import Path

from tests.support.host_server import bearer, hosting


async def test_a_call_that_writes_leaves_a_line_and_one_that_reads_none(tmp_path: Path) -> None:
    async with hosting(tmp_path, tokens={"ann": {}}) as host:
        token = bearer(host.secrets["ann"])
        await host.try_call("/mcp", "alpha_echo", token)
        await host.try_call("/mcp", "alpha_write", token)
        host.far["alpha"].is_there = False
        await host.try_call("/alpha/mcp", "alpha_write", token)
        lines = host.logged("a call that may change something")

    told = [(line["client"], line["bridge"], line["tool"], line["outcome"]) for line in lines]
    assert told == [("ann", "alpha", "alpha_write", "ok"), ("ann", "alpha", "alpha_write", "error")]
    assert all(line["request"] for line in lines)
