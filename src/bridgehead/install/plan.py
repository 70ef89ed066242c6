"""Plan: computes the text of one client's file after an installation or a removal. Writes nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from bridgehead.runtime import bridge_files, plugins
from bridgehead.runtime.manifest import Manifest

from . import edit, entries
from .clients import Client
from .entries import ServerEnvironment
from .errors import InstallError
from .json_edit import same

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_SECRET = re.compile("KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)


class InstallRequest(Struct, frozen=True, kw_only=True):
    """The options of one installation or removal, for one client."""

    client: Client
    bridges: tuple[str, ...] = ()
    """Names, and absolute paths of files; empty for all bridges."""
    name: str = ""
    command: tuple[str, ...] = ("bridgehead",)
    url: str = ""
    token_variable: str = ""
    write_secrets: bool = False
    prefix_tools: bool = False
    force: bool = False


class Plan(Struct, frozen=True):
    """The file's text before and after (None: no file), and what to tell the user."""

    before: str | None
    after: str | None
    changes: dict[str, str]
    """What happens to each server, by name, in a word or two."""
    notes: tuple[str, ...] = ()
    """Sentences for the user, such as where a secret must be set."""
    hidden: tuple[str, ...] = ()
    """Secrets that must be masked in any output."""
    withheld: dict[str, tuple[str, ...]] = {}
    """By bridge: secrets that are set here, and that the client will not get."""


def install(
    text: str | None,
    request: InstallRequest,
    environment: Mapping[str, str],
    load_manifest: Callable[[str], Manifest],
) -> Plan:
    """Plan to put servers into a client's file; `text` is None if there is no file."""
    client = request.client
    old = edit.servers(text, client.form, client.section)
    withheld: dict[str, tuple[str, ...]] = {}
    if request.url:
        requested, notes, hidden = _remote(request, environment)
    else:
        requested, notes, hidden = _local(request, environment, load_manifest, old, withheld)
    new: dict[str, dict[str, Any]] = {}
    changes: dict[str, str] = {}
    for name, entry in requested.items():
        is_ours = name in old and entries.is_ours(_known_as(request, name), old[name])
        # A bridge file may use the name of a built-in bridge; neither replaces the other without --force.
        is_ours = is_ours and bool(entries.starts_file(old[name])) == bool(entries.starts_file(entry))
        if name in old and not request.force and not is_ours and not same(old[name], entry):
            raise InstallError(
                f"There is a server named {name} that starts something else.",
                next_step="Choose another name with --name, or replace it with --force.",
            )
        # With --force, a foreign entry is replaced without keeping any of its fields.
        new[name] = entries.merged(old[name] if is_ours else None, entry)
        if name not in old:
            changes[name] = "added"
        else:
            changes[name] = "already there" if same(old[name], new[name]) else "updated"
    after = edit.put(text, client.form, client.section, new)
    return Plan(text, after, changes, notes, (*hidden, *_secrets(old, new)), withheld)


def remove(text: str | None, request: InstallRequest) -> Plan:
    """Plan to take servers out of a client's file; entries that are not ours stay unless forced."""
    client = request.client
    old = edit.servers(text, client.form, client.section)
    names: tuple[str, ...] = (request.name,) if request.name else (*plugins.names(), entries.ALL)
    if request.bridges and not request.name:
        # By its path, not by its name, which is inside the file: the file may have been deleted.
        names = tuple(
            name
            for bridge in request.bridges
            for name in (
                [known for known, entry in old.items() if entries.starts_file(entry) == bridge] or [bridge]
            )
        )
    changes = {}
    for name in names:
        if name not in old:
            changes[name] = "not there"
        elif request.force or entries.is_ours(_known_as(request, name), old[name]):
            changes[name] = "removed"
        else:
            changes[name] = "left alone: it starts something else (--force removes it too)"
    removed = [name for name, change in changes.items() if change == "removed"]
    # Few clients have the combined server, so its absence is not reported.
    if not request.bridges and not request.name and changes[entries.ALL] == "not there":
        del changes[entries.ALL]
    after = edit.take(text, client.form, client.section, removed)
    return Plan(text, after, changes, hidden=tuple(_secrets(old, removed)))


RequestedEntries = tuple[dict[str, dict[str, Any]], tuple[str, ...], tuple[str, ...]]
"""Entries by name, notes, and secrets to mask."""


def _local(
    request: InstallRequest,
    environment: Mapping[str, str],
    load_manifest: Callable[[str], Manifest],
    old: Mapping[str, Any],
    withheld: dict[str, tuple[str, ...]],
) -> RequestedEntries:
    requested: dict[str, dict[str, Any]] = {}
    notes: list[str] = []
    hidden: list[str] = []
    for bridge in request.bridges or plugins.names():
        try:
            manifest = load_manifest(bridge)
        except plugins.PluginError as error:
            if request.bridges:
                raise
            # Without names all bridges are meant, and a broken plugin must not stop the others.
            notes.append(str(error))
            continue
        name = request.name or (manifest.name if bridge_files.is_file(bridge) else bridge)
        need = entries.read_server_environment(manifest.settings, environment)
        if request.prefix_tools:
            variable = entries.add_tool_prefix(need, manifest.settings, name, old.get(name))
            notes += (
                [f"Tools of {name} begin with {need.variables[variable]} ({variable})."] if variable else []
            )
        requested[name] = entries.local(
            request.client, (*request.command, bridge), need, write_secrets=request.write_secrets
        )
        old_variables = entries.variables_of(old.get(name))
        notes += _secret_notes(request, manifest, need, old_variables)
        if not (request.write_secrets or entries.can_refer(request.client) or request.client.inherits):
            missing = tuple(secret for secret in need.secrets if secret not in old_variables)
            withheld |= {bridge: missing} if missing else {}
        hidden += need.secrets.values()
    return requested, tuple(dict.fromkeys(notes)), tuple(hidden)


