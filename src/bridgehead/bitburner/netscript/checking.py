"""Checking: the problems of a script that the game accepts silently and that show only when it runs.

Each rule is a function over one `Subject` and works on the syntax tree alone. A rule reports only certain
problems: a false alarm costs more than a missed problem.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from contextlib import closing
from difflib import get_close_matches
from functools import cached_property
from typing import Literal

from msgspec import Struct

from ..game import paths
from .definitions import Definitions
from .guards import Guards
from .modules import Module, is_definitions, resolve_module
from .parsing import FUNCTIONS, Node, Tree, string_value
from .results import Results
from .scopes import list_pattern, pattern_names
from .scripts import ApiUse, Script, TooMuchWork, name_of, property_of
from .search import DefinitionSearch
from .signatures import describe, fits, simplify

MAX_CHARACTERS = 300_000
"""Longer scripts come from bundlers, which check them."""
_MAX_PROBLEMS = 20
_MAX_NAMES = 3
_OF_EVERY_OBJECT = frozenset(
    {"constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString"}
    | {"valueOf", "__proto__"}
)
_READING = frozenset({"arguments", "binary_expression", "template_substitution", "call_expression"})
"""Expressions that certainly read a name."""
_ASSIGNING = frozenset({"assignment_expression", "augmented_assignment_expression"})
_MIN_NAME, _MAX_NAME = 5, 40
"""Letters of a name that may be misspelt: shorter ones are near to too many others."""
_PAGE = """
addEventListener alert arguments atob blur btoa caches cancelAnimationFrame cancelIdleCallback chrome
clearImmediate clearInterval clearTimeout close closed confirm console createImageBitmap
crossOriginIsolated crypto customElements decodeURI decodeURIComponent devicePixelRatio dispatchEvent
document encodeURI encodeURIComponent escape eval event exports external fetch find focus frames
getComputedStyle getSelection global globalThis history indexedDB innerHeight innerWidth isFinite isNaN
isSecureContext jQuery length localStorage location locationbar matchMedia menubar module monaco moveBy
moveTo name navigation navigator open opener origin outerHeight outerWidth pageXOffset pageYOffset parent
parseFloat parseInt performance personalbar postMessage print process prompt queueMicrotask
removeEventListener reportError require requestAnimationFrame requestIdleCallback resizeBy resizeTo
scheduler screen screenLeft screenTop screenX screenY scroll scrollBy scrollTo scrollX scrollY scrollbars
self sessionStorage setImmediate setInterval setTimeout speechSynthesis sprintf status statusbar stop
structuredClone toolbar toString top trustedTypes undefined unescape viewport visualViewport vsprintf
webpackChunkbitburner when window
"""
_PAGE_NAMES = frozenset(_PAGE.split())
"""Globals of the game's page, which a script's own names may resemble."""
_OF_FUNCTIONS = frozenset({"apply", "bind", "call"}) | _OF_EVERY_OBJECT
UNDOCUMENTED = frozenset(
    {"alterReality", "bypass", "dynamicImport", "exploit", "heart", "iKnowWhatImDoing", "openDevMenu"}
    | {"printRaw", "rainbow", "tprintRaw", "break", "factionGains", "hacknetNodes"}
)
"""Functions that the game has and its definitions leave out on purpose."""
_WITHOUT_AWAIT = frozenset({"asleep", "nextUpdate"})
"""Functions whose promise need not be awaited."""
_EXCLUSIVE = frozenset(
    {"hack", "grow", "weaken", "sleep", "share", "installBackdoor", "manualHack", "chargeFragment"}
)
"""Functions during which every other call of the same script fails."""
_PAGE_FUNCTIONS = frozenset({"alert", "print", "prompt", "sprintf", "vsprintf"})
"""Functions of ns that the game's page has too, so that a call without `ns.` does something."""
_ARITHMETIC = frozenset({"<", ">", "<=", ">=", "-", "*", "/", "%", "**"})
_ADDING = frozenset({"+", "+=", "-=", "*=", "/="})
"""With a promise, these are as wrong; with a function, `+` shows its source."""
_LOOPS = frozenset({"while_statement", "do_statement", "for_statement"})
_BREAKABLE = _LOOPS | {"for_in_statement", "switch_statement"}
_ALWAYS = frozenset({"true", "(true)", "1", "(1)", ";"})
"""Conditions of a loop that never ends; `;` is that of `for (;;)`."""
_LEAVING = frozenset(
    {"await_expression", "break_statement", "return_statement", "throw_statement", "yield_expression"}
)
_EXITS = frozenset({"exit", "spawn", "kill"})
_MAKING = re.compile("purchase|rename|write|scp|mv|wget|delete", re.IGNORECASE)
"""Functions whose arguments name what is made or goes."""
_HOSTS = frozenset({"host", "hostname", "target", "server"})
_IP_DOTS = 3
When = Literal["start", "line", "maybe"]
"""A script with a problem fails when it starts, fails when it reaches the line, or may do something else."""


