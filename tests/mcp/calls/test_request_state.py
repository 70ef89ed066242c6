"""Sealed state: what a client carries between two rounds is ours, unchanged, in time, and of this request."""

import base64
import hmac
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from bridgehead.mcp import Limits, ProtocolError
from bridgehead.mcp.calls import request_state
from bridgehead.mcp.calls.multi_round import MultiRound
from bridgehead.mcp.calls.request_state import MemoryNonces, Seal, fingerprint
from tests.mcp.calls.two_rounds import RED, refused, second_round, stateless
from tests.support.clock import Clock


async def test_an_answer_may_hold_any_number_that_json_can_write() -> None:
    large = {"action": "accept", "content": {"color": "red", "exactly": 10**40}}
    async with stateless() as client:
        first = await client.call("rounds")
        second = await client.call(
            "rounds", inputResponses={"one": large}, requestState=first["requestState"]
        )

    assert list(second["inputRequests"]) == ["two"]


async def test_the_order_in_which_arguments_are_written_does_not_matter() -> None:
    first, second = Raw(b'{"a":1,"b":[2]}'), Raw(b' { "b":[2], "a" :1}')
    assert fingerprint("", "m", "s", first) == fingerprint("", "m", "s", second)
    assert fingerprint("", "m", "s", Raw(b'{"a":1}')) != fingerprint("", "m", "s", Raw(b'{"a":2}'))


def test_requests_whose_names_read_the_same_when_joined_are_different() -> None:
    assert fingerprint("", "tools", "call", Raw(b"{}")) != fingerprint("", "tool", "scall", Raw(b"{}"))


@pytest.mark.parametrize("state", ["", "x", "AAAA", "not base64!", "ü", "A" * 100, "====", "AAAA" * 5000])
async def test_a_state_that_is_not_ours_is_refused(state: str) -> None:
    async with stateless() as client:
        assert "not made by this server" in await refused(client, state)


async def test_a_state_that_was_changed_is_refused() -> None:
    async with stateless() as client:
        sealed = bytearray(base64.urlsafe_b64decode(await second_round(client)))
        for place in (0, 31, 32, len(sealed) // 2, len(sealed) - 1):
            changed = bytearray(sealed)
            changed[place] ^= 1
            assert "was changed" in await refused(client, base64.urlsafe_b64encode(changed).decode())
        assert "was changed" in await refused(client, base64.urlsafe_b64encode(sealed[:-1]).decode())


async def test_a_state_of_the_wrong_type_is_refused() -> None:
    async with stateless() as client:
        assert "requestState must be a string (got an integer)" in await refused(client, 5)


async def test_a_state_of_another_request_is_refused() -> None:
    async with stateless() as client:
        state = await second_round(client)

        assert "another request" in await refused(client, state, arguments={"subject": "me"})
        assert "another request" in await refused(client, state, name="form")
        error = await client.error("prompts/get", {"name": "asking_prompt", "requestState": state})
        assert "another request" in error["message"]


async def test_a_state_of_another_principal_is_refused() -> None:
    async with stateless() as client:
        client.connection.principal = "ada"
        state = await second_round(client)
        for other in ("bob", None):
            client.connection.principal = other
            assert "another request" in await refused(client, state)
        client.connection.principal = "ada"
        assert (await client.call("rounds", requestState=state))["resultType"] == "input_required"


async def test_a_state_of_another_bridge_is_refused_though_the_keys_are_the_same() -> None:
    async with stateless() as client:
        state = await second_round(client)
        here, client.dispatcher.scope = client.dispatcher.scope, "another bridge"
        assert "another request" in await refused(client, state)

        client.dispatcher.scope = here
        assert (await client.call("rounds", requestState=state))["resultType"] == "input_required"


async def test_a_state_of_another_token_of_the_same_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async with stateless() as client:
        client.connection.principal = "ada"
        state = await second_round(client)
        monkeypatch.setattr(client, "token_id", "new", raising=False)
        assert "another request" in await refused(client, state)


async def test_a_state_of_another_version_is_refused() -> None:
    payload = msgspec.json.encode([{}, "", None, 1e12, "nonce"])
    sealed = base64.urlsafe_b64encode(hmac.digest(b"shared", payload, "sha256") + payload).decode()
    async with stateless() as client:
        client.dispatcher.multi_round = MultiRound(b"shared", 900.0)
        assert "not made by this server" in await refused(client, sealed)


async def test_a_state_that_is_too_old_is_refused() -> None:
    async with stateless(limits=Limits(request_state_seconds=-1.0)) as client:
        first = await client.call("rounds")

        assert "expired" in await refused(client, first["requestState"])


async def test_a_state_of_another_server_is_refused() -> None:
    async with stateless() as client, stateless() as other:
        state = await second_round(client)

        assert "not made by this server" in await refused(other, state)


def test_a_state_is_good_until_its_time_is_over() -> None:
    clock = Clock(1000.0)
    seal = Seal(b"key", clock=clock.now)
    sealed = seal.close({"a": RED}, b"request", 60.0)

    clock.advance(60.0)
    assert seal.open(sealed, b"request").answers == {"a": RED}
    clock.advance(0.1)
    with pytest.raises(ProtocolError, match="expired"):
        seal.open(sealed, b"request")


def test_servers_with_the_same_key_open_each_others_states() -> None:
    sealed = Seal(b"shared").close({}, b"request", 60.0)

    assert Seal(b"shared").open(sealed, b"request").answers == {}
    with pytest.raises(ProtocolError, match="not made by this server"):
        Seal(b"other").open(sealed, b"request")


answers = st.dictionaries(
    st.text(max_size=5),
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.text(max_size=9)),
)