def _secret_notes(
    request: InstallRequest, manifest: Manifest, need: ServerEnvironment, old: set[str]
) -> Iterator[str]:
    """Say for each secret whether it is in the file, or where the user must set it."""
    title = request.client.title
    for name in need.secrets:
        if request.write_secrets:
            yield f"{name} is written into the file, where everyone who can read it can read the secret."
        elif entries.can_refer(request.client):
            yield f"{name} is not in the file: {title} reads its environment. Set it where {title} starts."
        elif name in old:
            yield f"{name} is in the file already, and stays as it is."
        elif request.client.inherits:
            yield (
                f"{name} is not in the file: {title} cannot refer to a variable there. "
                f"Set it where {title} starts, or run this again with --write-secrets to put it there."
            )
        else:
            yield (
                f"{name} is not in the file: {title} cannot read environment variables. "
                "Run this again with --write-secrets to put it there, if you accept that."
            )
    if manifest.first_step is not None:  # the bridge itself says what is missing, under "Next"
        return
    required = {field.variable for field in manifest.form if field.is_required}
    for name in need.missing:
        if name in required and name not in old and f"{name}_FILE" not in need.variables:
            yield f"{name} is not set, so nothing was written for it. Set it, and run this again."


def _remote(request: InstallRequest, environment: Mapping[str, str]) -> RequestedEntries:
    client = request.client
    if not client.url_field:
        raise InstallError(
            f"{client.title} takes no remote servers from its file.",
            next_step="Add the address in its own settings, under Connectors, or leave out --url.",
        )
    value = environment.get(request.token_variable, "").strip()
    variable = request.token_variable
    token, notes = None, []
    if variable and request.write_secrets:
        if not value:
            raise InstallError(
                f"{variable} is not set, so there is no token to write.", next_step="Set it, or name another."
            )
        token = entries.Token(variable, value)
        notes.append(f"The token in {variable} is written into the file.")
    elif variable and entries.can_refer(client):
        token = entries.Token(variable)
        notes.append(
            f"The token is not in the file: {client.title} reads {variable}. Set that where it starts."
        )
    elif variable:
        notes.append(
            f"No token is in the file: {client.title} cannot refer to {variable} there. "
            "Run this again with --write-secrets, or --no-token if the server asks for none."
        )
    if request.prefix_tools:
        notes.append(
            "The server names its tools itself. If names collide, set BRIDGEHEAD_TOOL_PREFIX, or the prefix "
            "of one bridge, where it runs."
        )
    parts = urlsplit(request.url)
    if token and parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        notes.append("The token will cross the network unencrypted: use an https address.")
    requested = {name: entries.remote(client, url, token) for name, url in _addresses(request).items()}
    return requested, tuple(notes), (value,) if value else ()


def _addresses(request: InstallRequest) -> dict[str, str]:
    """Return each server's name and URL; a URL that does not end in /mcp is a host with all bridges."""
    url = request.url.rstrip("/")
    path = urlsplit(url).path
    if not path.endswith("/mcp"):
        return {
            # As `serve` without names: whether the server has a plugin of this machine is not known here.
            request.name or bridge: f"{url}/{bridge}/mcp"
            for bridge in request.bridges or plugins.built_in_names()
        }
    named = [bridge for bridge in plugins.names() if path.endswith(f"/{bridge}/mcp")]
    if request.bridges and list(request.bridges) != named:
        raise InstallError(
            f"{request.url} is one server, and not {', '.join(request.bridges)}.",
            next_step="Leave out the bridges, or give the address without its path.",
        )
    return {request.name or (named[0] if named else entries.ALL): url}


def _known_as(request: InstallRequest, name: str) -> str:
    """Return the name to pass to `is_ours`: a server named with --name counts as ours."""
    return entries.ALL if request.name else name


def _secrets(old: Mapping[str, Any], names: Iterable[str]) -> Iterator[str]:
    """Yield the secrets in existing entries, which a diff would show."""
    # Headers are always secret, variables by their name; "${" is a reference and no secret.
    for entry in (old[name] for name in names if name in old):
        values = [
            *entries.mapping(entry, "headers").values(),
            *entries.mapping(entry, "http_headers").values(),
        ]
        values += [value for name, value in entries.mapping(entry, "env").items() if _SECRET.search(name)]
        yield from (value for value in values if isinstance(value, str) and value and "${" not in value)
