"""The models of the API, as it lists them."""

import pytest

from bridgehead.mercury.api.catalogue import Catalogue
from bridgehead.mercury.calling.keys import Keys
from bridgehead.mercury.errors import MercuryError
from bridgehead.mercury.settings import MercurySettings
from bridgehead.runtime.timing import SystemClock


class Api:
    """Gives one list of models."""

    def __init__(self, body: bytes) -> None:
        self.body = body

    async def fetch_models(self, key: str, seconds: float) -> bytes:
        return self.body


def make_catalogue(body: bytes) -> Catalogue:
    settings = MercurySettings({"MERCURY_API_KEY": "sk_only_for_this_test"})
    return Catalogue(Api(body), Keys(settings, SystemClock()), SystemClock(), settings)


async def test_without_endpoints_in_the_list_a_model_for_edits_is_known_by_its_name() -> None:
    catalogue = make_catalogue(
        b'{"data":[{"id":"mercury"},{"id":"mercury-edit"},{"id":"mercury-edit-next"}]}'
    )
    await catalogue.load()

    assert catalogue.choose("edit", "mercury", ()) == "mercury-edit"
    assert catalogue.choose("edit", "mercury", ("mercury", "mercury-edit-next")) == "mercury-edit-next"
    assert catalogue.choose("fim", "mercury-edit", ()) == "mercury"


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"data":' + b"[" * 100_000], ids=["nothing", "a list", "deep"]
)
async def test_a_list_that_cannot_be_read_is_said_to_be_so(body: bytes) -> None:
    with pytest.raises(MercuryError) as failure:
        await make_catalogue(body).fetch()

    assert failure.value.code == "BAD_RESPONSE"
