"""Plan: what an installation or a removal does to the text of one file. Nothing is written here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec import Struct

from bridgehead.runtime import plugins

from . import edit, entries
from .clients import Client
from .entries import ServerEnvironment
from .errors import InstallError
from .json_edit import same

if TYPE_CHECKING:
    from bridgehead.runtime.manifest import Manifest

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_SECRET = re.compile("KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)


class Request(Struct, frozen=True, kw_only=True):
    """What a person asked for."""

    client: Client
    bridges: tuple[str, ...] = ()
    """None are all of them."""
    name: str = ""
    command: tuple[str, ...] = ("bridgehead",)
    url: str = ""
    token_variable: str = ""
    write_secrets: bool = False
    force: bool = False


class Plan(Struct, frozen=True):
    """What comes of it."""

    before: str | None
    after: str | None
    changes: dict[str, str]
    """What happens to each server, in a word or two."""
    notes: tuple[str, ...] = ()
    """What a person has to know."""
    hidden: tuple[str, ...] = ()
    """Values that no one should see on a screen."""


def install(
    text: str | None,
    request: Request,
    environment: Mapping[str, str],
    manifest_of: Callable[[str], Manifest],
) -> Plan:
    """Plan to put servers into the text of a client's file; None is a file that is not there."""
    client = request.client
    old = edit.servers(text, client.form, client.section)
    if request.url:
        wanted, notes, hidden = _remote(request, environment)
    else:
        wanted, notes, hidden = _local(request, environment, manifest_of, old)
    _refuse_strangers(request, old, wanted)
    new = {name: entries.merged(_ours(request, old, name), entry) for name, entry in wanted.items()}
    changes = {name: _change(old, name, entry) for name, entry in new.items()}
    after = edit.put(text, client.form, client.section, new)
    return Plan(text, after, changes, notes, (*hidden, *_secrets(old, new)))


def remove(text: str | None, request: Request) -> Plan:
    """Plan to take servers out of the text of a client's file."""
    client = request.client
    old = edit.servers(text, client.form, client.section)
    names = (request.name,) if request.name else request.bridges or (*plugins.names(), entries.ALL)
    changes = {}
    for name in names:
        if name not in old:
            changes[name] = "not there"
        elif request.force or entries.is_ours(_known_as(request, name), old[name]):
            changes[name] = "removed"
        else:
            changes[name] = "left alone: it starts something else (--force removes it too)"
    gone = [name for name, change in changes.items() if change == "removed"]
    if not request.bridges and not request.name and changes[entries.ALL] == "not there":
        del changes[entries.ALL]
    after = edit.take(text, client.form, client.section, gone)
    return Plan(text, after, changes, hidden=tuple(_secrets(old, gone)))


Wanted = tuple[dict[str, dict[str, Any]], tuple[str, ...], tuple[str, ...]]
"""The entries, the notes, and the values that must not be shown."""


def _local(
    request: Request,
    environment: Mapping[str, str],
    manifest_of: Callable[[str], Manifest],
    old: Mapping[str, Any],
) -> Wanted:
    wanted: dict[str, dict[str, Any]] = {}
    notes: list[str] = []
    hidden: list[str] = []
    for bridge in request.bridges or plugins.names():
        name = request.name or bridge
        try:
            manifest = manifest_of(bridge)
        except plugins.PluginError as error:
            if request.bridges:
                raise
            notes.append(str(error))
            continue
        need = entries.read_server_environment(manifest.settings, environment)
        wanted[name] = entries.local(
            request.client, (*request.command, bridge), need, write_secrets=request.write_secrets
        )
        notes += _about(request, manifest, need, entries.variables_of(old.get(name)))
        hidden += need.secrets.values()
    return wanted, tuple(dict.fromkeys(notes)), tuple(hidden)