class Problem(Struct, frozen=True):
    """Something wrong in a script."""

    code: str
    message: str
    line: int
    column: int
    when: When = "line"


class World(Struct, frozen=True):
    """What the game has: its servers, and the files of the script's own server."""

    servers: frozenset[str]
    filenames: frozenset[str]


class Finding(Struct, frozen=True):
    """A problem at an offset in bytes."""

    code: str
    message: str
    start: int
    when: When = "line"


def check_script(
    source: str,
    filename: str,
    definitions: Definitions,
    search: DefinitionSearch,
    files: Mapping[str, str] | None = None,
    world: World | None = None,
) -> list[Problem]:
    """Return the problems of a script in order; if it cannot be parsed, only the syntax error.

    `files` are the scripts that it can import; None if they are not known, as the `world` may be.
    """
    if filename.endswith(".json"):
        return _check_json(source)
    if len(source) > MAX_CHARACTERS:
        return [_not_checked(f"it is longer than {MAX_CHARACTERS:,} characters")]
    script: Script | None = None
    try:
        script = Script(source, filename, definitions)
        broken = script.tree.problem
        if broken is not None:
            findings = [Finding("syntax_error", f"Syntax error: {broken.message}.", broken.start, "start")]
        elif filename.endswith(".script"):
            findings = []  # NS1, where the functions of the API are globals
        else:
            subject = Subject(script, source, filename, definitions, search, files=files, world=world)
            # Rules about the API find nothing in a script that does not use it.
            rules = (*(_USE_RULES if subject.uses else ()), *_RULES)
            findings = [finding for rule in rules for finding in rule(subject)]
            findings = [finding for finding in findings if not subject.is_dead(finding)]
    except TooMuchWork:
        return [_not_checked("following its values would take too long")]
    finally:
        if script is not None:
            script.tree.close()
    findings.sort(key=lambda finding: finding.start)
    return [
        Problem(finding.code, finding.message, *script.tree.place_of(finding.start), finding.when)
        for finding in findings[:_MAX_PROBLEMS]
    ]


def _check_json(source: str) -> list[Problem]:
    try:
        json.loads(source)
    except json.JSONDecodeError as problem:
        message = f"This is not JSON: {problem.msg}."
        return [Problem("syntax_error", message, problem.lineno, problem.colno, "maybe")]
    except RecursionError:
        pass
    return []


def _not_checked(why: str) -> Problem:
    return Problem("not_checked", f"The script was not checked: {why}.", 1, 1, "maybe")


class Subject:
    """A script with the facts that the rules need."""

    def __init__(
        self,
        script: Script,
        source: str,
        filename: str,
        definitions: Definitions,
        search: DefinitionSearch,
        *,
        files: Mapping[str, str] | None,
        world: World | None,
    ) -> None:
        self.world = world
        self.script = script
        self.source = source
        self.nodes = script.tree.nodes
        self.filename = filename
        self.definitions = definitions
        self.search = search
        self.files = files
        self.module = Module(script.tree)
        self.signatures = search.signatures
        has_api = bool(definitions.namespaces and definitions.members.get("NS"))
        self.uses = script.find_uses() if has_api else []  # without definitions nothing is certain

    @cached_property
    def calls(self) -> list[tuple[Node, str]]:
        """Every call of a function that the API has, with its path."""
        functions = {use.node: use.path for use in self.uses}
        calls: list[tuple[Node, str]] = []
        for node in self.nodes:
            called = node.field("function") if node.type == "call_expression" else None
            if called is None:
                continue
            path = functions.get(called)
            if path is None and called.type == "identifier":
                binding = self.script.scopes.bindings.get(called)
                if binding is not None and not binding.is_foreign and len(binding.values) == 1:
                    value, key = binding.values[0]
                    if key:  # const { hack } = ns
                        parent = self.script.resolve(value)
                        path = None if parent is None else f"{parent}.{key}".lstrip(".")
                    else:  # const hack = ns.hack
                        path = functions.get(value)
            if path is not None and self.signatures.of(path):
                calls.append((node, path))
        return calls

    def is_dead(self, finding: Finding) -> bool:
        """Return whether a finding is in code that never runs; it has to be valid there all the same."""
        return finding.when != "start" and any(start <= finding.start < end for start, end in self._dead)

    @cached_property
    def _dead(self) -> list[tuple[int, int]]:
        """Code behind `if (false)` and the like, with which players charge RAM, in bytes."""
        ranges = []
        for node in self.nodes:
            tested, body = node.field("condition"), node.field("consequence")
            if node.type == "binary_expression" and node.has_token("&&"):
                tested, body = node.field("left"), node.field("right")
            if tested is not None and body is not None and tested.text.strip("() ") in ("false", "0"):
                ranges.append((body.start, body.end))
        return ranges

    @cached_property
    def guards(self) -> Guards:
        """The members that the script tests before use; computed lazily, since most scripts need none."""
        return Guards(self.script)

    @cached_property
    def breakable(self) -> dict[Node | None, Node | None]:
        """The loop or switch that a `break` leaves, for each node."""
        innermost: dict[Node | None, Node | None] = {}
        for node in self.nodes:
            around = None if node.type in FUNCTIONS else innermost.get(node.parent)
            innermost[node] = node if node.type in _BREAKABLE else around
        return innermost

    @cached_property
    def results(self) -> Results:
        """The types of the API's return values."""
        return Results(self.script.scopes, dict(self.calls), self.signatures, self.definitions)


