"""Settings: the contract's names, units and defaults; what is refused at start; what the log says of them."""

import asyncio
import json
import socket
import sys
from pathlib import Path

import pytest

from bridgehead.mercury.settings import MercurySettings
from bridgehead.mercury.simulator import Fault, Simulator
from bridgehead.runtime.settings import SettingError
from tests.mercury.process import CONNECT_SECONDS, KEY, bridge_process, environment
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "mercury_chat_completion"
ASK = {"messages": [{"role": "user", "content": "Secret words, in 8 words"}]}
CONTRACT = {
    "MERCURY_API_URL": "https://api.inceptionlabs.ai/v1",
    "MCP_SERVER_PORT": "3000",
    "MCP_SERVER_HOST": "localhost",
    "MCP_TRANSPORT": "stdio",
    "LOG_FORMAT": "json",
    "CACHE_ENABLED": "1",
    "CACHE_TTL": "300",
    "CACHE_COMPLETIONS": "0",
    "MAX_REQUEST_SIZE": "1048576",
    "REQUEST_TIMEOUT": "30000",
    "RATE_LIMIT_ENABLED": "1",
    "RATE_LIMIT_MAX": "100",
    "RATE_LIMIT_WINDOW": "60000",
    "MERCURY_MODEL": "mercury-coder-small",
    "MERCURY_MAX_RETRIES": "3",
    "MERCURY_RETRY_DELAY": "1000",
}


async def test_the_defaults_are_those_of_the_contract() -> None:
    settings = MercurySettings({})
    shown = dict(settings.summary())

    assert {name: shown[name] for name in CONTRACT} == CONTRACT
    assert settings.level == "info"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MERCURY_API_URL", "api.inceptionlabs.ai"),
        ("MERCURY_API_URL", "https://"),
        ("MERCURY_API_URL", "https://api.example:99999/v1"),
        ("MERCURY_API_URL", "https://api.example:/v1"),
        ("MERCURY_API_URL", "https://api.example/v1#key"),
        ("MCP_TRANSPORT", "carrier pigeon"),
        ("MCP_SERVER_PORT", "70000"),
        ("LOG_LEVEL", "loud"),
        ("LOG_FORMAT", "xml"),
        ("REQUEST_TIMEOUT", "0"),
        ("CACHE_TTL", "-1"),
        ("CACHE_ENABLED", "perhaps"),
        ("MAX_REQUEST_SIZE", "1 elephant"),
        ("RATE_LIMIT_MAX", "many"),
        ("MERCURY_BUDGET_USD", "-1"),
        ("MERCURY_RETRY_DELAY", "0"),
    ],
)
async def test_a_bad_value_is_refused_with_its_name_and_what_would_be_right(name: str, value: str) -> None:
    with pytest.raises(SettingError, match=name) as refused:
        MercurySettings({name: value})

    assert value in str(refused.value)
    assert "expected" in str(refused.value)


@pytest.mark.parametrize("url", ["https://api.example:8443", "http://[::1]:80/v1", "http://u:p@host/v1/"])
async def test_every_usual_form_of_an_address_is_taken(url: str) -> None:
    assert MercurySettings({"MERCURY_API_URL": url}).api_url == url.rstrip("/")


@pytest.mark.parametrize("proxy", ["socks5://proxy:1080", "http://proxy:99999", "https://proxy", "pro xy"])
async def test_a_proxy_that_cannot_be_used_is_named_by_each_call_and_never_shown(
    tmp_path: Path, proxy: str
) -> None:
    async with bridge_process("https://api.example/v1", tmp_path, ALL_PROXY=proxy) as client:
        error = await client.error(CHAT, ASK)

    assert error["code"] == "SETTING"
    assert error["message"].startswith("ALL_PROXY is not a valid value: expected")
    assert proxy not in client.errors.read_text()


