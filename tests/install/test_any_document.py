"""Whatever is in a file: our entries come and go, and not one other byte with them."""

import json
import tomllib

from hypothesis import assume, given
from hypothesis import strategies as st

from bridgehead.install import edit, jsonc
from bridgehead.install.edit import Format

ENTRY = {"command": "/opt/bridgehead", "args": ["aoc"], "env": {"AOC_YEAR": "2024"}}
NAMES = st.permutations(["bitburner", "aoc", "mercury"]).flatmap(
    lambda names: st.integers(1, 3).map(lambda count: tuple(names[:count]))
)
SPACE = st.lists(
    st.sampled_from(
        [" ", "\t", "\n", "\n   ", "\r\n", "\r", "/* c */", "/*\n*/", '// {"\n', "//\r\n", "/**/"]
    ),
    max_size=3,
).map("".join)
KEYS = st.sampled_from(["mcpServers", "servers", "aocx", "é", "", "\\u0061", "//"])
SCALARS = st.sampled_from(
    ["0", "-1.5e3", "true", "null", '"x"', '"// no"', '"\\"}"', '"\\ud83d\\ude00"', '"ü"']
)


@st.composite
def object_(draw: st.DrawFn, values: st.SearchStrategy[str]) -> str:
    """An object with any members, spaces, comments and perhaps a comma at the end."""
    keys = draw(st.lists(KEYS, unique=True, max_size=3))
    members = []
    for key in keys:
        value = draw(object_(values) if key == "mcpServers" else values)
        members.append(f'{draw(SPACE)}"{key}"{draw(SPACE)}:{draw(SPACE)}{value}{draw(SPACE)}')
    trailing = draw(st.sampled_from(["", ","])) if members else ""
    return "{" + ",".join(members) + trailing + draw(SPACE) + "}"


@st.composite
def array(draw: st.DrawFn, values: st.SearchStrategy[str]) -> str:
    items = [f"{draw(SPACE)}{item}{draw(SPACE)}" for item in draw(st.lists(values, max_size=2))]
    return "[" + ",".join(items) + "]"


VALUES = st.recursive(SCALARS, lambda values: object_(values) | array(values), max_leaves=6)
DOCUMENTS = st.builds(
    lambda bom, before, root, after: bom + before + root + after,
    st.sampled_from(["", "\ufeff"]),
    SPACE,
    st.one_of(object_(VALUES), object_(VALUES), object_(VALUES), st.just("")),
    SPACE,
)
LINES = st.lists(
    st.sampled_from(
        [
            *(
                "a = 1",
                "# note",
                "",
                "  ",
                'x = """',
                "text",
                "[other]",
                "[[list]]",
                "y = [",
                "1, # [z]",
                "]",
            ),
            *("[mcp_servers]", "[mcp_servers.docs]", "\"k#[\" = '[x]'", "when = 2026-11-16", "z = {q = 1}"),
        ]
    ),
    max_size=7,
)
TABLES = st.builds(
    lambda lines, end, is_closed: end.join(lines) + (end if is_closed else ""),
    LINES,
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)


def put_each(text: str | None, form: Format, section: str, names: tuple[str, ...]) -> str | None:
    for name in names:
        text = edit.put(text, form, section, {name: ENTRY})
    return text


def take_each(text: str | None, form: Format, section: str, names: tuple[str, ...]) -> str | None:
    for name in names:
        text = edit.take(text, form, section, [name])
    return text


@given(DOCUMENTS, NAMES, st.randoms(use_true_random=False))
def test_any_json_comes_back_as_it_was(text: str, names: tuple[str, ...], chance: object) -> None:
    installed = put_each(text, "json", "mcpServers", names)

    assert edit.put(installed, "json", "mcpServers", dict.fromkeys(names, ENTRY)) == installed
    assert take_each(installed, "json", "mcpServers", tuple(sorted(names))) == text
    assert take_each(installed, "json", "mcpServers", tuple(reversed(names))) == text


@given(DOCUMENTS, NAMES)
def test_of_any_json_only_our_entries_change(text: str, names: tuple[str, ...]) -> None:
    installed = put_each(text, "json", "mcpServers", names)

    assert installed is not None
    before, after = (jsonc.parse(each.removeprefix("\ufeff")) for each in (text, installed))
    assert after.root is not None
    data = after.root.data
    assert {name: data["mcpServers"].pop(name) for name in names} == dict.fromkeys(names, ENTRY)
    wanted = before.root.data if before.root else {}
    assert json.dumps(data) == json.dumps({**wanted, "mcpServers": wanted.get("mcpServers", {})})
    assert [each.text[c.start : c.end] for each in (before,) for c in each.comments] == [
        each.text[c.start : c.end] for each in (after,) for c in each.comments
    ]


@given(TABLES, NAMES)
def test_any_toml_comes_back_as_it_was(text: str, names: tuple[str, ...]) -> None:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        assume(condition=False)

    installed = put_each(text, "toml", "mcp_servers", names)

    assert edit.servers(installed, "toml", "mcp_servers").items() >= dict.fromkeys(names, ENTRY).items()
    assert edit.put(installed, "toml", "mcp_servers", dict.fromkeys(names, ENTRY)) == installed
    assert take_each(installed, "toml", "mcp_servers", tuple(sorted(names))) == text
    assert take_each(installed, "toml", "mcp_servers", tuple(reversed(names))) == text


@given(NAMES, st.sampled_from([("json", "mcpServers"), ("toml", "mcp_servers")]))
def test_a_file_that_came_with_our_entries_goes_with_them(
    names: tuple[str, ...], kind: tuple[Format, str]
) -> None:
    assert take_each(put_each(None, *kind, names), *kind, tuple(sorted(names))) is None
