"""Doctor: what the mercury bridge needs is looked at for real, and keys are never shown."""

from pathlib import Path

import pytest

from bridgehead.mercury.doctor import examine
from bridgehead.mercury.simulator import Simulator
from tests.mercury.process import sharing
from tests.support.redis_server import RedisServer


def environment(api: Simulator, folder: Path, **more: str) -> dict[str, str]:
    return {
        "MERCURY_API_URL": api.url,
        "MERCURY_API_KEY": "sk_test",
        "MERCURY_MODEL": "mercury-2",
        "BRIDGEHEAD_STATE_DIR": str(folder),
        **more,
    }


async def examine_with(variables: dict[str, str], *, offline: bool = False) -> dict[str, tuple[str, str]]:
    return {
        finding.what: (finding.verdict, finding.text) for finding in await examine(variables, offline=offline)
    }


async def test_a_key_and_a_model_that_work_are_right(tmp_path: Path) -> None:
    async with Simulator() as api:
        findings = await examine_with(environment(api, tmp_path))

    assert findings["key"][0] == findings[f"API at {api.url}"][0] == findings["model"][0] == "right"
    assert findings["state"] == ("right", f"{tmp_path / 'mercury'}, made when it is first needed")
    assert [*tmp_path.iterdir()] == []


async def test_offline_nothing_is_asked(tmp_path: Path) -> None:
    async with Simulator() as api:
        findings = await examine_with(environment(api, tmp_path), offline=True)
        assert len(api.requests) == 0

    assert f"API at {api.url}" not in findings


async def test_what_is_wrong_is_named(tmp_path: Path) -> None:
    async with Simulator() as api:
        assert (await examine_with(environment(api, tmp_path, MERCURY_API_KEY="")))["key"][0] == "wrong"
        assert (await examine_with(environment(api, tmp_path, MERCURY_MODEL="mercury-9")))["model"][
            0
        ] == "wrong"
        async with api.refusing():
            findings = await examine_with(environment(api, tmp_path))
    verdict, text = findings[f"API at {api.url}"]
    assert verdict == "wrong"
    assert "sk_test" not in text


@pytest.mark.parametrize("key", ["sk_your_key", "YOUR-API-KEY", "sk-xxxxxxxx", "changeme"])
async def test_a_placeholder_is_no_key_and_nothing_is_asked_with_it(tmp_path: Path, key: str) -> None:
    async with Simulator() as api:
        findings = await examine_with(environment(api, tmp_path, MERCURY_API_KEY=key))
        assert len(api.requests) == 0

    assert findings["key"] == ("wrong", "it is a placeholder from an example, not a key")


async def test_what_replicas_share_is_named(tmp_path: Path, redis_server: RedisServer) -> None:
    async with Simulator() as api:
        alone = await examine_with(environment(api, tmp_path), offline=True)
        shared = await examine_with(environment(api, tmp_path, **sharing(redis_server)), offline=True)

    assert alone["database"][1] == "not set: usage and budgets are kept on this machine"
    assert alone["redis"][1].startswith("not set: rate limits")
    assert "shares rate limits" in shared["redis"][1]
    assert "but not cached answers, deduplication, circuit breakers" in shared["redis"][1]
