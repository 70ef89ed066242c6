"""What the project's own files promise: documents that tell the truth, files that suit every machine.

Owns the checks of files that no tool checks already. What ruff, mypy and import-linter hold is not repeated
here.
"""

import os
import re
import sys
import tomllib
import types
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import tasks
from bridgehead import __version__
from bridgehead.host.settings import HostSettings
from bridgehead.mcp.in_memory import connect
from bridgehead.runtime import plugins

ROOT = Path(__file__).parent.parent
FOLDERS = (".ci", ".github", "bench", "deploy", "docs", "examples", "release", "requirements", "src", "tests")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])

OF_THIS_MACHINE = re.compile(r"\.coverage|\.env$|\.git$")
FIRST_SCREEN = 30  # lines
MOST_LINES = 150
REGISTRY_ADDRESS = re.compile(r"https?://[\w.-]*(?:pypi|pythonhosted|npmjs|debian)\b")
MACHINE_PATH = re.compile(r"(?<![\w.:}$])(?<!bitburner:/)/(?:home|Users|root|work)/\w|\b[A-Z]:\\Users\\")
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
SETTING = re.compile(r"`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)\b")
NOT_OURS = {"AGENT_CHANGES", "SSL_CERT_FILE", "BRIDGEHED_AUTH"}
"""Variables that a library reads, and a misspelt one, which our documents tell of."""
PIN = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)
REQUIREMENT_NAME = re.compile(r"[\w.-]+")


def project_texts() -> Iterator[tuple[str, str]]:
    """Every text file of the project, by its path from the root."""
    # What git and coverage keep there is of this machine, and in no clone.
    files = [path for path in ROOT.iterdir() if path.is_file() and not OF_THIS_MACHINE.match(path.name)]
    files += [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()]
    for path in sorted(files):
        if path.parent.name == "__pycache__":  # another test may be writing there
            continue
        try:
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def lines_that_match(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{name}:{number}: {line.strip()}"
        for name, text in project_texts()
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]


def pins(name: str) -> dict[str, str]:
    return dict(PIN.findall((ROOT / "requirements" / name).read_text(encoding="utf-8")))


def names(requirements: list[str]) -> set[str]:
    return {match.group() for line in requirements if (match := REQUIREMENT_NAME.match(line))}


@pytest.mark.parametrize("words", ["`bitburner`", "`aoc`", "`mercury`", "make demo", "make test"])
def test_the_first_screen_of_the_readme_says_what_this_is_and_what_to_type(words: str) -> None:
    first_screen = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:FIRST_SCREEN]

    assert words in "\n".join(first_screen)


def test_the_readme_is_short_and_names_what_a_player_a_comparer_and_a_developer_do_first() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    assert len(readme.splitlines()) <= MOST_LINES
    for words in ("Options → Remote API", "127.0.0.1", "12525", "aoc bench --demo", "MERCURY_BUDGET_USD"):
        assert words in readme.partition("## Use it everywhere")[0]


