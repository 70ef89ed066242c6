"""Makes the documents that say what the code says: `.env.example`, configuration.md and the api pages.

`python docs/generate.py` writes them; with `--check` it writes nothing, shows what differs and fails. The two
pages are made between two marks; what stands around them is written by hand. What makes the texts takes
values and returns text; only `documents` and `main` look at the project.
"""

from __future__ import annotations

import argparse
import difflib
import json
import shlex
import sys
import textwrap
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bridgehead.host.settings import HostSettings
from bridgehead.mcp import Bridge
from bridgehead.mcp.features.prompts import Prompt
from bridgehead.mcp.features.resources import ResourceItem, TemplateItem
from bridgehead.mcp.features.tools import Tool
from bridgehead.mcp.revisions import NEWEST_HANDSHAKE
from bridgehead.runtime import plugins
from bridgehead.runtime.directories import DatabaseSettings, ReplicaSettings, StateSettings
from bridgehead.runtime.logs import LogSettings
from bridgehead.runtime.manifest import Manifest
from bridgehead.runtime.settings import Setting, SettingError, Settings
from bridgehead.runtime.tool_filter import ToolFilterSettings

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
BEGIN, END = "<!-- from here on made by `make docs` -->\n", "<!-- made until here -->\n"
WIDTH = 110

Schema = dict[str, Any]
Declared = tuple[Setting[Any], ...]
Examples = Mapping[str, Mapping[str, dict[str, Any]]]


# --- settings ----------------------------------------------------------------------------------------------

IN_ENV_EXAMPLE = frozenset(
    {
        # The contracts' own variables.
        *("BITBURNER_RPC_URL", "RPC_TIMEOUT_MS", "RPC_RECONNECT_BASE_MS", "RPC_RECONNECT_MAX_MS"),
        *("FILE_WRITE_MAX_BYTES", "MCP_LOG_LEVEL", "MERCURY_API_KEY", "MERCURY_API_URL", "REQUEST_TIMEOUT"),
        *("MAX_REQUEST_SIZE", "CACHE_TTL", "RATE_LIMIT_WINDOW", "RATE_LIMIT_MAX", "LOG_LEVEL"),
        *("MCP_SERVER_HOST", "MCP_SERVER_PORT"),
        # Those that people set beside them.
        *("AOC_DATA_DIR", "AOC_YEAR", "BITBURNER_LISTEN", "BITBURNER_CONFIRM_DELETE"),
        *("MERCURY_MODEL", "MERCURY_BUDGET_USD", "BRIDGEHEAD_STATE_DIR", "BRIDGEHEAD_AUTH"),
        *("BRIDGEHEAD_PUBLIC_URL", "BRIDGEHEAD_DATABASE_URL", "BRIDGEHEAD_REDIS_URL"),
    }
)
"""The settings in `.env.example`. docs/configuration.md has all."""
ENV = """\
# The settings of Bridgehead that people set most, each with its default. docs/configuration.md lists all of
# them. Made by "make docs".
#
# Copy what you need into a file named .env in the folder that bridgehead is started in, and remove the # in
# front of it. The environment goes before that file.
"""