# --- the API ------------------------------------------------------------------------------------------------


def _find_unknown(subject: Subject) -> Iterator[Finding]:
    """Members of the API that do not exist; a name that is used often is reported once."""
    definitions = subject.definitions
    called = {node.field("function") for node in subject.nodes if node.type == "call_expression"}
    called_names = {node.text for node in called if node is not None and node.type == "identifier"}
    unknown: dict[str, tuple[ApiUse, When]] = {}
    for use in subject.uses:
        if use.name in definitions.members[definitions.namespaces[use.parent]]:
            continue
        if use.name in _OF_EVERY_OBJECT | UNDOCUMENTED or use.has_default:
            continue
        if not subject.guards.covers(use.node, use.name):
            # Reading a missing member is undefined; calling it or going on from it fails.
            around = use.node.parent
            is_left = around is not None and around.field("object") is use.node
            fails = use.node in called or is_left or use.node.text in called_names
            if use.path not in unknown or (fails and unknown[use.path][1] == "maybe"):
                unknown[use.path] = (use, "line" if fails else "maybe")
    for use, when in list(unknown.values())[:_MAX_PROBLEMS]:
        message = f"ns.{use.path} does not exist.{_suggest(use, subject)}"
        yield Finding("unknown_api", message, use.start, when)


def _suggest(use: ApiUse, subject: Subject) -> str:
    """Suggest functions of that name in other namespaces first, then similar names."""
    # `ns.connect` most likely means `ns.singularity.connect`, the same name elsewhere.
    definitions = subject.definitions
    interface = definitions.namespaces[use.parent]
    similar = subject.search.suggest(use.name, interface, _MAX_NAMES)
    near = [f"{use.parent}.{name}".lstrip(".") for name in similar]
    elsewhere = [path for path, _ in definitions.functions_by_name.get(use.name, ())]
    shown = []
    for path in list(dict.fromkeys([*elsewhere[:_MAX_NAMES], *near]))[:_MAX_NAMES]:
        declaration = definitions.find_path(path)
        parent = path.rpartition(".")[0]
        signature = " ".join(declaration.signature.split()) if declaration is not None else path
        prefix = f"ns.{parent}." if parent else "ns."
        shown.append(f"{prefix}{signature.removeprefix('readonly ').removesuffix(';')}")
    return f" Nearest: {'; '.join(shown)}." if shown else ""


def _find_missing_ns(subject: Subject) -> Iterator[Finding]:
    """Calls such as `hack(target)` of a function that only ns has."""
    members = subject.definitions.members.get("NS", {})
    for node in subject.nodes:
        called = node.field("function") if node.type == "call_expression" else None
        if called is None or called.type != "identifier":
            continue
        name = called.text
        member = members.get(name)
        is_candidate = member is not None and member.is_function and name not in _PAGE_FUNCTIONS
        if is_candidate and name not in subject.script.scopes.names and not subject.guards.covers(node, name):
            yield Finding("missing_ns", f"{name} is not defined; ns.{name} is.", called.start)


