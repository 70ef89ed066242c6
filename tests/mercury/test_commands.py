"""What a person types: `bridgehead mercury doctor`, `settings`, `simulate`."""

import asyncio
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bridgehead.mercury.simulator import Fault, Simulator
from tests.mercury.one_answer import one_answer
from tests.mercury.process import KEY, bridge_process, environment
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def command(url: str, folder: Path, *arguments: str, **settings: str) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bridgehead",
        "mercury",
        *arguments,
        env={**environment(url, folder, **settings), "COLUMNS": "200", "PYTHONIOENCODING": "utf-8"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), PATIENCE)
    assert process.returncode is not None
    shown, wrong = (said.decode().replace("\r\n", "\n") for said in (out, err))
    return process.returncode, shown, wrong


async def test_the_doctor_finds_all_well(api: Simulator, tmp_path: Path) -> None:
    code, out, err = await command(api.url, tmp_path, "doctor")

    assert (code, err) == (0, "")
    assert "the key is accepted; 7 models" in out
    assert "✗" not in out
    assert KEY not in out
    assert len(api.requests) == 1


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault(status=401, on="models", message=f"{KEY} is wrong"), "does not accept the key"),
        (Fault(status=503, on="models"), "503"),
    ],
)
async def test_the_doctor_says_what_is_wrong_with_the_api(
    api: Simulator, tmp_path: Path, fault: Fault, words: str
) -> None:
    api.faults.always(fault)
    code, out, _ = await command(api.url, tmp_path, "doctor")

    assert code == 1
    assert words in out
    assert KEY not in out


async def test_the_doctor_misses_a_key_and_a_model(api: Simulator, tmp_path: Path) -> None:
    code, out, _ = await command(api.url, tmp_path, "doctor", MERCURY_API_KEY="")
    assert code == 1
    assert "There is no API key" in out

    code, out, _ = await command(api.url, tmp_path, "doctor", MERCURY_MODEL="mercury-9")
    assert code == 1
    assert "Set MERCURY_MODEL." in out


async def test_the_doctor_can_stay_offline_and_misses_a_folder(api: Simulator, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, out, _ = await command(
        api.url, tmp_path, "doctor", "--offline", BRIDGEHEAD_STATE_DIR=str(tmp_path / "file" / "state")
    )

    assert code == 1
    assert "BRIDGEHEAD_STATE_DIR" in out
    assert not len(api.requests)


async def test_the_settings_are_listed_without_secrets(api: Simulator, tmp_path: Path) -> None:
    code, out, _ = await command(api.url, tmp_path, "settings")

    assert code == 0
    assert "REQUEST_TIMEOUT" in out
    assert KEY not in out


async def test_the_doctor_shows_no_key_that_an_api_repeats(tmp_path: Path) -> None:
    echo = f"Invalid key: Bearer {KEY}"
    models = {"data": [{"id": KEY, "owned_by": echo}]}
    async with one_answer(401, {"error": {"message": echo}}, models=models) as url:
        _, out, err = await command(url, tmp_path, "doctor", LOG_LEVEL="debug")

    assert "***" in out
    assert KEY not in out + err


async def test_the_simulated_api_is_a_command(tmp_path: Path) -> None:
    code, out, _ = await command("", tmp_path, "simulate", "--help")

    assert code == 0
    assert "--port" in out


@pytest.mark.parametrize("wrong", [["dance"], ["doctor", "--loudly"]])
async def test_a_wrong_command_is_refused_in_one_line(tmp_path: Path, wrong: list[str]) -> None:
    code, _, err = await command("", tmp_path, *wrong)

    assert code == 2
    assert err.count("\n") == 1


async def test_usage_is_shown_by_day_model_and_client(api: Simulator, tmp_path: Path) -> None:
    assert (await command(api.url, tmp_path / "state", "usage"))[1] == "No usage in these days.\n"
    ask = {"messages": [{"role": "user", "content": "Of use, in 8 words"}]}
    async with bridge_process(api.url, tmp_path) as client:
        await client.call("mercury_list_models")
        cost = (await client.call("mercury_chat_completion", ask))["structuredContent"]["metadata"][
            "cost_usd"
        ]
        await client.call("mercury_chat_completion", {**ask, "model": "mercury-3"})

    today = datetime.now(UTC).date().isoformat()
    _, as_json, _ = await command(
        api.url, tmp_path / "state", "usage", "--by", "day,model,client", "--format", "json"
    )
    _, as_csv, _ = await command(api.url, tmp_path / "state", "usage", "--by", "model", "--format", "csv")
    _, table, _ = await command(api.url, tmp_path / "state", "usage", "--by", "model")
    _, chart, _ = await command(api.url, tmp_path / "state", "usage", "--format", "chart")
    code, _, error = await command(api.url, tmp_path / "state", "usage", "--by", "week")

    first, second = json.loads(as_json)
    assert (first["day"], first["model"], first["client"], first["calls"]) == (today, "mercury-2", "tests", 1)
    assert first["cost_usd"] == pytest.approx(cost)
    assert second["model"] == "mercury-3"
    assert as_csv.splitlines()[0].startswith("model,calls,errors,cache_hits,prompt_tokens")
    assert as_csv.splitlines()[1].startswith("mercury-2,1,0,0,")
    assert "mercury-3" in table
    assert "Total" in table
    assert today in chart
    assert "█" in chart
    assert code == 2
    assert "'week' is not valid. Valid values are day, model, client" in error
