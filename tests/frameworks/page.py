"""The page docs/clients.md: the snippets that are run, and the table of what came of it."""

import re
from datetime import UTC, datetime

from tests.frameworks.converters import NOT_STRICT, Converted
from tests.frameworks.environments import Client
from tests.interop.node import ROOT

PAGE = ROOT / "docs" / "clients.md"
BEGIN = "<!-- results: written by `python -m tests.frameworks --write` -->"
END = "<!-- end of results -->"


def find_snippet(section: str) -> str:
    """Return the code that stands under a heading of the page."""
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(section)}\n.*?^```\w+\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise SystemExit(f"docs/clients.md has no snippet under the heading {section!r}.")
    return found[1]


def write_results(results: dict[Client, str], converted: Converted) -> None:
    """Write the table anew, with the versions and the date."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    tables = f"{_clients(results)}\n\n{_converters(converted)}"
    PAGE.write_text(f"{before}{BEGIN}\n\n{tables}\n\n{END}{after}", encoding="utf-8")


def _clients(results: dict[Client, str]) -> str:
    rows = [
        f"| {client.name} | `{client.package}` | {client.version} | {_result(problem)} |"
        for client, problem in results.items()
    ]
    head = [
        f"Tried on {datetime.now(UTC).date()}:",
        "",
        "| client | package | version | result |",
        "| --- | --- | --- | --- |",
    ]
    return "\n".join([*head, *rows])


def _result(problem: str) -> str:
    return "works" if not problem else problem.splitlines()[0].partition(":")[0]


def _converters(converted: Converted) -> str:
    rows = [
        f"| {name} | {', '.join(f'`{word}`' for word in dropped) or 'nothing'} |"
        for name, dropped in converted.dropped.items()
    ]
    head = [
        f"The SDKs of three vendors convert all {converted.tools} tools. What a converter drops, the bridge",
        "still checks, and tells the model what it expects:",
        "",
        "| converter | drops |",
        "| --- | --- |",
    ]
    names = ", ".join(f"`{name}`" for name in sorted(NOT_STRICT))
    note = f"Strict mode has no map by names of one's own, so the Agents SDK offers {names} without it."
    return "\n".join([*head, *rows, "", note])
