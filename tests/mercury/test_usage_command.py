"""Usage command: what was used by day, model and client, in each form it can be shown."""

import asyncio
import json
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bridgehead.commands import db
from bridgehead.mercury.calling.sqlite_usage import FILE, open_database
from bridgehead.mercury.calling.usage import UsageCounts, add_usage
from bridgehead.mercury.settings import SIMULATED_KEY
from bridgehead.mercury.simulator import Fault, Simulator
from tests.mercury.process import PATIENCE, bridge_process, command

pytestmark = pytest.mark.asyncio(loop_scope="module")


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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--days", "0"], "'0' is not a whole number from 1 to 10000"),
        (["--days", "some"], "'some' is not a whole number from 1 to 10000"),
        (["--by", "day,,client"], "'' is not valid. Valid values are day, model, client"),
        (["--format", "xml"], "xml"),
    ],
)
async def test_what_cannot_be_shown_is_refused_in_words(
    tmp_path: Path, arguments: list[str], said: str
) -> None:
    code, out, err = await command("", tmp_path, "usage", *arguments)

    assert (code, out) == (2, "")
    assert said in err


async def test_only_the_days_that_are_asked_for_are_shown(tmp_path: Path) -> None:
    today = datetime.now(UTC).date()
    (tmp_path / "mercury").mkdir()
    with closing(open_database(tmp_path / "mercury" / FILE)) as connection:
        for days, calls in ((0, 1), (6, 10), (7, 100)):
            day = (today - timedelta(days=days)).isoformat()
            add_usage(connection, day, "mercury-2", "me", UsageCounts(calls=calls, cost_usd=0.5, unpriced=1))
        connection.commit()

    _, week, _ = await command("", tmp_path, "usage", "--days", "7", "--by", "model", "--format", "json")
    _, table, _ = await command("", tmp_path, "usage", "--days", "7")

    (row,) = json.loads(week)
    assert (row["calls"], row["cost_usd"], row["unpriced"]) == (11, 1.0, 2)
    assert "$1.0000+" in table  # and what has no price yet


async def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "mercury").mkdir()
    (tmp_path / "mercury" / FILE).write_text("no database, but long enough to be looked at as one" * 50)

    code, _, err = await command("", tmp_path, "usage")

    assert code == 2
    assert str(tmp_path / "mercury" / FILE) in err


LOSE = {"MERCURY_BUDGET_USD": "1", "MERCURY_MAX_RETRIES": "0"}


async def test_the_payer_sees_what_is_uncertain_and_releases_it(api: Simulator, tmp_path: Path) -> None:
    ask = {"messages": [{"role": "user", "content": "Of loss, in 8 words"}], "max_tokens": 20}
    state = tmp_path / "state"
    async with bridge_process(api.url, tmp_path, **LOSE) as client:
        await client.call("mercury_list_models")
        for _ in range(2):
            api.faults.next(Fault(kind="drop"))
            await client.error("mercury_chat_completion", ask)
        async with asyncio.timeout(PATIENCE):
            row = {"uncertain_sends": 0}
            while row["uncertain_sends"] < 2:  # the end of a send is booked a little later
                (row,) = json.loads((await command(api.url, state, "usage", "--format", "json"))[1])
        refused, _, unasked = await command(api.url, state, "usage", "--release")
        released, said, audit = await command(api.url, state, "usage", "--release", "--yes")
        _, again, _ = await command(api.url, state, "usage", "--release", "--yes")
        budget = (await client.call("mercury_usage"))["structuredContent"]["budget"]

    assert (row["uncertain_sends"], row["reserved_usd"]) == (2, 0.0)
    assert row["uncertain_usd"] > 0
    assert refused == 1
    assert "Nothing was released. Add --yes" in unasked
    assert (released, said.split(" from ")[0]) == (0, f"Released ${row['uncertain_usd']:.6f} of 2 sends")
    assert '"uncertain money released"' in audit
    assert again.startswith("Nothing is uncertain")
    assert (budget["committed_usd"], budget["uncertain_usd"]) == (0.0, 0.0)


async def test_what_is_uncertain_in_a_database_is_released_as_well(
    api: Simulator, tmp_path: Path, database_url: str
) -> None:
    ask = {"messages": [{"role": "user", "content": "Of loss, in 8 words"}], "max_tokens": 20}
    shared = {"BRIDGEHEAD_DATABASE_URL": database_url}
    await asyncio.to_thread(db.main, ["migrate"], shared)
    async with bridge_process(api.url, tmp_path, **LOSE, **shared) as client:
        await client.call("mercury_list_models")
        api.faults.next(Fault(kind="cut"))
        await client.error("mercury_chat_completion", ask)
        (row,) = json.loads(
            (await command(api.url, tmp_path, "usage", "--by", "model,client", "--format", "json", **shared))[
                1
            ]
        )
        _, said, _ = await command(api.url, tmp_path, "usage", "--release", "--yes", **shared)
        budget = (await client.call("mercury_usage"))["structuredContent"]["budget"]

    assert (row["model"], row["client"], row["uncertain_sends"]) == ("mercury-2", "tests", 1)
    assert said.startswith(f"Released ${row['uncertain_usd']:.6f} of 1 send from")
    assert (budget["committed_usd"], budget["uncertain_usd"]) == (0.0, 0.0)


async def test_simulated_money_does_not_enter_the_real_books(api: Simulator, tmp_path: Path) -> None:
    key = {"MERCURY_API_KEY": SIMULATED_KEY, "MERCURY_BUDGET_USD": "1"}
    async with bridge_process(api.url, tmp_path, **key) as client:
        assert "isError" not in await client.call("mercury_list_models")
        asked = {"messages": [{"role": "user", "content": "Hi"}]}
        result = await client.call("mercury_chat_completion", asked)
    simulated = await command(api.url, tmp_path / "state", "usage", "--format", "json", **key)
    real = await command(api.url, tmp_path / "state", "usage", "--format", "json")

    cost = result["structuredContent"]["metadata"]["cost_usd"]
    assert [row["cost_usd"] for row in json.loads(simulated[1])] == [cost]
    assert json.loads(real[1]) == []
