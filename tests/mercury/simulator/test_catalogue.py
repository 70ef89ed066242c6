"""Catalogue: the models of the simulated API, as the clients of vendor and OpenAI read them."""

from inceptionai import AsyncInception

from bridgehead.mercury.simulator import MODELS, Simulator


async def test_the_models_are_listed_with_prices_and_limits(sdk: AsyncInception, api: Simulator) -> None:
    listed = await sdk.models.list()

    assert [model.id for model in listed.data] == [model.id for model in MODELS]
    assert all(float(model.pricing.prompt) > 0 for model in listed.data)
    assert all(model.context_length > model.max_output_length > 0 for model in listed.data)


async def test_the_openai_sdk_takes_the_list_of_models_too(api: Simulator) -> None:
    from openai import AsyncOpenAI  # half a second, which workers without this file need not spend

    async with AsyncOpenAI(
        api_key="sk_test", base_url=api.url, max_retries=0, _strict_response_validation=True
    ) as client:
        listed = await client.models.list()

    assert [(model.object, model.owned_by) for model in listed.data] == [("model", "inception")] * len(MODELS)
