"""`mercury_list_models` and `mercury://models`: the same list, in the words of the contract."""

import json

import pytest

from bridgehead.mercury.simulator import Fault, Simulator
from tests.mercury.process import BridgeProcess, bridge_process

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_models_are_listed_as_the_contract_has_it(client: BridgeProcess) -> None:
    result = await client.call("mercury_list_models")

    listed = json.loads(result["content"][0]["text"])
    assert listed == result["structuredContent"]
    for model in listed["models"]:
        assert model["id"].startswith("mercury")
        assert isinstance(model["owned_by"], str)
        assert isinstance(model["created"], int)
        assert isinstance(model["capabilities"], list)
        assert model["price_usd_per_token"]["prompt"] > 0
    assert [model["id"] for model in listed["models"] if model.get("is_default")] == ["mercury-2"]


async def test_the_resource_says_the_same(client: BridgeProcess) -> None:
    (contents,) = (await client.request("resources/read", {"uri": "mercury://models"}))["contents"]

    assert contents["mimeType"] == "application/json"
    listed = await client.call("mercury_list_models")
    assert json.loads(contents["text"]) == listed["structuredContent"]


async def test_nothing_may_be_given(client: BridgeProcess) -> None:
    error = await client.error("mercury_list_models", {"all": True})

    assert error["type"] == "validation_error"


@pytest.mark.parametrize("fault", [Fault(kind="garbage", on="models"), Fault(status=500, on="models")])
async def test_a_list_that_cannot_be_had_is_an_error(
    api: Simulator, tmp_path_factory: pytest.TempPathFactory, fault: Fault
) -> None:
    api.faults.always(fault)
    async with bridge_process(api.url, tmp_path_factory.mktemp("models")) as client:
        error = await client.error("mercury_list_models")

    assert error["type"] == "api_error"
