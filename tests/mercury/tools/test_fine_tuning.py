"""`mercury_fine_tuning_status`: offered where a provider has such jobs, and free."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bridgehead.mercury.bridge import make_bridge
from bridgehead.mercury.settings import MercurySettings
from tests.mercury.process import KEY, environment, error_of
from tests.support.checked import CheckedClient, connect
from tests.support.fake_api import Answer, Request, fake_api

pytestmark = pytest.mark.asyncio(loop_scope="module")

STATUS = "mercury_fine_tuning_status"
JOB = {
    "object": "fine_tuning.job",
    "id": "ftjob-1",
    "model": "small",
    "created_at": 1_786_000_000,
    "fine_tuned_model": "ft:small:me",
    "status": "succeeded",
    "trained_tokens": 5768,
    "error": {},
}


@asynccontextmanager
async def tuning(folder: Path, pages: dict[str, Any]) -> AsyncIterator[CheckedClient]:
    """Connect to the bridge before an API with such pages."""

    async def respond(request: Request) -> Answer:
        assert request.headers["authorization"] == f"Bearer {KEY}"
        page = pages.get(request.path)
        body = (
            page if isinstance(page, bytes) else json.dumps(page or {"error": {"message": "none"}}).encode()
        )
        return Answer(200 if page else 404, body)

    async with fake_api(respond) as api:
        given = environment(f"{api.url}/v1", folder, MERCURY_FINE_TUNING="mercury")
        async with connect(make_bridge(MercurySettings(given))) as client:
            yield client


async def test_it_is_offered_only_if_a_provider_is_set() -> None:
    assert STATUS not in make_bridge(MercurySettings({})).tools
    assert STATUS in make_bridge(MercurySettings({"MERCURY_FINE_TUNING": "mercury"})).tools


async def test_all_jobs_or_one_are_reported(tmp_path: Path) -> None:
    queued = {"id": "ftjob-2", "status": "queued", "fine_tuned_model": None}
    pages = {"/v1/fine_tuning/jobs": {"data": [queued, JOB]}, "/v1/fine_tuning/jobs/ftjob-1": JOB}
    async with tuning(tmp_path, pages) as client:
        everything = (await client.call(STATUS))["structuredContent"]["jobs"]
        one = (await client.call(STATUS, {"job": "ftjob-1"}))["structuredContent"]["jobs"]

    assert [(job["id"], job["status"]) for job in everything] == [
        ("ftjob-2", "queued"),
        ("ftjob-1", "succeeded"),
    ]
    assert one == [everything[1]]
    assert one[0]["fine_tuned_model"] == "ft:small:me"


async def test_a_job_that_is_not_there_and_a_page_that_is_no_list_are_errors(tmp_path: Path) -> None:
    async with tuning(tmp_path, {"/v1/fine_tuning/jobs": b"<html>"}) as client:
        missing = error_of(await client.call(STATUS, {"job": "../models"}))
        unreadable = error_of(await client.call(STATUS))

    assert missing["code"] == "NOT_FOUND"
    assert "/fine_tuning/jobs/..%2Fmodels" in missing["message"]
    assert unreadable["code"] == "BAD_RESPONSE"