def _find_undeclared(subject: Subject) -> Iterator[Finding]:
    """Names that no declaration around them makes: a ReferenceError, since every script is a module.

    Left alone are names with a capital, globals of the page, and what the script makes or tests without
    declaring it (`globalThis.x = …`, `typeof x`).
    """
    bindings, names = subject.script.scopes.bindings, subject.script.scopes.names
    unbound: list[Node] = []
    made = set(_PAGE_NAMES)
    has_own_ns = False
    for node in subject.nodes:
        parent, binding = node.parent, bindings.get(node)
        if binding is not None:
            has_own_ns |= node.text == "ns" and binding.parameter is None
        elif node.type == "identifier" and parent is not None:
            is_object = parent.type == "member_expression" and parent.field("object") is node
            is_read = parent.type in _READING or is_object or _is_compared(node, parent)
            is_read = is_read and "type" not in (parent.parent or parent).type
            is_assigned = parent.type in _ASSIGNING and parent.field("left") is node
            if (is_read or is_assigned) and node not in subject.guards.protected:
                unbound.append(node)
            else:
                made.add(node.text)
        elif node.type in _ASSIGNING:
            left = node.field("left")  # globalThis.ns = ns
            owner = left.field("object") if left is not None else None
            if left is not None and owner is not None and owner.type != "this":
                made.add(property_of(left))
        elif node.type == "variable_declaration":  # `var` is visible outside of its block
            made |= {name.text for declared in node.named for name in _declared_names(declared)}
    near: dict[str, str] = {}
    for name in names if unbound else ():
        near |= dict.fromkeys(_shorten(name), name)
    told: set[str] = set()
    members = subject.definitions.members.get("NS", {})
    for node in unbound:
        name = node.text
        # A call of what only ns has is reported as such.
        is_global = name in made or not name[0].islower() or name in told or name in members
        if is_global or (name == "ns" and has_own_ns):
            continue
        told.add(name)
        if name == "ns":
            message = "ns is not defined here. Add it as a parameter, and pass it."
        elif name in names:
            message = f"{name} is not defined here. Declare it further out, or pass it as a parameter."
        else:
            meant = next((near[shorter] for shorter in _shorten(name) if shorter in near), None)
            message = f"{name} is not defined.{f' Nearest: {meant}.' if meant is not None else ''}"
        yield Finding("undeclared", message, node.start)


def _is_compared(node: Node, parent: Node) -> bool:
    """Return whether a name is the condition of a statement or what a loop runs over."""
    if parent.type == "for_in_statement":
        return parent.field("right") is node
    around = parent.parent if parent.type == "parenthesized_expression" else None
    return around is not None and around.type in ("if_statement", "while_statement")


def _declared_names(declarator: Node) -> Iterator[Node]:
    pattern = declarator.field("name")
    return pattern_names(pattern) if pattern is not None else iter(())


def _shorten(name: str) -> list[str]:
    """Return a name, and it without each of its letters: misspelt names have one of these in common."""
    if not _MIN_NAME <= len(name) <= _MAX_NAME:
        return []
    return [name, *(name[:at] + name[at + 1 :] for at in range(len(name)))]


def _find_not_a_function(subject: Subject) -> Iterator[Finding]:
    """Calls of a value or a namespace of the API."""
    for use in subject.uses:
        call = use.node.parent
        if call is None or call.type != "call_expression" or call.field("function") is not use.node:
            continue
        declaration = subject.definitions.find_path(use.path)
        if declaration is None or declaration.is_function or subject.guards.covers(use.node, use.name):
            continue
        if use.path in subject.definitions.namespaces:
            yield Finding("not_a_function", f"ns.{use.path} is a namespace, not a function.", use.start)
        elif declaration.type_name in ("", "string", "number") and "=>" not in declaration.signature:
            yield Finding("not_a_function", f"ns.{use.path} is a value, not a function.", use.start)


def _find_not_called(subject: Subject) -> Iterator[Finding]:
    """Functions of the API in a calculation, a loop or before a method, where their result is meant."""
    for use in subject.uses:
        parent = use.node.parent
        if parent is None or not subject.signatures.of(use.path):
            continue
        operator = parent.field("operator")
        fails = False
        if parent.type == "for_in_statement":  # for (const host of ns.scan)
            fails = operator is not None and operator.type == "of" and parent.field("right") is use.node
        elif parent.type == "member_expression" and parent.field("object") is use.node:  # ns.scan.map(…)
            is_called = parent.parent is not None and parent.parent.field("function") is parent
            fails = is_called and property_of(parent) not in _OF_FUNCTIONS
        is_binary = parent.type == "binary_expression"
        is_compared = is_binary and operator is not None and operator.type in _ARITHMETIC
        if (fails and not subject.guards.covers(parent, property_of(parent))) or is_compared:
            message = f"ns.{use.path} is not called here; write ns.{use.path}(…)."
            yield Finding("not_called", message, use.start, "line" if fails else "maybe")