PURPOSES: Mapping[str, tuple[str, ...]] = {
    "Logs": ("LOG_LEVEL", "MCP_LOG_LEVEL", "LOG_FORMAT"),
    "State and replicas": (
        *("BRIDGEHEAD_STATE_DIR", "BRIDGEHEAD_DATABASE_URL", "BRIDGEHEAD_REDIS_URL"),
        *("BRIDGEHEAD_STATE_KEYS", "BRIDGEHEAD_LIMITS_WITHOUT_REDIS", "BRIDGEHEAD_REPLICA_ADDRESS"),
    ),
    "Which tools are offered": (
        *("BRIDGEHEAD_READ_ONLY", "BRIDGEHEAD_ALLOW_TOOLS", "BRIDGEHEAD_DENY_TOOLS", "AOC_TOOLSETS"),
        *("BITBURNER_TOOLSETS", "BITBURNER_READ_ONLY", "MERCURY_TOOLSETS", "BRIDGEHEAD_TOOL_PREFIX"),
        *("AOC_TOOL_PREFIX", "BITBURNER_TOOL_PREFIX", "MERCURY_TOOL_PREFIX"),
    ),
    "Address": (
        *("MCP_SERVER_HOST", "MCP_SERVER_PORT", "BRIDGEHEAD_PUBLIC_URL"),
        *("BRIDGEHEAD_ALLOWED_HOSTS", "BRIDGEHEAD_ALLOWED_ORIGINS", "BRIDGEHEAD_TRUSTED_PROXIES"),
        *("BRIDGEHEAD_TLS_CERT", "BRIDGEHEAD_TLS_KEY"),
    ),
    "Access": (
        *("BRIDGEHEAD_AUTH", "BRIDGEHEAD_TOKENS_FILE", "BRIDGEHEAD_OAUTH_ISSUER"),
        *("BRIDGEHEAD_OAUTH_AUDIENCE", "BRIDGEHEAD_OAUTH_JWKS_URL", "BRIDGEHEAD_OAUTH_CLIENT_ID"),
        "BRIDGEHEAD_OAUTH_PER_MINUTE",
        "BRIDGEHEAD_OAUTH_CLIENT_SECRET",
    ),
    "Processes": (
        *("BRIDGEHEAD_BRIDGES", "BRIDGEHEAD_REUSE_PORT", "BRIDGEHEAD_DRAIN_SECONDS"),
        *("BRIDGEHEAD_SHUTDOWN_SECONDS", "BRIDGEHEAD_PROBE_SECONDS"),
    ),
    "Limits": (
        *("BRIDGEHEAD_BODY_LIMIT", "BRIDGEHEAD_MEMORY_LIMIT", "BRIDGEHEAD_CONNECTIONS"),
        "BRIDGEHEAD_IDLE_SECONDS",
        *("BRIDGEHEAD_SESSIONS_PER_CLIENT", "BRIDGEHEAD_SESSION_SECONDS", "BRIDGEHEAD_TASK_SECONDS"),
    ),
    "Dashboard, logs and events": (
        *("BRIDGEHEAD_DASHBOARD", "BRIDGEHEAD_ACCESS_LOG", "BRIDGEHEAD_AUDIT_DAYS", "BRIDGEHEAD_AUDIT_LINES"),
        *("BRIDGEHEAD_WEBHOOK_URL",),
        *("BRIDGEHEAD_WEBHOOK_SECRET", "BRIDGEHEAD_WEBHOOK_EVENTS", "BRIDGEHEAD_EVENT_CONTENT"),
        "OTEL_EXPORTER_OTLP_ENDPOINT",
    ),
    "Puzzles and records": (
        "AOC_DATA_DIR",
        "AOC_YEAR",
        "AOC_RECORD_KEYS",
        "AOC_GRADE_KEY_FILE",
        "AOC_CALLER",
    ),
    "Fetching puzzles": ("AOC_CONTACT", "AOC_SESSION_FILE"),
    "Connection to the game": (
        *("BITBURNER_LISTEN", "BITBURNER_ALLOW_REMOTE", "BITBURNER_ALLOWED_ORIGINS", "BITBURNER_RPC_URL"),
        *("BITBURNER_TLS_CERT", "BITBURNER_TLS_KEY", "BITBURNER_CONNECT_WAIT_MS", "RPC_TIMEOUT_MS"),
        *("RPC_RECONNECT_BASE_MS", "RPC_RECONNECT_MAX_MS", "RPC_RECONNECT_MAX_ATTEMPTS"),
    ),
    "Changing files": (
        *("FILE_WRITE_MAX_BYTES", "BITBURNER_CONFIRM_DELETE", "BITBURNER_REFUSE_STALE_WRITES"),
        *("BITBURNER_BACKUP_DIR", "BITBURNER_BACKUP_MAX_FILES"),
    ),
    "The API": (
        *("MERCURY_API_KEY", "MERCURY_API_KEY_FILE", "MERCURY_API_URL", "MERCURY_ROUTES_FILE"),
        *("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY"),
    ),
    "Models": (
        *("MERCURY_MODEL", "MERCURY_FIM_MODEL", "MERCURY_EDIT_MODEL"),
        *("MERCURY_EMBEDDING_MODEL", "MERCURY_FINE_TUNING"),
        "MERCURY_ALLOWED_MODELS",
    ),
    "Calls": (
        *("MERCURY_FILES", "MAX_REQUEST_SIZE", "REQUEST_TIMEOUT"),
        *("MERCURY_IDLE_TIMEOUT", "MERCURY_TOTAL_TIMEOUT", "MERCURY_MAX_RETRIES"),
        *("MERCURY_RETRY_DELAY", "MCP_TRANSPORT", "LOG_CONTENT"),
    ),
    "Money": (
        *("MERCURY_BUDGET_USD", "MERCURY_MONTH_BUDGET_USD", "MERCURY_CLIENT_BUDGET_USD"),
        *("MERCURY_CLIENT_MONTH_BUDGET_USD", "MERCURY_CLIENT_BUDGETS"),
    ),
    "Rate limits": (
        *("RATE_LIMIT_ENABLED", "RATE_LIMIT_WINDOW", "RATE_LIMIT_WAIT_MS", "RATE_LIMIT_MAX"),
        *("RATE_LIMIT_INPUT_TOKENS", "RATE_LIMIT_OUTPUT_TOKENS", "RATE_LIMIT_SERVER_MAX"),
        *("RATE_LIMIT_SERVER_INPUT_TOKENS", "RATE_LIMIT_SERVER_OUTPUT_TOKENS"),
    ),
    "Cache": (
        "CACHE_ENABLED",
        "CACHE_COMPLETIONS",
        "CACHE_SHARED",
        "CACHE_TTL",
        "CACHE_MAX_SIZE",
    ),
}
"""What settings are for: the headings of configuration.md within a part, and their order."""