def _about(request: Request, manifest: Manifest, need: ServerEnvironment, old: set[str]) -> Iterator[str]:
    """Say of each secret where it is, or has to come from."""
    title = request.client.title
    for name in need.secrets:
        if request.write_secrets:
            yield f"{name} is written into the file, where everyone who can read it can read the secret."
        elif entries.can_refer(request.client):
            yield f"{name} is not in the file: {title} reads its environment. Set it where {title} starts."
        elif name in old:
            yield f"{name} is in the file already, and stays as it is."
        else:
            yield f"{name} is not in the file: {_instead(request.client)}"
    if manifest.first_step is not None:  # which knows better what is missing
        return
    required = {field.variable for field in manifest.form if field.is_required}
    for name in need.missing:
        if name in required and name not in old and f"{name}_FILE" not in need.variables:
            yield f"{name} is not set, so nothing was written for it. Set it, and run this again."


def _instead(client: Client) -> str:
    title, written = client.title, "run this again with --write-secrets to put it there"
    if client.inherits:
        return f"{title} cannot refer to a variable there. Set it where {title} starts, or {written}."
    return f"{title} can neither refer to a variable nor hand its own on. If you accept that, {written}."


def _remote(request: Request, environment: Mapping[str, str]) -> Wanted:
    client = request.client
    if not client.url_field:
        raise InstallError(
            f"{client.title} takes no remote servers from its file.",
            next_step="Add the address in its own settings, under Connectors, or leave out --url.",
        )
    value = environment.get(request.token_variable, "").strip()
    token, notes = _token(request, value)
    parts = urlsplit(request.url)
    if token and parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        notes.append("The token will cross the network unencrypted: use an https address.")
    wanted = {name: entries.remote(client, url, token) for name, url in _addresses(request).items()}
    return wanted, tuple(notes), (value,) if value else ()


def _token(request: Request, value: str) -> tuple[entries.Token | None, list[str]]:
    client, variable = request.client, request.token_variable
    if not variable:
        return None, []
    if request.write_secrets:
        if not value:
            raise InstallError(
                f"{variable} is not set, so there is no token to write.", next_step="Set it, or name another."
            )
        return entries.Token(variable, value), [f"The token in {variable} is written into the file."]
    if entries.can_refer(client):
        said = f"The token is not in the file: {client.title} reads {variable}. Set that where it starts."
        return entries.Token(variable), [said]
    said = f"No token is in the file: {client.title} cannot refer to {variable} there."
    return None, [f"{said} Run this again with --write-secrets, or --no-token if the server asks for none."]


def _addresses(request: Request) -> dict[str, str]:
    """Return each server's name and address: the address of a host stands for its bridges."""
    url = request.url.rstrip("/")
    path = urlsplit(url).path
    if not path.endswith("/mcp"):
        return {
            request.name or bridge: f"{url}/{bridge}/mcp" for bridge in request.bridges or plugins.names()
        }
    named = [bridge for bridge in plugins.names() if path.endswith(f"/{bridge}/mcp")]
    if request.bridges and list(request.bridges) != named:
        raise InstallError(
            f"{request.url} is one server, and not {', '.join(request.bridges)}.",
            next_step="Leave out the bridges, or give the address without its path.",
        )
    return {request.name or (named[0] if named else entries.ALL): url}


def _refuse_strangers(request: Request, old: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    for name, entry in wanted.items():
        is_ours = name in old and entries.is_ours(_known_as(request, name), old[name])
        if name in old and not request.force and not is_ours and not same(old[name], entry):
            raise InstallError(
                f"There is a server named {name} that starts something else.",
                next_step="Choose another name with --name, or replace it with --force.",
            )


def _change(old: Mapping[str, Any], name: str, entry: Mapping[str, Any]) -> str:
    if name not in old:
        return "added"
    return "already there" if same(old[name], entry) else "updated"


def _known_as(request: Request, name: str) -> str:
    """Whoever names a server with --name says that it is one of ours."""
    return entries.ALL if request.name else name


def _ours(request: Request, old: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    found = old.get(name)
    return found if entries.is_ours(_known_as(request, name), found) else None


def _secrets(old: Mapping[str, Any], names: Iterable[str]) -> Iterator[str]:
    """Give what entries of before hold and no one should see on a screen."""
    for entry in (old[name] for name in names if name in old):
        values = [
            *entries.mapping(entry, "headers").values(),
            *entries.mapping(entry, "http_headers").values(),
        ]
        values += [value for name, value in entries.mapping(entry, "env").items() if _SECRET.search(name)]
        yield from (value for value in values if isinstance(value, str) and value and "${" not in value)
