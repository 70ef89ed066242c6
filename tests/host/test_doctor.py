"""Doctor of the host: what serving would do with the settings as they are."""

from pathlib import Path

import pytest

from bridgehead.host.doctor import examine
from bridgehead.runtime.settings import SettingError
from tests.support.host_command import add_token
from tests.support.otel_collector import collecting
from tests.support.ports import free_port
from tests.support.redis_server import RedisServer


async def find_all(folder: Path, **settings: str) -> dict[str, tuple[str, str]]:
    environment = {"BRIDGEHEAD_STATE_DIR": str(folder), **settings}
    return {one.what: (one.verdict, one.text) for one in await examine(environment)}


async def test_on_loopback_nobody_needs_a_token(tmp_path: Path) -> None:
    findings = await find_all(tmp_path, MCP_SERVER_PORT="8123", BRIDGEHEAD_BRIDGES="aoc")

    assert findings["would serve"] == ("right", "aoc at http://localhost:8123/mcp")
    assert findings["tokens"][1].startswith("not needed")


async def test_with_tokens_it_counts_them(tmp_path: Path) -> None:
    add_token(tmp_path, "alice")
    findings = await find_all(tmp_path, BRIDGEHEAD_AUTH="on", BRIDGEHEAD_BRIDGES="aoc")

    assert findings["tokens"][1].startswith("everyone needs one; 1 in ")


async def test_where_people_sign_in_with_oauth_it_names_the_redirect_uri(tmp_path: Path) -> None:
    settings = {
        "BRIDGEHEAD_OAUTH_ISSUER": f"http://127.0.0.1:{free_port()}",
        "BRIDGEHEAD_OAUTH_AUDIENCE": "https://team.example/mcp",
        "BRIDGEHEAD_OAUTH_CLIENT_ID": "dashboard",
    }
    here = await find_all(tmp_path, MCP_SERVER_PORT="8123", **settings)
    public = await find_all(tmp_path, BRIDGEHEAD_PUBLIC_URL="https://team.example/", **settings)

    assert here["OAuth issuer"][0] == "wrong"
    assert here["dashboard"][1].endswith(" http://localhost:8123/dashboard/oauth/callback")
    assert public["dashboard"][1].endswith(" https://team.example/dashboard/oauth/callback")


async def test_where_no_token_is_there_it_says_what_to_do(tmp_path: Path) -> None:
    verdict, _ = (await find_all(tmp_path, BRIDGEHEAD_AUTH="on"))["tokens"]

    assert verdict == "note"


async def test_a_setting_that_is_wrong_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError):
        await find_all(tmp_path, MCP_SERVER_PORT="many")


async def test_redis_is_tried_and_what_is_shared_is_named(tmp_path: Path, redis_server: RedisServer) -> None:
    there = {"BRIDGEHEAD_REDIS_URL": redis_server.url}
    keys = {"BRIDGEHEAD_STATE_KEYS": "k" * 32}
    gone = {"BRIDGEHEAD_REDIS_URL": f"redis://:secret@127.0.0.1:{free_port()}/0"}

    findings = [(await find_all(tmp_path, **more))["redis"] for more in ({}, there, {**there, **keys}, gone)]

    verdicts, texts = zip(*findings, strict=True)
    assert verdicts == ("right", "note", "right", "wrong")
    for text, piece in zip(texts, ("this machine", "not sessions", "and sessions", "reached"), strict=True):
        assert piece in text
    assert "secret" not in texts[3]


async def test_what_is_exported_and_posted_is_named_and_tried(tmp_path: Path) -> None:
    async with collecting() as collector:
        here = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_LOGS_EXPORTER": "console"}
        hook = {"BRIDGEHEAD_WEBHOOK_URL": f"{collector.url}/hook", "BRIDGEHEAD_WEBHOOK_SECRET": "whsec_eA=="}
        findings = await find_all(tmp_path, **here, **hook)

    assert findings["telemetry: traces"] == ("right", f"{collector.url}/v1/traces can be reached")
    assert findings["telemetry: logs"] == ("right", "to console")
    assert findings["webhook"] == ("right", f"{collector.url} can be reached"), "its path may be a key"
    assert "webhook signature" not in findings
    assert collector.spans == [], "nothing is sent to find out"


async def test_nobody_at_an_address_is_told_with_what_to_do(tmp_path: Path) -> None:
    gone = f"http://127.0.0.1:{free_port()}"
    findings = await find_all(
        tmp_path, OTEL_METRICS_EXPORTER="otlp", OTEL_EXPORTER_OTLP_ENDPOINT=gone, BRIDGEHEAD_WEBHOOK_URL=gone
    )

    assert findings["telemetry: metrics"][0] == findings["webhook"][0] == "wrong"
    assert findings["webhook signature"][0] == "note"


async def test_without_any_of_it_the_doctor_says_so(tmp_path: Path) -> None:
    findings = await find_all(tmp_path, BRIDGEHEAD_PROBE_SECONDS="0")

    assert findings["telemetry"][0] == "right"
    assert "webhook" not in findings
    assert findings["connections"][0] == "note"