def _find_wrong_arguments(subject: Subject) -> Iterator[Finding]:
    """Too few arguments for every overload, and literals that no overload accepts."""
    for call, path in subject.calls:
        passed = call.field("arguments")
        if passed is None or passed.type != "arguments":
            continue
        arguments = passed.named
        overloads = subject.signatures.of(path)
        if any(argument.type == "spread_element" for argument in arguments):
            continue
        minimum = min(overload.required for overload in overloads)
        if len(arguments) < minimum:
            if call in subject.guards.protected:
                continue
            shortest = min(overloads, key=lambda overload: overload.required)
            names = ", ".join(parameter.name for parameter in shortest.parameters if parameter.is_required)
            wanted = f"{minimum} argument{'s' if minimum != 1 else ''} ({names})"
            message = f"ns.{path} needs {wanted}, got {len(arguments)}."
            yield Finding("too_few_arguments", message, call.start)
            continue
        for index, argument in enumerate(arguments):
            accepted = [
                overload.parameters[index] for overload in overloads if index < len(overload.parameters)
            ]
            # A rest parameter, or an argument too many, which JavaScript ignores.
            if len(accepted) < len(overloads) or any(
                fits(argument, parameter.kinds)
                and subject.results.fits(argument, parameter.kinds, is_required=parameter.is_required)
                for parameter in accepted
            ):
                continue
            if call in subject.guards.protected:
                break
            kinds = accepted[0].kinds
            for parameter in accepted[1:]:
                kinds |= parameter.kinds
            message = f"ns.{path}: {accepted[0].name} takes {describe(kinds)}, not {argument.text[:30]}."
            # Some versions of the game take "Long" for "L".
            literal = simplify(string_value(argument) or "")
            is_near = any(
                value.startswith(literal) or literal.startswith(value) for value in kinds.values if literal
            )
            yield Finding("wrong_argument", message, argument.start, "maybe" if is_near else "line")


def _find_computed_calls(subject: Subject) -> Iterator[Finding]:
    """Calls such as `ns[action]()`, whose cost the game does not count, so that it stops the script."""
    called = [node.field("function") for node in subject.nodes if node.type == "call_expression"]
    computed = [
        node
        for node in called
        if node is not None
        and node.type == "subscript_expression"
        and not property_of(node)
        and subject.script.resolve(node.field("object")) == ""
    ]
    if not computed:
        return
    named = {node.text for node in subject.nodes if node.type in ("property_identifier", "identifier")}
    members = subject.definitions.members.get("NS", {})
    uncounted = sorted(
        {
            value
            for node in subject.nodes
            if (value := string_value(node)) in members and members[value].ram and value not in named
        }
    )
    for node in computed if uncounted else ():
        names = ", ".join(uncounted[:_MAX_NAMES])
        message = f"The game does not count the RAM of a computed name ({names}) and stops the script. "
        yield Finding("uncounted_ram", f"{message}Write ns.{uncounted[0]}(…).", node.start)


def _find_not_awaited(subject: Subject) -> Iterator[Finding]:
    """Statements that neither await nor use the promise of an API function."""
    starts = sorted(use.start for use in subject.uses)
    for call, path in subject.calls:
        name = path.rpartition(".")[2]
        statement = call.parent
        if statement is None or statement.type != "expression_statement" or name in _WITHOUT_AWAIT:
            continue
        if not all(overload.returns_promise for overload in subject.signatures.of(path)):
            continue
        # It fails if the script calls anything else meanwhile: further down in the block, or in a loop's next
        # round. At the end of a block it is uncertain.
        block = statement.parent
        last = block.end if block is not None else statement.end
        is_followed = bisect_right(starts, last) > bisect_right(starts, statement.end)
        is_certain = name in _EXCLUSIVE and is_followed and not subject.guards.covers(call, name)
        why = "other calls fail while it runs" if name in _EXCLUSIVE else "the script does not wait for it"
        message = f"ns.{path} returns a promise and is not awaited: {why}. Write await ns.{path}(…)."
        yield Finding("not_awaited", message, call.start, "line" if is_certain else "maybe")


