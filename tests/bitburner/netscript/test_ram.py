"""RAM: the game's own rule, which counts names. The figures were compared with the game's function."""

import pytest

from bridgehead.bitburner.netscript.definitions import Definitions
from bridgehead.bitburner.netscript.ram import Ram, RamRefused, calculate, list_prices
from tests.bitburner.netscript.checking_scripts import DEFINITIONS, in_main
from tests.bitburner.netscript.ram_cases import REFERENCES

PRICES = list_prices(DEFINITIONS)


def ram(filename: str = "a.js", /, *, total: float | None = None, **sources: str) -> Ram:
    """The cost of a script; `lib_js` stands for lib.js."""
    files = {name.replace("_", "."): source for name, source in sources.items()}
    return calculate(filename, files, PRICES, server="home", total=total)


def paid(found: Ram) -> set[str]:
    """The names that cost something."""
    return {item.name.removeprefix("ns.") for item in found.items}


@pytest.mark.parametrize(("extension", "source", "names"), REFERENCES)
def test_a_name_counts_where_it_is_read(extension: str, source: str, names: str) -> None:
    name = f"a.{extension}"

    assert paid(calculate(name, {name: source}, PRICES, server="home")) == set(names.split())


def test_a_name_counts_once_and_the_dearest_comes_first() -> None:
    found = ram(a_js=in_main("ns.hack('a'); ns.hack('b'); ns.scan();"))

    assert [item.name for item in found.items] == ["ns.scan", "ns.hack"]
    assert found.total_gb == 1.9


def test_names_of_jsx_elements_cost_nothing_and_their_expressions_do() -> None:
    source = "export const A = () => <hack.scan grow={exec} kill='a'><weaken>{nuke}</weaken></hack.scan>;"

    assert paid(ram("a.jsx", a_jsx=source)) == {"exec", "nuke"}


LIBRARY = (
    "ns.grow(); export function a() { ns.exec(); } export function b() { ns.scan(); }\n"
    "export default function () { ns.kill(); }\nfunction hidden() { ns.nuke(); }\n"
    "export { hidden as shown };\n"
)


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import './lib';", "grow"),
        ("import { b } from 'lib.js';", "grow"),
        ("import { b } from '/lib.js'; b();", "grow scan"),
        ("import { a as first } from './lib.js'; first();", "grow exec"),
        ("import { shown } from './lib.js'; shown();", "grow nuke"),
        ("import first from './lib.js';", "grow exec scan kill nuke"),
        ("import * as lib from './lib.js';", "grow exec scan kill nuke"),
        ("export { a } from 'lib.js';", "exec"),
        ("export * from 'lib.js';", ""),
        ("import('./lib.js'); ns.dynamicImport('lib.js');", ""),
    ],
)
def test_of_an_imported_file_its_top_level_counts_and_what_is_reached(source: str, names: str) -> None:
    assert paid(ram(a_js=source, lib_js=LIBRARY)) == set(names.split())


def test_imports_in_a_circle_end() -> None:
    found = ram(
        a_js="import { b } from './b.js'; export function a() { ns.hack(); b(); }",
        b_js="import { a } from './a.js'; export function b() { ns.scan(); a(); }",
    )

    assert paid(found) == {"hack", "scan"}


def test_types_are_imported_from_the_definitions_in_typescript_only() -> None:
    assert ram("a.ts", a_ts="import { NS } from '@ns';").total_gb == 1.6
    with pytest.raises(RamRefused):
        ram(a_js="import { NS } from '@ns';")


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ({"a_js": "import './gone.js';"}, 'Invalid module: "./gone.js". Base module: "a.js".'),
        ({"a_js": "import '../a.js';"}, 'Invalid module: "../a.js". Base module: "a.js".'),
        (
            {"a_js": "import './b.js';", "b_js": "import 'c';"},
            'Invalid module: "c". Base module: "b.js".',
        ),
        ({"a_js": "export { b } from './b.js';", "b_js": ""}, '"./b.js" does not exist on server: home'),
    ],
)
def test_a_missing_import_is_refused_in_the_games_own_words(files: dict[str, str], text: str) -> None:
    with pytest.raises(RamRefused) as refused:
        calculate(
            "a.js", {name.replace("_", "."): text for name, text in files.items()}, PRICES, server="home"
        )

    assert str(refused.value) == text


def test_a_syntax_error_is_told_with_its_place_also_in_an_import() -> None:
    with pytest.raises(RamRefused, match=r"^Syntax error in a.js, server: home. Error location: Line 2, "):
        ram(a_js="let a;\nf(;")
    with pytest.raises(RamRefused, match=r"Cannot parse module: b.js. Filename: b.js. Reason: "):
        ram(a_js="import './b.js';", b_js="f(;")


@pytest.mark.parametrize(
    ("body", "total"),
    [
        ("ns.ramOverride(5.123); ns.exec();", 5.12),
        ("/* first */ ns.ramOverride(0x10);", 16),
        ("ns.print(1); ns.ramOverride(5); ns.exec();", 2.9),
        ("'use strict'; ns.ramOverride(5);", 1.6),
        ("ns.ramOverride(1); ns.exec();", 2.9),
        ("ns.ramOverride(n);", 1.6),
    ],
)
def test_an_override_counts_as_the_first_statement_of_main(body: str, total: float) -> None:
    assert ram(a_js=in_main(body)).total_gb == total


def test_an_override_counts_neither_in_an_arrow_nor_in_an_import() -> None:
    arrow = "export const main = async (ns) => { ns.ramOverride(5); };"

    assert ram(a_js=arrow).total_gb == 1.6
    assert ram(a_js="import './b.js';", b_js=in_main("ns.ramOverride(5);")).total_gb == 1.6


@pytest.mark.parametrize("factor", [16, 4, 1])
def test_the_factor_of_source_file_4_is_the_one_that_fits_the_games_total(factor: int) -> None:
    source = in_main("ns.singularity.connect('home')")

    assert ram(a_js=source, total=1.6 + 2 * factor).total_gb == 1.6 + 2 * factor
    assert ram(a_js=source, total=999.0).total_gb == ram(a_js=source).total_gb == 33.6


def test_a_comment_that_states_a_wrong_cost_is_corrected_only_while_it_does() -> None:
    own = "export interface NS {{ /** RAM cost: {} GB */ clearTerminal(): void; readonly ui: UI; }}"
    nested = (
        "export interface NS {{ readonly ui: UI; }}"
        "export interface UI {{ /** RAM cost: {} GB */ clearTerminal(): void; }}"
    )

    assert "clearTerminal" not in list_prices(Definitions(nested.format("0.2")))
    assert list_prices(Definitions(nested.format("0.3")))["clearTerminal"].ram_gb == 0.3
    assert list_prices(Definitions(own.format("0.2")))["clearTerminal"].ram_gb == 0.2


def test_hacknet_costs_as_a_whole_unless_its_functions_have_costs() -> None:
    text = (
        "export interface NS {{ readonly hacknet: H; }}export interface H {{ /** {} */ numNodes(): number; }}"
    )

    assert list_prices(Definitions(text.format("Count.")))["hacknet"].ram_gb == 4
    assert "hacknet" not in list_prices(Definitions(text.format("RAM cost: 0.5 GB")))


def test_the_most_that_a_script_costs_is_1024() -> None:
    prices = {name: price for name, price in PRICES.items() if price.is_scaled}
    source = "\n".join(f"ns.singularity.{name}();" for name in prices)

    assert ram(a_js=source).total_gb == 1024
