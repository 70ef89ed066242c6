"""Calls: whose limits they count against."""

from types import SimpleNamespace
from typing import Any, cast

from bridgehead.mcp import Context
from bridgehead.mercury.calling.call import ANONYMOUS, identify_account


def context(name: str, *, principal: str | None = None, has_session: bool = True) -> Context[Any]:
    """Make as much of a context as says who calls."""
    connection = SimpleNamespace(principal=principal, listener=object() if has_session else None)
    client = SimpleNamespace(info={"name": name})
    return cast("Context[Any]", SimpleNamespace(connection=connection, client=client))


def test_a_client_cannot_get_new_limits_by_calling_itself_something_else() -> None:
    first, renamed = context("first"), context("renamed")
    renamed.connection = first.connection

    assert identify_account(first) == identify_account(renamed)
    assert identify_account(first) != identify_account(context("first"))  # on another connection


def test_a_token_is_one_account_on_all_its_connections() -> None:
    accounts = {identify_account(context(name, principal="ci")) for name in ("one", "other")}

    assert accounts == {"ci"}


def test_requests_without_a_token_and_a_session_count_together() -> None:
    accounts = {identify_account(context(name, has_session=False)) for name in ("one", "other")}

    assert accounts == {ANONYMOUS}