def _find_unknown_members(subject: Subject) -> Iterator[Finding]:
    """Properties and methods that the result of an API function does not have."""
    reads: list[tuple[Node, Node | None]] = []
    made: set[str] = set()  # keys of objects, which Object.assign may add to a result
    for node in subject.nodes:
        key = node.field("key") if node.type == "pair" else None
        if key is not None or node.type == "shorthand_property_identifier":
            made.add((key or node).text)
        name = node.field("property") if node.type == "member_expression" else None
        if name is not None:
            reads.append((name, node.field("object")))
        elif node.type == "object_pattern" and node.parent is not None:
            is_plain = node.parent.type == "variable_declarator" and node.parent.field("type") is None
            value = node.parent.field("value") if is_plain else None
            if subject.results.type_of(value):
                reads += [(name, value) for name, key in list_pattern(node) if key == name.text]
    # A script may import what adds methods to every array.
    imports_scripts = any(
        not is_definitions(imported.module, subject.filename) for imported in subject.module.imports
    )
    for name, value in reads:
        parts = subject.results.type_of(value)
        has = {subject.results.has_member(part, name.text) for part in parts}
        member = name.parent
        if has != {False} or name.text in _OF_EVERY_OBJECT | made or member is None:
            continue
        is_own = all(map(subject.results.is_interface, parts))
        if (imports_scripts and not is_own) or subject.guards.covers(member, name.text):
            continue
        around = member.parent
        is_called = around is not None and around.field("function") is member
        is_left = around is not None and around.field("object") is member
        shown = " or ".join(sorted(parts))
        near = subject.search.suggest(name.text, min(parts), _MAX_NAMES) if is_own else []
        effect = "so calling it fails" if is_called else "so this is undefined"
        when: When = "line" if is_called or is_left else "maybe"
        hint = f" Nearest: {', '.join(near)}." if near else ""
        message = f"{shown} has no {name.text}, {effect}.{hint}"
        yield Finding("unknown_property", message, name.start, when)


def _find_called_results(subject: Subject) -> Iterator[Finding]:
    """Calls of an API function's result, such as `ns.getHostname()()`."""
    calls = dict(subject.calls)
    for node in subject.nodes:
        called = node.field("function") if node.type == "call_expression" else None
        if called in calls and called is not None:
            parts = subject.results.type_of(called)
            if parts and all(subject.results.has_member(part, "") is False for part in parts):
                message = f"ns.{calls[called]} returns {' or '.join(sorted(parts))}, which is not a function."
                yield Finding("not_a_function", message, node.start)


def _find_promises(subject: Subject) -> Iterator[Finding]:
    """Promises of API functions in a comparison, calculation or condition, where their result is meant."""
    calls = dict(subject.calls)
    for node in subject.nodes:
        parent = node.parent
        if parent is None or not (parts := subject.results.type_of(node)):
            continue
        if not all(part.startswith("Promise<") for part in parts):
            continue
        operator = parent.field("operator")
        is_counted = operator is not None and operator.type in _ARITHMETIC | _ADDING
        # A variable may be tested before it is awaited; a call in a condition is always true.
        around = parent.parent if parent.type == "parenthesized_expression" else parent
        condition = around.field("condition") if around is not None else None
        is_condition = node in calls and (condition is node or condition is parent)
        if is_counted or is_condition:
            message = "This is a promise, not its result, because it is not awaited. Write await."
            yield Finding("not_awaited", message, node.start, "maybe")


def _find_async_loops(subject: Subject) -> Iterator[Finding]:
    """`forEach` with an async callback that calls hack and the like; it waits for none of these calls."""
    awaited = {node.function for node, path in subject.calls if path in _EXCLUSIVE}
    for node in subject.nodes:
        called = node.field("function") if node.type == "call_expression" else None
        passed = node.field("arguments")
        if called is None or passed is None or property_of(called) != "forEach":
            continue
        for callback in passed.named[:1]:
            if callback in awaited and callback.has_token("async"):
                message = "forEach does not wait for an async function, so its calls overlap. Use for … of."
                yield Finding("not_awaited", message, node.start, "maybe")


