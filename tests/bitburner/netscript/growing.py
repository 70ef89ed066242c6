"""Programs of any size, of the kinds that make an analysis slow. Owns their shapes."""

from collections.abc import Callable

STATEMENTS = (
    "a = b; b = c; c = a; a = b.next; b = c.next;",
    "let {x}, y{n} = a;",
    "const {{ hack: h{n}, grow }} = ns;",
    "function f{n}(p, q = f{n}) {{ return f{n}(q, p).next ?? p; }}",
    "f1(a, b, c); f1(ns, ns, ns);",
    "this.a = this.b; this.b = this.a.next;",
    "for (const n{n} of ns.scan(a)) a = n{n};",
    "if (ns.hakc && a) {{ ns.hakc(); }} else try {{ ns.other{n}(b); }} catch (e) {{ }}",
    "const g{n} = (x) => (y) => (z) => ns.stock.buyStock(x, y, z);",
    "class C{n} {{ constructor(ns) {{ this.ns = ns; }} run() {{ return this.ns.hack(a); }} }}",
    "const r{n} = ns.ps(a); for (const e{n} of r{n}) b = e{n}.nam; r{n}.map((x) => x.nam.b.c);",
    "/** @param {{import('x'}} */ a[`b${{c}}`] = {{ ...a, b, c: 'hack' }};",
)


def repeat(statements: list[str], size: int) -> str:
    """Return a script with the statements over and over, numbered."""
    body = "\n".join(one.format(n=n, x=f"x{n}") for n in range(size) for one in statements)
    return f"let a, b, c;\nexport async function main(ns) {{\n{body}\n}}\n"


SHAPES: dict[str, Callable[[int], str]] = {
    "variables that swap": lambda n: "let a, b, c;" + "a = b; b = c; c = a; a = b.next;" * n,
    "a chain of variables": lambda n: "let v0 = ns;" + "".join(f"let v{k + 1} = v{k};" for k in range(n)),
    "a chain of functions": lambda n: "".join(f"function f{k}(a) {{ f{k + 1}(a); }}" for k in range(n)),
    "one function called often": lambda n: (
        f"function f({','.join(f'p{k}' for k in range(n))}) {{}}" + "f(ns);" * n
    ),
    "nested blocks": lambda n: "".join(f"{{ let a{k} = b;" for k in range(n)) + "}" * n,
    "ways out of nested blocks": lambda n: "for (;;) {" + "{" * n + "break;" * n + "}" * n + "}",
    "results of results": lambda n: (
        "const v0 = ns.ps();" + "".join(f"const v{k + 1} = v{k}.filter((x) => x.pid);" for k in range(n))
    ),
    "nested functions": lambda n: (
        "".join(f"function f{k}(a) {{ return a.b(" for k in range(n)) + "1" + ")}" * n
    ),
    "nested arrows": lambda n: "x = " + "(a) => " * n + "a",
    "nested brackets": lambda n: "x = " + "[" * n + "]" * n,
    "nested conditions": lambda n: "x = " + "(" * n + "a" + " ? 1 : 2)" * n,
    "nested patterns": lambda n: "const " + "{ a: [" * n + "z" + "] }" * n + " = ns;",
    "nested default values": lambda n: "x = " + "function ({ a = " * n + "1" + " }) {}" * n,
    "a long member expression": lambda n: "ns" + ".next" * n + ";",
    "unclosed brackets": lambda n: "f([{" * n,
    "comments that begin a type": lambda n: "/** " + "@param {import( " * n + "*/ function f(ns) {}",
    "negations in a condition": lambda n: "if (" + "!" * n + "ns.x) ns.hakc();",
    "early returns": lambda n: "".join(f"const v{k + 1} = !v{k}; if (v{k}) return;" for k in range(n)),
    "misspelt names": lambda n: "".join(f"const target{k} = 1; ns.print(tarqet{k});" for k in range(n)),
    "one long name": lambda n: f"ns.{'hackServer' * n}();",
}
