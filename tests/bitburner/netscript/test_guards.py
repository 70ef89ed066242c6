"""Guards: a script that asks whether a function exists may use it."""

import pytest

from tests.bitburner.netscript.checking_scripts import check, in_main, unknown


@pytest.mark.parametrize(
    "body",
    [
        "if (ns.hakc) ns.hakc('x');",
        "if (ns['hakc']) { ns.hakc('x'); }",
        "if ('hakc' in ns) ns.hakc('x');",
        "ns.hakc && ns.hakc('x');",
        "const done = ns.hakc ? ns.hakc('x') : 0;",
        "if (typeof ns.hakc === 'function') ns.hakc('x');",
        "ns.hakc?.('x');",
        "if (!ns.hakc) return;\n  ns.hakc('x');",
        "if (ns.hakc === undefined) return;\n  ns.hakc('x');",
        "try { ns.hakc('x'); } catch { ns.print('x'); }",
        "if (false) ns.hakc('x');",
        "const isV3 = (n) => n; if (isV3(ns)) ns.hakc('x'); else ns.print('x');",
        "const isV3 = (n) => n; const v3 = isV3(ns);\n  if (v3) ns.hakc('x');",
        "if (ns.ui.getGameInfo().versionNumber > 44) ns.hakc('x');",
        "for (const name of ['hakc', 'hack']) if (ns[name]) ns.hakc('x');",
        "ns.hakc = () => 0;\n  ns.hakc('x');",
        "while (ns.hakc) ns.hakc('x');",
        "const done = ns.hack ? ns.hack('x') : ns.hakc('x');",
        "if (ns.hack) await ns.hack('x'); else ns.hakc('x');",
        "if (!ns.hack) { ns.hakc('x'); }",
        "const names = ns.stock?.getSymbols?.() ?? ns.hakc();",
        "const names = ns.scan?.('x') || ns.hakc();",
        "if ('stock' in ns) ns.print(1); else ns.hakc('x');",
        "if (typeof ns.stock === 'undefined') ns.hakc('x');",
        "if (ns.stock == null) { ns.hakc('x'); }",
        "const isNew = typeof ns.stock === 'object';\n  if (isNew) ns.print(1); else ns.hakc('x');",
        "const isOld = !('stock' in ns);\n  isOld && ns.hakc('x');",
        "const isNew = Boolean(ns.stock);\n  const done = isNew ? 1 : ns.hakc('x');",
        "const { stock } = ns;\n  if (stock) ns.print(1); else ns.hakc('x');",
        "if (Object.keys(ns).includes('stock')) ns.print(1); else ns.hakc('x');",
        "if (ns.hasOwnProperty('stock')) ns.print(1); else ns.hakc('x');",
        "if (ns.stock) return;\n  ns.hakc('x');",
        "if (ns.stock) { ns.print(1); return; }\n  ns.hakc('x');",
        "switch (typeof ns.stock) { case 'undefined': ns.hakc('x'); }",
        "ns.stock || ns.hakc('x');",
        "const api = ns.stock ?? { getSymbols: ns.hakc };",
    ],
)
def test_a_guarded_name_is_left_alone(body: str) -> None:
    assert check(in_main(body)) == []


@pytest.mark.parametrize(
    "body",
    [
        "if (ns.hakc('x') > 1) ns.print(1);",
        "if (ns.hack) ns.hakc('x');",
        "try { ns.print(1); } finally { ns.hakc('x'); }",
        "ns['hakc']('x');",
        "if (ready(ns.pid)) ns.hakc('x');",
        "const { hakc } = ns;",
        "const x = ns.scan() || ns.hakc();",
        "const x = other?.scan() ?? ns.hakc();",
        "if (!ns.hack) ns.print(1); else ns.hakc('x');",
        "if (ns.scan('x')) ns.print(1); else ns.hakc('x');",
        "const stock = ns.stock;\n  if (!stock.getSymbols()) return;\n  ns.hakc('x');",
        "if (!ns.stock) return;\n  ns.hakc('x');",
        "ns.stock && ns.hakc('x');",
        "if (ns.args.length > 1) return;\n  ns.hakc('x');",
        "if (ns.stock) ns.print(1);\n  ns.hakc('x');",
        "const size = measure(ns);\n  if (size > 3) ns.hakc('x');",
    ],
)
def test_what_only_looks_like_a_guard_is_none(body: str) -> None:
    assert unknown(in_main(body)) == ["ns.hakc"]