def _find_missing_places(subject: Subject) -> Iterator[Finding]:
    """Literal names of servers and scripts that the game does not have; a later script may make them."""
    world = subject.world
    if world is None:
        return
    made: set[str] = set()  # what the script itself buys, writes or copies
    literals: list[tuple[Node, str, str]] = []
    for call, path in subject.calls:
        name = path.rpartition(".")[2]
        passed = call.field("arguments")
        arguments = passed.named if passed is not None else []
        texts = [(node, value) for node in arguments if (value := string_value(node))]
        if _MAKING.search(name) is not None:
            made |= {value for _, value in texts}
            continue
        for index, parameter in enumerate(subject.signatures.of(path)[0].parameters[: len(arguments)]):
            value = string_value(arguments[index])
            if value and parameter.name in _HOSTS and name not in ("serverExists", "dnsLookup"):
                literals.append((arguments[index], value, "server"))
            elif value and parameter.name == "script" and name in ("run", "spawn"):
                literals.append((arguments[index], value, "script"))
    for node, value, what in literals:
        known = world.servers if what == "server" else world.filenames
        if value in made or value.removeprefix("/") in known or not known or value.count(".") == _IP_DOTS:
            continue
        near = get_close_matches(value, known, 1)
        hint = f" Nearest: {near[0]}." if near else ""
        message = f"There is no {what} {value!r} now.{hint}"
        yield Finding(f"missing_{what}", message, node.start, "maybe")


# --- modules ------------------------------------------------------------------------------------------------


def _find_bad_imports(subject: Subject) -> Iterator[Finding]:
    """Imports of files that are not there, and of names that those files do not export."""
    files = subject.files
    if files is None:
        return
    exports: dict[str, Module] = {}
    for imported in subject.module.imports:
        if is_definitions(imported.module, subject.filename):
            continue
        target = resolve_module(imported.module, subject.filename, files.__contains__)
        if target is None:
            message = f"{imported.module!r} is not on the server. Write it first, or correct the path."
            if imported.module in paths.DEFINITIONS:
                message = f"{imported.module!r} can be imported in .ts and .tsx files only."
            yield Finding("missing_import", message, imported.node.start, "start")
            continue
        if imported.is_type or target == subject.filename or len(files[target]) > MAX_CHARACTERS:
            continue
        if target not in exports:
            subject.script.spend(len(files[target]))
            with closing(Tree(files[target], target)) as tree:
                exports[target] = Module(tree)
        module = exports[target]
        if module.stars:
            continue  # its re-exports are not known here
        yield from _find_unknown_exports(subject, imported.node, target, module)
        if imported.default is not None and "default" not in module.exports:
            message = f"{target} has no default export. Write import {{ … }} from {imported.module!r}."
            yield Finding("missing_export", message, imported.default.start, "start")
        for name in imported.names:
            if name.name and name.name not in module.exports:
                exports_listed = ", ".join(sorted(module.exports)[:8]) or "nothing"
                message = f"{target} does not export {name.name}. It exports {exports_listed}."
                yield Finding("missing_export", message, name.node.start, "start")
    for listed in subject.module.lists:
        if listed.module is not None and listed.module not in files and not listed.is_type:
            # The game's resolver leaves this text alone, unlike that of an import.
            target = resolve_module(listed.module, subject.filename, files.__contains__)
            hint = f"write {target!r}" if target is not None else "it is not on the server"
            message = f"The game takes {listed.module!r} as a whole path here: {hint}."
            yield Finding("missing_import", message, listed.node.start, "start")


def _find_unknown_exports(subject: Subject, imported: Node, target: str, module: Module) -> Iterator[Finding]:
    """Members of `import * as name` that the file does not export."""
    around = [] if imported.parent is None else imported.parent.named
    clause = next((node for node in around if node.type == "import_clause"), imported)
    star = next((node for node in clause.named if node.type == "namespace_import"), None)
    name = star.named[0] if star is not None and star.named else None
    binding = subject.script.scopes.bindings.get(name) if name is not None else None
    for node in subject.nodes if binding is not None else ():
        owner = node.field("object") if node.type == "member_expression" else None
        if owner is None or subject.script.scopes.bindings.get(owner) is not binding:
            continue
        member = property_of(node)
        if member in module.exports or subject.guards.covers(node, member):
            continue
        is_called = node.parent is not None and node.parent.field("function") is node
        exports_listed = ", ".join(sorted(module.exports)[:8]) or "nothing"
        message = f"{target} does not export {member}. It exports {exports_listed}."
        yield Finding("missing_export", message, node.start, "line" if is_called else "maybe")


