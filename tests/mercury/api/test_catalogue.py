"""The models of the API, as it lists them."""

from typing import cast

import pytest

from bridgehead.mercury.api.catalogue import RETRY_SECONDS, TTL_SECONDS, Catalogue
from bridgehead.mercury.api.client import ApiClient
from bridgehead.mercury.calling.keys import Keys
from bridgehead.mercury.completion import Tokens
from bridgehead.mercury.errors import MercuryError
from bridgehead.mercury.settings import MercurySettings
from bridgehead.runtime.timing import SystemClock
from tests.support.clock import Clock
from tests.support.waiting import until


class Api:
    """Gives one list of models, and lists of endpoints where it has some."""

    def __init__(self, body: bytes, **lists: bytes) -> None:
        self.body = body
        self.lists = lists
        self.asked: list[str] = []

    async def fetch_models(self, key: str, seconds: float, *, endpoint: str = "") -> bytes:
        self.asked.append(endpoint)
        if not endpoint:
            return self.body
        if endpoint.split("/")[1] not in self.lists:
            raise MercuryError("NOT_FOUND", "There is nothing here.")
        return self.lists[endpoint.split("/")[1]]


def make_catalogue(api: Api, clock: Clock | None = None) -> Catalogue:
    settings = MercurySettings({"MERCURY_API_KEY": "sk_only_for_this_test"})
    either = clock or SystemClock()
    return Catalogue(cast("ApiClient", api), Keys(settings, either), either, settings)


NAMES = b'{"data":[{"id":"mercury"},{"id":"mercury-edit"},{"id":"mercury-edit-next"}]}'


async def test_where_models_name_no_endpoints_the_list_of_the_endpoint_is_asked_once() -> None:
    api = Api(NAMES, fim=b'{"data":[{"id":"mercury-edit"}]}')
    catalogue = make_catalogue(api)

    assert await catalogue.list_usable("/fim/completions") == ("mercury-edit",)
    assert await catalogue.list_usable("/fim/completions") == ("mercury-edit",)
    assert api.asked == ["", "/fim/completions"]


async def test_without_any_endpoints_a_model_for_edits_is_known_by_its_name() -> None:
    api = Api(NAMES)
    catalogue = make_catalogue(api)

    for _ in range(2):
        assert await catalogue.list_usable("/edit/completions") == ("mercury-edit", "mercury-edit-next")
        assert await catalogue.list_usable("/fim/completions") == ("mercury",)
    assert len(api.asked) == 3


@pytest.mark.parametrize(
    "body", [b"", b'"none"', b'{"data":' + b"[" * 100_000], ids=["empty", "text", "deep"]
)
async def test_a_list_that_cannot_be_read_is_said_to_be_so(body: bytes) -> None:
    with pytest.raises(MercuryError) as failure:
        await make_catalogue(Api(body)).fetch()

    assert failure.value.code == "BAD_RESPONSE"


# --- prices ------------------------------------------------------------------------------------------------


def priced(dollars: str) -> bytes:
    return b'{"data":[{"id":"mercury","pricing":{"prompt":"%b","completion":"0"}}]}' % dollars.encode()


def cost(catalogue: Catalogue) -> float | None:
    prices = catalogue.find_prices("mercury")
    return None if prices is None else prices.cost(Tokens(10, 0, 10))


async def test_prices_are_renewed_while_they_are_used() -> None:
    api, clock = Api(priced("0.1")), Clock()
    catalogue = make_catalogue(api, clock)
    await catalogue.load()
    api.body = priced("1")
    catalogue.renew()
    assert cost(catalogue) == 1.0

    clock.advance(TTL_SECONDS)
    assert not catalogue.is_current
    catalogue.renew()
    await until(lambda: catalogue.is_current)

    assert cost(catalogue) == 10.0
    assert len(api.asked) == 2


async def test_an_old_list_stays_in_use_until_a_newer_one_has_arrived() -> None:
    api, clock = Api(priced("0.1")), Clock()
    catalogue = make_catalogue(api, clock)
    await catalogue.load()
    clock.advance(TTL_SECONDS)
    api.body = b"not a list"
    for _ in range(3):
        assert await catalogue.load() is None
        await until(lambda: catalogue._fetching is None)  # noqa: SLF001 - nothing else shows that it failed
        assert (catalogue.has_current_price("mercury"), cost(catalogue)) == (True, 1.0)
    assert len(api.asked) == 2  # not again at once where it fails

    api.body = priced("1")
    clock.advance(RETRY_SECONDS)
    await catalogue.load()
    await until(lambda: catalogue.is_current)

    assert cost(catalogue) == 10.0


async def test_a_list_that_a_charge_has_shown_to_be_wrong_is_not_used_again() -> None:
    api = Api(priced("0.1"))
    catalogue = make_catalogue(api)
    await catalogue.load()
    catalogue.expire()
    assert not catalogue.has_current_price("mercury")

    api.body = priced("1")
    await catalogue.load()

    assert (catalogue.has_current_price("mercury"), cost(catalogue)) == (True, 10.0)


async def test_why_there_is_no_list_is_told() -> None:
    problem = await make_catalogue(Api(b"not a list")).load()

    assert problem is not None
    assert problem.code == "BAD_RESPONSE"


@pytest.mark.parametrize(("length", "most"), [("1000", 1000), ("0", None), ("-5", None), ("null", None)])
async def test_an_answer_that_could_not_be_longer_than_nothing_may_have_any_length(
    length: str, most: int | None
) -> None:
    catalogue = make_catalogue(Api(b'{"data":[{"id":"mercury","max_output_length":%b}]}' % length.encode()))
    await catalogue.load()

    assert catalogue.max_output("mercury") == most


@pytest.mark.parametrize(
    "body",
    [
        b'{"data":[{"id":"odd","context_length":"long"},{"name":"no id"},{"id":"mercury"}]}',
        b'[{"id":"odd"},{"id":"mercury"}]',
    ],
    ids=["odd entries", "bare list"],
)
async def test_a_list_of_another_form_is_read_as_far_as_possible(body: bytes) -> None:
    models = await make_catalogue(Api(body)).fetch()

    assert [model.id for model in models] == ["odd", "mercury"]