@given(given_answers=answers, request=st.binary(max_size=9))
def test_any_answers_come_out_as_they_went_in(given_answers: dict[str, Any], request: bytes) -> None:
    seal = Seal(b"key", clock=lambda: 0.0)

    sealed = seal.close(given_answers, request, 1.0)
    assert seal.open(sealed, request).answers == given_answers


@given(
    given_answers=answers,
    place=st.integers(0, 10_000),
    replacement=st.binary(max_size=3),
    length=st.integers(0, 3),
)
def test_any_change_to_a_sealed_state_is_refused(
    given_answers: dict[str, Any], place: int, replacement: bytes, length: int
) -> None:
    seal = Seal(b"key", clock=lambda: 0.0)
    sealed = base64.urlsafe_b64decode(seal.close(given_answers, b"request", 1.0))
    place %= len(sealed)
    changed = sealed[:place] + replacement + sealed[place + length :]
    if changed == sealed:
        changed += b"x"

    with pytest.raises(ProtocolError, match="requestState is refused"):
        seal.open(base64.urlsafe_b64encode(changed).decode(), b"request")


@given(text=st.text())
def test_any_text_that_is_no_state_is_refused(text: str) -> None:
    with pytest.raises(ProtocolError, match="requestState is refused"):
        Seal(b"key").open(text, b"request")


async def test_of_many_states_the_oldest_is_forgotten_for_a_new_one_and_never_for_one_that_came(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(request_state, "_MAX_USED", 2)
    used = MemoryNonces(lambda: 1000.0)
    assert [await used.use(nonce, 1060.0) for nonce in ("a", "b", "c")] == [True, True, True]

    assert [await used.use(nonce, 1060.0) for nonce in ("b", "c", "b")] == [False, False, False]
    assert await used.use("a", 1060.0)


async def test_a_state_is_used_once_and_forgotten_when_it_could_not_come_again() -> None:
    clock = Clock(1000.0)
    used = MemoryNonces(clock.now)

    assert [await used.use("a", 1060.0), await used.use("a", 1060.0), await used.use("b", 1060.0)] == [
        True,
        False,
        True,
    ]
    clock.advance(60.0)
    assert [await used.use("new", 1060.0), await used.use("a", 1060.0)] == [
        True,
        False,
    ]  # it could come this very instant
    clock.advance(1.0)
    assert await used.use("c", 1100.0)
    assert len(used._used) == 1  # noqa: SLF001 - what it remembers