def _find_main(subject: Subject) -> Iterator[Finding]:
    """A `main` that the game cannot see."""
    exports = subject.module.exports
    if "main" in exports:
        return
    for exported in sorted(exports):
        if exported.lower() == "main":
            message = f"The game calls main, and this script exports {exported}. Rename it."
            yield Finding("main_not_exported", message, 0, "start")
    for node in subject.script.tree.root.children if "default" in exports else ():
        declaration = node.field("declaration") if node.has_token("default") else None
        name = declaration.field("name") if declaration is not None else None
        if name is not None and name.text == "main":
            message = "The game does not see a default export; write export without default."
            yield Finding("main_not_exported", message, name.start, "start")
    if exports or subject.module.stars:
        return
    for node in subject.script.tree.root.children:
        declared = node.named if node.type in ("lexical_declaration", "variable_declaration") else [node]
        for declarator in declared:
            name = declarator.field("name")
            value = declarator.field("value") or declarator
            if name is not None and name.text == "main" and value.type in FUNCTIONS:
                message = "main is not exported; write export before it."
                yield Finding("main_not_exported", message, declarator.start, "start")


# --- the language -------------------------------------------------------------------------------------------


def _find_syntax(subject: Subject) -> Iterator[Finding]:
    """Syntax that our parser accepts and the game's does not."""
    for node in subject.nodes:
        is_await = node.type == "await_expression" or (
            node.type == "for_in_statement" and node.has_token("await")
        )
        if is_await and node.function is not None and not node.function.has_token("async"):
            message = "Syntax error: await in a function that is not async."
            yield Finding("syntax_error", message, node.start, "start")
            return
        if node.type.startswith("jsx_") and subject.filename.endswith(".js"):
            message = "Syntax error: the game reads JSX in .jsx and .tsx files only."
            yield Finding("syntax_error", message, node.start, "start")
            return
        is_stray = node.type in ("break_statement", "continue_statement") and not node.named
        if is_stray and subject.breakable[node] is None:
            message = f"Syntax error: {node.type.partition('_')[0]} outside of a loop."
            yield Finding("syntax_error", message, node.start, "start")
            return
    for name in subject.script.scopes.declared_twice:
        message = f"Syntax error: {name.text} is declared twice in one block."
        yield Finding("syntax_error", message, name.start, "start")
        return


def _find_assigned_constants(subject: Subject) -> Iterator[Finding]:
    for name in subject.script.scopes.assigned_constants:
        if name not in subject.guards.protected:
            yield Finding("assigned_constant", f"{name.text} is a const and cannot be assigned.", name.start)


def _find_endless_loops(subject: Subject) -> Iterator[Finding]:
    """Endless loops without `await`, which freeze the game."""
    endless = [
        node
        for node in subject.nodes
        if node.type in _LOOPS
        and (condition := node.field("condition")) is not None
        and condition.text in _ALWAYS
    ]
    if not endless:
        return
    ending = {name_of(node.function) for node in subject.nodes if node.function is not None and _ends(node)}
    left: set[Node] = set()
    for node in subject.nodes:
        if node.type == "break_statement" and not node.named:
            # Without a label it leaves the innermost loop or switch alone.
            left |= {inner} if (inner := subject.breakable[node]) is not None else set()
            continue
        called = node.field("function") if node.type == "call_expression" else None
        is_left = node.type in _LEAVING or _ends(node) or (called is not None and called.text in ending)
        is_left |= node.type == "for_in_statement" and node.has_token("await")
        around: Node | None = node if is_left else None
        # Stop at the function, or at a node that another exit has marked already, so that each is marked
        # once.
        while around is not None and around not in left and around.type not in FUNCTIONS:
            left.add(around)
            around = around.parent
    for node in endless:
        # In a try, anything that is called may end it by an exception.
        if node not in left and node not in subject.guards.protected:
            message = "This loop never ends and never awaits, so the game freezes. Add await ns.sleep(…)."
            yield Finding("endless_loop", message, node.start)


def _ends(node: Node) -> bool:
    """Return whether a node ends the function or the script around it."""
    called = node.field("function") if node.type == "call_expression" else None
    is_exit = called is not None and called.type == "member_expression" and property_of(called) in _EXITS
    return is_exit or node.type == "throw_statement"


_USE_RULES = (
    _find_unknown,
    _find_not_a_function,
    _find_not_called,
    _find_wrong_arguments,
    _find_not_awaited,
    _find_unknown_members,
    _find_called_results,
    _find_promises,
    _find_async_loops,
    _find_missing_places,
)
"""Rules about a script's use of the API."""
_RULES = (
    _find_computed_calls,
    _find_missing_ns,
    _find_undeclared,
    _find_bad_imports,
    _find_main,
    _find_syntax,
    _find_assigned_constants,
    _find_endless_loops,
)
