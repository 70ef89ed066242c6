"""The models of the API, as it lists them."""

import pytest

from bridgehead.mercury.api.catalogue import Catalogue
from bridgehead.mercury.calling.keys import Keys
from bridgehead.mercury.errors import MercuryError
from bridgehead.mercury.settings import MercurySettings
from bridgehead.runtime.timing import SystemClock


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


def make_catalogue(api: Api) -> Catalogue:
    settings = MercurySettings({"MERCURY_API_KEY": "sk_only_for_this_test"})
    return Catalogue(api, Keys(settings, SystemClock()), SystemClock(), settings)


NAMES = b'{"data":[{"id":"mercury"},{"id":"mercury-edit"},{"id":"mercury-edit-next"}]}'


async def test_where_models_name_no_endpoints_the_list_of_the_endpoint_is_asked_once() -> None:
    api = Api(NAMES, fim=b'{"data":[{"id":"mercury-edit"}]}')
    catalogue = make_catalogue(api)

    assert await catalogue.list_able("/fim/completions") == ("mercury-edit",)
    assert await catalogue.list_able("/fim/completions") == ("mercury-edit",)
    assert api.asked == ["", "/fim/completions"]


async def test_without_any_endpoints_a_model_for_edits_is_known_by_its_name() -> None:
    api = Api(NAMES)
    catalogue = make_catalogue(api)

    for _ in range(2):
        assert await catalogue.list_able("/edit/completions") == ("mercury-edit", "mercury-edit-next")
        assert await catalogue.list_able("/fim/completions") == ("mercury",)
    assert len(api.asked) == 3


@pytest.mark.parametrize("body", [b"", b"[]", b'{"data":' + b"[" * 100_000], ids=["empty", "list", "deep"])
async def test_a_list_that_cannot_be_read_is_said_to_be_so(body: bytes) -> None:
    with pytest.raises(MercuryError) as failure:
        await make_catalogue(Api(body)).fetch()

    assert failure.value.code == "BAD_RESPONSE"