def test_every_link_and_picture_of_the_readme_is_a_file_of_the_checkout() -> None:
    """The page works offline, and wherever a clone of it is; a release makes the addresses absolute."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]+)\)|(?:src|srcset|href)=\"([^\"]+)\"", readme)
    files = [link.partition("#")[0] for pair in links for link in pair if link and not link.startswith("#")]

    assert len(files) > FIRST_SCREEN
    assert [file for file in files if not (ROOT / file).exists()] == []


def test_no_document_waits_for_a_publication() -> None:
    assert lines_that_match(re.compile("once it is " + "published")) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_row_of_a_table_has_the_cells_of_its_head(document: Path) -> None:
    """A line break inside a row ends the table there, and the rest is shown as text."""
    text = re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
    broken = []
    for table in re.findall(r"(?:^ *\|.*\n)+", text, re.MULTILINE):
        # A bar in code or behind a backslash separates nothing.
        rows = [re.sub(r"`[^`]*`|\\\|", "", row).count("|") for row in table.splitlines()]
        broken += [table.splitlines()[at] for at, bars in enumerate(rows) if bars != rows[0]]

    assert broken == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_to_a_file_leads_to_one(document: Path) -> None:
    links = LINK.findall(document.read_text(encoding="utf-8"))

    assert [link for link in links if not (document.parent / link).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_make_verb_that_a_document_names_exists(document: Path) -> None:
    named = set(re.findall(r"(?:^|`)make ([a-z]+)", document.read_text(encoding="utf-8"), re.MULTILINE))
    if document.name == "first-bridge.md":  # it tells of the reader's own project
        named -= {"dev", "install"}

    assert named - set(tasks.VERBS) == set()


def test_no_file_names_the_address_of_a_package_registry() -> None:
    assert lines_that_match(REGISTRY_ADDRESS) == []


def test_no_file_names_a_path_that_only_one_machine_has() -> None:
    assert lines_that_match(MACHINE_PATH) == []


@cache
def removed_settings() -> set[str]:
    """Return the variables of the version before that the code only names to say that they are gone."""
    of_bridges = (plugins.load(name).settings.removed for name in plugins.built_in_names())
    return set(HostSettings.removed).union(*of_bridges)


@cache
def words_of_code() -> set[str]:
    """Return every word of the code that reads settings."""
    files = (text for name, text in project_texts() if name.startswith(("src/", "release/", "tasks.py")))
    return {word for text in files for word in re.findall(r"\w+", text)} - removed_settings()


def read_changes() -> list[str]:
    """The changelog's sections, the newest first, released or not."""
    return (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## [")[1:]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_setting_that_a_document_names_exists(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    if document.name == "CHANGELOG.md":  # the past names what there was
        text = read_changes()[0].partition("### Removed")[0]

    assert set(SETTING.findall(text)) - NOT_OURS - words_of_code() == set()


def test_a_setting_that_the_changelog_calls_removed_is_gone() -> None:
    removed = "\n".join(
        section.partition("### Removed")[2].partition("\n### ")[0] for section in read_changes()
    )
    names = {
        name
        for row in re.findall(r"^- Settings:.*(?:\n  .*)*", removed, re.MULTILINE)
        for name in SETTING.findall(row)
    }
    names |= set(re.findall(r"^  \| `(\w+)` \|", removed, re.MULTILINE))

    assert names & words_of_code() == set()
    assert removed_settings() - names == {"MERCURY_HTTP2"}  # of which the changelog tells in words


def test_the_changelog_begins_with_this_version_or_what_follows_it() -> None:
    assert read_changes()[0].startswith((f"{__version__}] - 20", "Unreleased]"))


def test_what_pyproject_asks_for_is_locked() -> None:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    runtime = names(pyproject["project"]["dependencies"])
    development = names(pyproject["dependency-groups"]["dev"])

    assert runtime - pins("runtime.txt").keys() == set()
    assert development - pins("dev.txt").keys() == set()


def test_tests_run_with_the_versions_that_users_get() -> None:
    assert pins("runtime.txt").items() <= pins("dev.txt").items()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no executable bit")
def test_the_ci_script_can_be_executed() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def example(document: str) -> str:
    """The first Python program of a document."""
    return (ROOT / document).read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]


async def test_the_example_of_the_readme_does_what_it_says() -> None:
    module = types.ModuleType("example")
    sys.modules["example"] = module  # where the types that it names are looked up
    exec(compile(example("README.md"), "README.md", "exec"), module.__dict__)  # noqa: S102  (our own text)

    async with connect(module.__dict__["bridge"]) as client:
        result = await client.call("greet", {"name": "Ada"})

    assert result["content"] == [{"type": "text", "text": "Hello, Ada!"}]


async def test_the_server_for_those_who_come_from_fastmcp_works() -> None:
    theirs, ours = (ROOT / "docs" / "from-fastmcp.md").read_text(encoding="utf-8").split("```python\n")[1:3]
    compile(theirs.split("```")[0], "theirs", "exec")  # FastMCP itself is not installed here
    module = types.ModuleType("from_fastmcp")
    sys.modules["from_fastmcp"] = module
    exec(compile(ours.split("```")[0], "ours", "exec"), module.__dict__)  # noqa: S102  (our own text)

    async with connect(module.__dict__["bridge"]) as client:
        fine = await client.call("forecast", {"place": "Oslo", "days": 2})
        drowned = await client.call("forecast", {"place": "Atlantis"})
        stations = await client.request("resources/read", {"uri": "weather://stations"})

    assert fine["structuredContent"] == {"place": "Oslo", "highs": [21, 21]}
    assert "under water" in drowned["content"][0]["text"]
    assert stations["contents"][0]["text"] == "Oslo\nLisbon"


async def test_the_pieces_of_the_engine_page_make_a_bridge() -> None:
    page = (ROOT / "docs" / "engine.md").read_text(encoding="utf-8")
    pieces = [piece.split("```")[0] for piece in page.split("```python\n")[1:]]
    module = types.ModuleType("pieces")
    sys.modules["pieces"] = module
    for piece in pieces:
        if piece.startswith(("from", "@bridge")) and "run(" not in piece and "connect" not in piece:
            exec(compile(piece, "docs/engine.md", "exec"), module.__dict__)  # noqa: S102  (our own text)

    async with connect(module.__dict__["bridge"]) as client:
        fine = await client.call("forecast", {"place": "Oslo", "days": 2})
        drowned = await client.call("forecast", {"place": "Atlantis"})
        wrong = await client.call("forecast", {"place": "Oslo", "days": 11})
        prompts = await client.request("prompts/list")

    assert fine["structuredContent"] == {"highs": [21, 21], "next": ["Pack for the coldest day."]}
    assert drowned["isError"]
    assert "search_places" in drowned["content"][0]["text"]
    assert wrong["content"][0]["text"].endswith("days must be between 1 and 10 (got 11)")
    assert [prompt["name"] for prompt in prompts["prompts"]] == ["plan"]
