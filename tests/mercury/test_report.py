"""Report: what the host's page shows of the API."""

from pathlib import Path

from bridgehead.mercury.calling.service import Service
from bridgehead.mercury.calling.usage import UsageCounts
from bridgehead.mercury.report import DAYS, report
from bridgehead.mercury.settings import MercurySettings
from bridgehead.runtime.findings import Report

BUDGET = {"MERCURY_BUDGET_USD": "2", "MERCURY_API_KEY": "sk_test"}


async def tell(folder: Path, used: dict[str, UsageCounts], **settings: str) -> Report:
    service = Service(MercurySettings({"BRIDGEHEAD_STATE_DIR": str(folder), **settings}))
    for model, counts in used.items():
        service.usage.count(model, "ann", counts)
    try:
        return await report(service)
    finally:
        await service.close()


async def test_money_and_usage_are_told_by_day_and_model(tmp_path: Path) -> None:
    used = {
        "small": UsageCounts(calls=1200, errors=2, prompt_tokens=10, cost_usd=0.25),
        "large": UsageCounts(calls=3, cost_usd=1.5),
    }
    told = await tell(tmp_path, used, **BUDGET)

    facts = {fact.label: fact.value for fact in told.facts}
    assert (facts["Budget of the day"], facts[f"Settled in {DAYS} days"]) == ("$0.00 of $2.00", "$1.75")
    assert (facts["Uncertain"], facts["Reserved now"]) == ("$0.00, 0 requests", "$0.00")
    assert facts["Keys"] == "1"
    calls, cost = told.charts
    assert (len(calls.bars), calls.bars[-1].shown, cost.bars[-1].shown) == (DAYS, "1,203 calls", "$1.75")
    assert [row[0] for row in told.tables[0].rows] == ["large", "small"]
    assert told.tables[0].rows[1][1:3] == ("1,200", "2")
    by_client = told.tables[1]
    assert (by_client.columns[0], by_client.columns[-2:]) == ("Client", ("Uncertain", "Reserved"))
    assert [(row[0], row[-3]) for row in by_client.rows] == [("ann", "$1.75")]


async def test_nothing_used_is_nothing_shown(tmp_path: Path) -> None:
    told = await tell(tmp_path, {})

    assert ("Budget", "no limit") in [(fact.label, fact.value) for fact in told.facts]
    assert (told.tables[0].rows, sum(bar.value for bar in told.charts[0].bars)) == ((), 0)


async def test_usage_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "mercury").write_text("not a folder")
    told = await tell(tmp_path, {}, **BUDGET)

    assert "Usage" in {fact.label for fact in told.facts}
