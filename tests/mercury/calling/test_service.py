"""Service: opened whole, warmed in the background, and closed in the end."""

from pathlib import Path

import pytest

from bridgehead.mercury.calling.service import open_service
from bridgehead.mercury.settings import MercurySettings
from bridgehead.mercury.simulator import Simulator
from tests.support.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_the_models_are_asked_for_before_anybody_needs_them(api: Simulator, tmp_path: Path) -> None:
    environment = {
        "MERCURY_API_URL": api.url,
        "MERCURY_API_KEY": "sk_test",
        "BRIDGEHEAD_STATE_DIR": str(tmp_path),
    }
    async with open_service(MercurySettings(environment)) as service:
        await until(lambda: len(api.requests.to("/models")) == 1)
        assert service.keys.count == 1


async def test_without_a_key_nothing_is_asked(api: Simulator, tmp_path: Path) -> None:
    environment = {"MERCURY_API_URL": api.url, "BRIDGEHEAD_STATE_DIR": str(tmp_path)}
    async with open_service(MercurySettings(environment)) as service:
        assert service.keys.count == 0
    assert len(api.requests) == 0
