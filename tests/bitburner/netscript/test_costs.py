"""Costs: every name that costs RAM is counted once, with the factor that the game's own total shows."""

import pytest

from bridgehead.bitburner.netscript.costs import BASE, Item, Source, itemise, list_imports, resolve_import
from tests.bitburner.netscript.checking_scripts import DEFINITIONS, in_main


def costs(*scripts: str, total: float | None = None) -> dict[str, float]:
    sources = [Source(f"{number}.js", script) for number, script in enumerate(scripts)]
    return {item.name: item.ram_gb for item in itemise(sources, DEFINITIONS, total).items}


def test_a_script_that_uses_nothing_costs_the_base() -> None:
    found = itemise([Source("a.js", in_main(""))], DEFINITIONS, None)

    assert (found.items, found.sum_gb) == ([], BASE)


def test_each_function_counts_once_over_all_scripts_and_the_dearest_comes_first() -> None:
    twice = in_main("ns.hack('a'); ns.hack('b'); ns.scan()")

    found = itemise([Source("a.js", twice), Source("b.js", in_main("ns.hack('c')"))], DEFINITIONS, None)

    assert found.items == [Item("ns.scan", 0.2), Item("ns.hack", 0.1)]
    assert found.sum_gb == pytest.approx(BASE + 0.3)


def test_names_in_strings_and_comments_cost_nothing() -> None:
    assert costs(in_main("// ns.hack\n/* ns.scan() */ ns.print('ns.hack', `grow`)")) == {}


def test_a_name_that_is_only_taken_out_of_an_object_counts_where_it_is_used() -> None:
    assert costs(in_main("const { hack } = ns;")) == {}
    assert costs(in_main("const { hack } = ns; hack('a');")) == {"ns.hack": 0.1}


def test_the_page_of_the_game_is_dear() -> None:
    assert costs(in_main("document.title; globalThis.window")) == {"document": 25.0, "window": 25.0}


@pytest.mark.parametrize("factor", [16, 4, 1])
def test_the_factor_of_a_source_file_is_the_one_that_fits_the_games_total(factor: int) -> None:
    script = in_main("ns.singularity.connect('home')")
    (dearest,) = costs(script).values()
    one = dearest / 16

    assert costs(script, total=round(BASE + one * factor, 2)) == {
        "ns.singularity.connect": pytest.approx(one * factor)
    }


def test_a_total_that_fits_no_factor_leaves_the_figures_of_the_definitions() -> None:
    script = in_main("ns.singularity.connect('home')")

    assert costs(script, total=999.0) == costs(script)


def test_imports_are_listed_as_they_are_written_and_types_are_no_imports() -> None:
    content = (
        "import { a } from './lib/a.js';\nimport * as b from \"/b\";\nimport { a2 } from './lib/a.js';\n"
        "export { c } from '../c.ts';\nimport type { D } from './d';\nconst e = 'import x from y';\n"
    )

    assert list_imports(content, "x.ts") == ["./lib/a.js", "/b", "../c.ts"]


@pytest.mark.parametrize(
    ("importer", "module", "path"),
    [
        ("main.js", "./lib/a.js", "lib/a"),
        ("lib/deep/main.js", "../a.tsx", "lib/a"),
        ("lib/main.js", "./../../above", "above"),
        ("lib/main.js", "/top.js", "top"),
        ("lib/main.js", "tools", "tools"),
    ],
)
def test_an_import_means_a_file_beside_its_script_or_from_the_top(
    importer: str, module: str, path: str
) -> None:
    assert resolve_import(importer, module) == path
