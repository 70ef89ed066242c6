"""Definitions: every declaration of the file, whatever it is called and however it is laid out."""

from bridgehead.bitburner.netscript.definitions import Definitions
from bridgehead.bitburner.simulator.definitions import definitions
from tests.bitburner.tools.test_definitions import TEXT


def test_a_definition_file_is_cut_into_its_declarations() -> None:
    symbols = [one.symbol for one in Definitions(TEXT).declarations]

    assert symbols == [
        *("HP", "HP.current", "HP.max", "Port", "NS", "NS.args", "NS.hack", "NS.exec"),
        *("Colour", "Colour.red", "late"),
    ]


def test_members_with_the_names_of_keywords_are_there() -> None:
    text = """
interface Source { class: number; public: boolean; type: "a"; enum?: string; readonly default: number }
declare const Sizes: { small: 1; large: 2 };
export type Task = { type: "CRIME"; cycles: number };
"""
    symbols = {one.symbol for one in Definitions(text).declarations}

    assert {"Source.class", "Source.public", "Source.type", "Source.enum", "Source.default"} <= symbols
    assert {"Sizes", "Sizes.small", "Task", "Task.type", "Task.cycles"} <= symbols


def test_an_entry_has_its_comment_signature_and_cost() -> None:
    found = Definitions(TEXT)
    hack, execute = found.by_symbol["NS.hack"], found.by_symbol["NS.exec"]

    assert (hack.ram, hack.is_function, hack.summary) == (0.1, True, "Steal money.")
    assert hack.text.startswith("/**\n * Steal money.")
    assert "threads: number" in execute.text
    assert hack.line < execute.line


def test_an_interface_has_what_it_inherits() -> None:
    text = """
interface Office { hire(): void }
interface Corp extends Office { name(): string }
interface NS { readonly corporation: Corp; hack(): void }
"""
    found = Definitions(text)

    assert found.find_path("corporation.hire") is not None
    assert set(found.members["Corp"]) == {"name", "hire"}


def test_the_paths_of_the_api_lead_to_its_interfaces() -> None:
    namespaces = Definitions(definitions()).namespaces

    assert namespaces[""] == "NS"
    assert namespaces["stock"] == "TIX"
    assert namespaces["formulas.hacking"] == "HackingFormulas"
    assert "args" not in namespaces


def test_a_file_that_is_no_typescript_has_no_declarations() -> None:
    assert Definitions("").declarations == []
    assert Definitions("<html>not found</html>").namespaces == {"": "NS"}