class Group(NamedTuple):
    """Settings that belong together."""

    title: str
    about: str
    settings: Declared


def groups(parts: Mapping[str, Declared]) -> list[Group]:
    """Put each setting where it belongs, once: what all share first, then the parts in their order."""
    shared = (
        *LogSettings.declared,
        *StateSettings.declared,
        *DatabaseSettings.declared,
        *ReplicaSettings.declared,
        *ToolFilterSettings.declared,
    )
    found = [Group("For everything", "What is logged, where state is kept, which tools are offered.", shared)]
    seen = {setting.name for setting in shared}
    for part, declared in parts.items():
        own = tuple(setting for setting in declared if setting.name not in seen)
        elsewhere = [s.name for s in declared if s.name in seen and s not in shared]
        title = "The host" if part == "host" else f"The {part} bridge"
        about = (
            "`bridgehead serve`." if part == "host" else f"`bridgehead {part}`, see [its page]({part}.md)."
        )
        if elsewhere:
            about += f" It reads {', '.join(f'`{name}`' for name in elsewhere)} above, too."
        found.append(Group(title, about, own))
        seen |= {setting.name for setting in own}
    return found


def configuration(parts: Mapping[str, Declared]) -> str:
    """Write the tables of configuration.md."""
    pieces = []
    head = ("variable", "default", "must be", "what it does", "read by")
    for group in groups(parts):
        pieces.append(f"## {group.title}\n\n{group.about}\n")
        left = {setting.name: setting for setting in group.settings}
        by_purpose = {
            purpose: [left.pop(name) for name in names if name in left] for purpose, names in PURPOSES.items()
        }
        by_purpose[""] = list(left.values())  # those of a bridge that is not ours
        for purpose, settings in by_purpose.items():
            if settings:
                rows = (_setting_row(setting, _readers(setting, parts)) for setting in settings)
                pieces.append((f"### {purpose}\n\n" if purpose else "") + table(head, rows))
    return "\n".join(pieces)


