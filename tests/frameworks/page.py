"""The page docs/clients.md: the snippets that are run, and the table of what came of it."""

import re
from datetime import UTC, datetime

from tests.frameworks.converters import Converted
from tests.frameworks.environments import Client
from tests.interop.node import ROOT

PAGE = ROOT / "docs" / "clients.md"
BEGIN = "<!-- results: written by `python -m tests.frameworks --write` -->"
END = "<!-- end of results -->"


ADDRESS = "http://127.0.0.1:3000"
"""Where the snippets of the page look for a host."""
TRANSPORTS = {"stdio": "stdio", "http": "HTTP", "sse": "HTTP+SSE"}
"""The transports, and their names on the page."""
Results = dict[tuple[Client, str], str]
"""What is wrong with a client over a transport, or nothing."""


def find_programs(section: str) -> dict[str, str]:
    """Return the programs that stand under a heading of the page, by transport."""
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(section)}(\n.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    blocks = re.findall(
        r"([^\n]*)\n\n```\w+\n(.*?)^```$", found[1] if found else "", re.MULTILINE | re.DOTALL
    )
    if not blocks:
        raise SystemExit(f"docs/clients.md has no snippet under the heading {section!r}.")
    (_, program), *others = blocks
    titles = {f"Over {title}:": name for name, title in TRANSPORTS.items()}
    programs = {"http" if ADDRESS in program else "stdio": program}
    return programs | {titles[title]: replace_statements(program, block) for title, block in others}


def replace_statements(program: str, block: str) -> str:
    """Put a block in the place of the statement that gives a value to the same name, as a reader would."""
    (name,) = re.findall(r"^(?:const )?(\w+) = ", block, re.MULTILINE)
    statement = re.compile(rf"^(?:const )?{name} = .*\n(?:[ \t)\]}}].*\n)*", re.MULTILINE)
    replaced, count = statement.subn(lambda _: block, program)
    if count != 1:
        raise SystemExit(f"docs/clients.md: {name!r} does not stand once in the snippet that it replaces.")
    return replaced


def write_results(results: Results, converted: Converted) -> None:
    """Write the table anew, with the versions and the date."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    tables = f"{_clients(results)}\n\n{_converters(converted)}"
    PAGE.write_text(f"{before}{BEGIN}\n\n{tables}\n\n{END}{after}", encoding="utf-8")


def _clients(results: Results) -> str:
    rows = [
        f"| {client.name} | `{client.package}` | {client.version} | "
        + " | ".join(_result(results.get((client, transport))) for transport in TRANSPORTS)
        + " |"
        for client in dict.fromkeys(client for client, _ in results)
    ]
    head = [
        f"Tried on {datetime.now(UTC).date()} (a dash: the client does not have that transport):",
        "",
        f"| client | package | version | {' | '.join(TRANSPORTS.values())} |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    return "\n".join([*head, *rows])


def _result(problem: str | None) -> str:
    if problem is None:
        return "–"
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
    return "\n".join([*head, *rows])