@pytest.mark.parametrize("host", ["nowhere.invalid", "127.0.0.1"])
async def test_where_nothing_can_be_served_the_start_ends_with_one_line(tmp_path: Path, host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        settings = {"MCP_TRANSPORT": "http", "MCP_SERVER_HOST": host, "MCP_SERVER_PORT": port}
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "bridgehead",
            "mercury",
            env=environment("http://127.0.0.1:9/v1", tmp_path, **settings),
            stderr=asyncio.subprocess.PIPE,
        )
        _, err = await asyncio.wait_for(process.communicate(), PATIENCE)

    assert process.returncode == 1
    assert err.startswith(f"bridgehead mercury: cannot listen on {host}:{port}: ".encode())
    assert err.count(b"\n") == 1


async def test_values_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(SettingError, match="MERCURY_API_KEY_FILE"):
        MercurySettings({"MERCURY_API_KEY": KEY, "MERCURY_API_KEY_FILE": "keys"})
    with pytest.raises(SettingError, match="MERCURY_MODEL"):
        MercurySettings({"MERCURY_ALLOWED_MODELS": "mercury-3"})


async def test_a_bad_value_ends_the_start_with_one_line(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bridgehead",
        "mercury",
        env=environment("http://127.0.0.1:9/v1", tmp_path, REQUEST_TIMEOUT="soon"),
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, err = await asyncio.wait_for(process.communicate(), PATIENCE)

    assert process.returncode == 2
    assert err.startswith(b"bridgehead mercury: REQUEST_TIMEOUT is 'soon'")
    assert err.count(b"\n") == 1


async def test_the_log_tells_which_settings_are_not_at_their_defaults_with_secrets_masked(
    api: Simulator, tmp_path: Path
) -> None:
    async with bridge_process(api.url, tmp_path, HTTPS_PROXY="http://u:p@proxy:1") as client:
        await client.call("mercury_list_models")

    summary = next(line for line in client.log() if line["event"] == "mercury bridge open")
    assert summary["MERCURY_API_URL"] == api.url
    assert summary["MERCURY_API_KEY"] == "(set)"
    assert summary["HTTPS_PROXY"] == "(set)"
    assert not {"MERCURY_MAX_RETRIES", "CACHE_TTL"} & set(summary)  # at their defaults


async def test_each_call_has_an_audit_line_without_its_content(api: Simulator, tmp_path: Path) -> None:
    api.faults.next(Fault(status=503))
    async with bridge_process(api.url, tmp_path) as client:
        await client.call(CHAT, {**ASK, "cache": "use"})
        await client.call(CHAT, {**ASK, "cache": "use"})
        api.faults.next(Fault(status=400))
        await client.error("mercury_chat_stream", ASK)

    lines = [line for line in client.log() if line["logger"] == "bridgehead.mercury.audit"]
    assert [line["outcome"] for line in lines] == ["ok", "ok", "INVALID_REQUEST"]
    first, kept, failed = lines
    assert (first["client"], first["tool"], first["model"]) == ("tests", CHAT, "mercury-2")
    assert (first["tries"], kept["tries"], failed["tries"]) == (2, 0, 1)
    assert first["completion_tokens"] == 8
    assert first["ms"] > 0
    assert (first["from_cache"], kept["from_cache"]) == (False, True)
    assert "Secret words" not in client.errors.read_text()


async def test_content_is_logged_only_where_it_is_asked_for(api: Simulator, tmp_path: Path) -> None:
    async with bridge_process(api.url, tmp_path, LOG_CONTENT="1") as client:
        await client.call(CHAT, ASK)

    (line,) = [line for line in client.log() if line["logger"] == "bridgehead.mercury.audit"]
    assert json.loads(line["prompt"])["messages"] == ASK["messages"]
    assert line["content"] == api.text_of({**ASK, "model": "mercury-2"})


async def test_the_log_can_be_made_for_people_and_quiet(api: Simulator, tmp_path: Path) -> None:
    async with bridge_process(api.url, tmp_path, LOG_FORMAT="pretty") as client:
        await client.call(CHAT, ASK)
    pretty = client.errors.read_text()
    assert " info  call client=tests" in pretty

    client.errors.write_text("")
    async with bridge_process(api.url, tmp_path, LOG_LEVEL="error") as client:
        await client.call(CHAT, ASK)
    assert client.errors.read_text() == ""


async def test_a_connection_that_is_not_made_in_time_is_given_up(tmp_path: Path) -> None:
    settings = {CONNECT_SECONDS: "0.1", "MERCURY_MAX_RETRIES": "0"}
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections, and never shakes hands
        url = f"https://127.0.0.1:{silent.getsockname()[1]}/v1"
        async with bridge_process(url, tmp_path, **settings) as client:
            error = await client.error(CHAT, ASK)

    assert error["code"] == "CONNECTION_FAILED"
    assert "too long" in error["message"]


async def test_time_limits_are_settings(api: Simulator, tmp_path: Path) -> None:
    settings = {"REQUEST_TIMEOUT": "150"}
    api.faults.always(Fault(delay=10 * PATIENCE))
    async with bridge_process(api.url, tmp_path, **settings) as client:
        plain = await client.error(CHAT, ASK)
        streamed = await client.error("mercury_chat_stream", ASK)

    assert (plain["code"], streamed["code"]) == ("TIMEOUT", "TIMEOUT")
    assert ("150 s" not in plain["message"], "0.15 s" in plain["message"]) == (True, True)
    assert "Raise REQUEST_TIMEOUT" in plain["message"]
    assert "Raise REQUEST_TIMEOUT" in streamed["message"]


async def test_what_took_too_long_is_said_with_its_own_limit(api: Simulator, tmp_path: Path) -> None:
    settings = {
        "REQUEST_TIMEOUT": "1000",
        "MERCURY_IDLE_TIMEOUT": "1500",
        "MERCURY_TOTAL_TIMEOUT": "20000",
        "MERCURY_MAX_RETRIES": "0",
    }
    async with bridge_process(api.url, tmp_path, **settings) as client:
        api.faults.next(Fault(delay=10 * PATIENCE))
        late = await client.error("mercury_chat_stream", ASK)
        api.faults.next(Fault(kind="silent", after=2))
        silent = await client.error("mercury_chat_stream", ASK)
        api.faults.next(Fault(kind="endless", chunk_delay=0.05))
        endless = await client.error("mercury_chat_stream", {**ASK, "timeout_ms": 2000})

    assert "did not begin to answer within 1 s" in late["message"]
    assert "nothing more came for 1.5 s" in silent["message"]
    assert "did not answer in whole within its time of 2 s" in endless["message"]
    assert "Raise REQUEST_TIMEOUT" in late["message"]
    assert {late["code"], silent["code"], endless["code"]} == {"TIMEOUT"}


async def test_the_total_time_is_above_all_tries(api: Simulator, tmp_path: Path) -> None:
    settings = {"REQUEST_TIMEOUT": "60000", "MERCURY_TOTAL_TIMEOUT": "2500", "MERCURY_MAX_RETRIES": "20"}
    api.faults.next(Fault(status=503, retry_after_ms="50"))
    api.faults.always(Fault(delay=10 * PATIENCE))
    async with bridge_process(api.url, tmp_path, **settings) as client:
        error = await client.error(CHAT, ASK)

    assert error["code"] == "TIMEOUT"
    assert "Raise MERCURY_TOTAL_TIMEOUT" in error["message"]
    assert len(api.requests.to("/chat/completions")) == 2


@pytest.mark.parametrize(
    "budget",
    [
        {"MERCURY_BUDGET_USD": "1"},
        {"MERCURY_MONTH_BUDGET_USD": "1"},
        {"MERCURY_CLIENT_BUDGET_USD": "1"},
        {"MERCURY_CLIENT_MONTH_BUDGET_USD": "1"},
        {"MERCURY_CLIENT_BUDGETS": "ci=1"},
    ],
)
async def test_a_budget_of_replicas_needs_a_database(budget: dict[str, str]) -> None:
    redis = {"BRIDGEHEAD_REDIS_URL": "redis://127.0.0.1"}
    with pytest.raises(
        SettingError, match=r"BRIDGEHEAD_DATABASE_URL.*budgets of replicas are kept in PostgreSQL"
    ):
        MercurySettings({**redis, **budget})

    database = {"BRIDGEHEAD_DATABASE_URL": "postgresql://127.0.0.1/bridgehead"}
    assert MercurySettings({**redis, **database, **budget}).redis_url is not None
    assert MercurySettings(budget).redis_url is None
    assert MercurySettings(redis).database_url is None