def env_example(parts: Mapping[str, Declared]) -> str:
    """Write .env.example: the settings that people set most, commented out, with their defaults."""
    pieces = [ENV]
    for group in groups(parts):
        lines = [_setting_lines(setting) for setting in group.settings if setting.name in IN_ENV_EXAMPLE]
        if lines:
            pieces += [f"# --- {group.title} ".ljust(WIDTH, "-") + "\n", *lines]
    return "\n".join(pieces)


def _setting_row(setting: Setting[Any], readers: str) -> tuple[str, ...]:
    default = f"`{setting.shown_default}`" if _is_value(setting) else setting.shown_default
    about = f"{setting.about} **Secret.**" if setting.is_secret else setting.about
    return f"`{setting.name}`", default, setting.kind.wanted, about, readers


def _setting_lines(setting: Setting[Any]) -> str:
    default = setting.shown_default if _is_value(setting) else ""
    about = f"{setting.about} Must be {setting.kind.wanted}."
    if setting.shown_default and not default:
        about += f" Default: {setting.shown_default}."
    about += " Secret." if setting.is_secret else ""
    comment = textwrap.fill(about, WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
    return f"{comment}\n#{setting.name}={default}\n"


def _is_value(setting: Setting[Any]) -> bool:
    """Tell whether the default that is shown could be set, and is no description of it."""
    try:
        return (
            bool(setting.shown_default)
            and setting.read({setting.name: setting.shown_default}) == setting.default
        )
    except SettingError:
        return False


def _readers(setting: Setting[Any], parts: Mapping[str, Declared]) -> str:
    readers = [part for part, declared in parts.items() if setting.name in {one.name for one in declared}]
    return "all" if len(readers) == len(parts) else ", ".join(readers)


# --- tools -------------------------------------------------------------------------------------------------


def api(offered: Mapping[str, Bridge[Any]]) -> str:
    """Write what api.md tells: the tools of each bridge, with links to its page."""
    return "".join(
        f"- [{name}](api-{name}.md): "
        + ", ".join(f"[`{tool.name}`](api-{name}.md#{tool.name})" for tool in listed(bridge))
        + "\n"
        for name, bridge in offered.items()
    )


def bridge_page(name: str, bridge: Bridge[Any], shown: Mapping[str, dict[str, Any]]) -> str:
    """Write the page of a bridge's tools, resources and prompts."""
    tables: dict[str, str] = {}
    head = f"See also [how to read this page](api.md) and [how the bridge works]({name}.md)."
    pieces = [f"# Tools of {name}\n\n{head}\n"]
    pieces += [_tool(name, tool, shown.get(tool.name), tables) for tool in listed(bridge)]
    return "\n".join([*pieces, *_resources(bridge), *_prompts(bridge)])


def listed(bridge: Bridge[Any]) -> list[Tool]:
    """Return the tools that every client is told of; those of apps are in docs/apps.md."""
    return [tool for tool in bridge.tools.values() if tool.visible_to == "everyone"]


def _tool(bridge: str, tool: Tool, arguments: dict[str, Any] | None, tables: dict[str, str]) -> str:
    item = msgspec.to_builtins(tool.item(NEWEST_HANDSHAKE))
    hints = ", ".join(f"`{hint}={json.dumps(value)}`" for hint, value in item.get("annotations", {}).items())
    pieces = [f"## {tool.name}\n"]
    pieces += [f"**{tool.title}.** {tool.description}\n" if tool.title else f"{tool.description}\n"]
    pieces += [f"Annotations: {hints}\n"] if hints else []
    pieces += [f"Input{_fields(tool, tool.input_schema, tables)}"]
    if tool.output_schema is None:
        pieces += ["Output: content only, no structure.\n"]
    else:
        pieces += [f"Output{_fields(tool, tool.output_schema, tables)}"]
    if arguments is None:
        return "\n".join(pieces)
    params = json.dumps({"name": tool.name, "arguments": arguments}, ensure_ascii=False)
    pieces += [f"```sh\n{command(bridge, tool.name, arguments)}\n```\n", f"```json\n{params}\n```\n"]
    return "\n".join(pieces)


def command(bridge: str, tool: str, arguments: Mapping[str, Any]) -> str:
    """Word a call as a person types it in a shell."""
    pairs = (
        f"{key}={value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for key, value in arguments.items()
    )
    return shlex.join(["bridgehead", "call", bridge, tool, *pairs])


def _fields(tool: Tool, schema: Schema, tables: dict[str, str]) -> str:
    """Show a schema as a table, or name the tool that has shown the same one."""
    rows = list(fields(schema))
    if not rows:
        return ": nothing.\n"
    text = table(("field", "type", "what it is"), rows)
    first = tables.setdefault(text, tool.name)
    return f":\n\n{text}" if first == tool.name else f": the same as of [`{first}`](#{first}).\n"


def fields(schema: Schema, path: str = "") -> Iterator[tuple[str, ...]]:
    """Give a row for each field of an object, and for the fields within it."""
    required = schema.get("required") or next(
        (o["required"] for o in schema.get("anyOf", ()) if "required" in o), ()
    )
    for name, one in schema.get("properties", {}).items():
        named = kind(one)
        if "default" in one:
            named += f"; default `{json.dumps(one['default'], ensure_ascii=False)}`"
        elif name not in required:
            named += "; optional"
        yield f"`{path}{name}`", named, _about(one)
        yield from _within(one, f"{path}{name}")


def _within(schema: Schema, path: str) -> Iterator[tuple[str, ...]]:
    if "properties" in schema:
        yield from fields(schema, f"{path}.")
    for option in schema.get("anyOf", ()):
        yield from _within(option, path)
    if "items" in schema:
        yield from _within(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _within(schema["additionalProperties"], f"{path}.*")


def kind(schema: Schema) -> str:
    """Name the type of a field, with its limits."""
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(one)}`" for one in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(kind(one) for one in schema["anyOf"])
    named = schema.get("type", "any")
    if "items" in schema:
        named = f"array of {kind(schema['items'])}"
    elif isinstance(schema.get("additionalProperties"), dict):
        named = f"object of {kind(schema['additionalProperties'])}"
    limits = (
        _limits(schema.get("minimum"), schema.get("maximum"), ""),
        _limits(schema.get("minLength"), schema.get("maxLength"), " characters"),
        _limits(schema.get("minItems"), schema.get("maxItems"), " items"),
    )
    told = ", ".join(limit for limit in limits if limit)
    return f"{named} ({told})" if told else named


def _limits(least: float | None, most: float | None, unit: str) -> str:
    if most is None:
        return "" if least is None else f"at least {least}{unit if least != 1 else unit.removesuffix('s')}"
    return f"at most {most}{unit}" if least is None else f"{least} to {most}{unit}"


def _about(schema: Schema) -> str:
    if "description" in schema:
        return str(schema["description"])
    if "items" in schema:
        return f"Each: {about}" if (about := _about(schema["items"])) else ""
    options = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
    return _about(options[0]) if len(options) == 1 else ""


def _resources(bridge: Bridge[Any]) -> Iterator[str]:
    items: list[tuple[str, ResourceItem | TemplateItem]] = [
        *((one.item.uri, one.item) for one in bridge.resources.values()),
        *((one.item.uri_template, one.item) for one in bridge.templates.values()),
    ]
    rows = [(f"`{uri}`", item.name, item.mime_type or "", item.description or "") for uri, item in items]
    if rows:
        said = "Clients can subscribe to them.\n\n" if bridge.subscribable else ""
        yield f"## Resources\n\n{said}{table(('address', 'name', 'type', 'what it is'), rows)}"


def _prompts(bridge: Bridge[Any]) -> Iterator[str]:
    rows = [
        (f"`{prompt.name}`", prompt.description, _prompt_arguments(prompt))
        for prompt in bridge.prompts.values()
    ]
    if rows:
        yield f"## Prompts\n\n{table(('prompt', 'what it does', 'arguments'), rows)}"


def _prompt_arguments(prompt: Prompt) -> str:
    return "; ".join(
        f"`{one.name}`{'' if one.required else ' (optional)'}: {one.description}"
        for one in prompt.item(NEWEST_HANDSHAKE).arguments or ()
    )


# --- both --------------------------------------------------------------------------------------------------


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Write a Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def settings_of_parts(classes: Mapping[str, type[Settings]]) -> dict[str, Declared]:
    """Give what each part reads: its own, and for a bridge also what of it is offered."""
    return {
        part: tuple({s.name: s for s in (*ToolFilterSettings.declared, *of.declared)}.values())
        for part, of in classes.items()
    }


def placed(page: str, made: str) -> str:
    """Put what was made between the marks of a page."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"A page lacks {BEGIN.strip()} or {END.strip()}.")
    return f"{before}{BEGIN}\n{made}\n{END}{after}"


def examples() -> Examples:
    """Read the arguments of one call of each tool."""
    return tomllib.loads((DOCS / "examples.toml").read_text(encoding="utf-8"))


def made_pages(
    manifests: Mapping[str, Manifest], shown: Examples
) -> tuple[dict[str, str], dict[str, str], str]:
    """Make what the code says: parts of pages, whole pages, and .env.example."""
    bridges = {name: one.make(one.settings({}), None) for name, one in manifests.items()}
    classes: dict[str, type[Settings]] = {"host": HostSettings}
    parts = settings_of_parts(classes | {name: one.settings for name, one in manifests.items()})
    pages = {"configuration.md": configuration(parts), "api.md": api(bridges)}
    whole = {f"api-{name}.md": bridge_page(name, made, shown.get(name, {})) for name, made in bridges.items()}
    return pages, whole, env_example(parts)


def documents() -> dict[Path, str]:
    """Make all documents of the built-in bridges from the code as it is."""
    pages, whole, environment = made_pages(
        {name: plugins.load(name) for name in plugins.built_in_names()}, examples()
    )
    placed_pages = {
        DOCS / name: placed((DOCS / name).read_text(encoding="utf-8"), text) for name, text in pages.items()
    }
    whole_pages = {DOCS / name: text for name, text in whole.items()}
    return {ROOT / ".env.example": environment, **placed_pages, **whole_pages}


def difference(path: Path, made: str) -> str:
    """Show how a file differs from what is made; nothing where it does not."""
    there = path.read_text(encoding="utf-8") if path.exists() else ""
    name = path.relative_to(ROOT).as_posix()
    return "".join(
        difflib.unified_diff(
            there.splitlines(keepends=True), made.splitlines(keepends=True), name, f"{name}, made anew"
        )
    )


def main(arguments: list[str]) -> int:
    """Write the documents, or check them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail where a document is not up to date"
    )
    parser.add_argument("--bridge", metavar="NAME", help="print the pages with this bridge; write nothing")
    options = parser.parse_args(arguments)
    if options.bridge:
        pages, whole, _ = made_pages({options.bridge: plugins.load(options.bridge)}, {})
        print(*pages.values(), *whole.values(), sep="\n")
        return 0
    made = documents()
    differences = [found for path, text in made.items() if (found := difference(path, text))]
    if options.check:
        print(
            *differences,
            "Run `make docs`." if differences else "The documents say what the code says.",
            sep="\n",
        )
        return int(bool(differences))
    for path, text in made.items():
        path.write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
