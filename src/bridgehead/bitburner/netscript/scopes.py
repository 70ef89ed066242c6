"""Scopes: which declaration each name of a script refers to, in one pass over its tree.

Scopes are pushed and popped while the tree is read, so looking a name up does not climb, however deep a
script is nested. `var` counts as declared in its block, which is enough for following values.
"""

from __future__ import annotations

from collections.abc import Iterator

from .parsing import FUNCTIONS, SCOPES, Node, Tree

ELEMENT = "[]"
"""The property that stands for any element of a list."""
_NOTHING = frozenset({"null", "undefined"})
_ACCESS_MODIFIERS = (b"private ", b"public ", b"protected ", b"readonly ")
_NAMES = frozenset({"identifier", "shorthand_property_identifier", "shorthand_property_identifier_pattern"})


class Binding:
    """A declared name: the values assigned to it, or a parameter."""

    __slots__ = ("function", "index", "is_constant", "is_foreign", "parameter", "values")

    def __init__(self, *, is_foreign: bool = False) -> None:
        self.values: list[tuple[Node, str]] = []
        """Expressions, each with the property taken from it ("" for the whole)."""
        self.function: Node | None = None
        """The function that has it as a parameter."""
        self.index = 0
        self.parameter: Node | None = None
        self.is_foreign = is_foreign
        """Whether its value cannot be known."""
        self.is_constant = False


class Scopes:
    """The declarations of one script, and the declaration behind each name."""

    def __init__(self, tree: Tree) -> None:
        self._declared: dict[Node, dict[str, Binding]] = {}
        self.names: set[str] = set()
        """Every name that is declared anywhere."""
        self.bindings: dict[Node, Binding] = {}
        """The declaration behind a name; names without one are globals."""
        self.arguments: dict[str, list[list[Node]]] = {}
        """Arguments of calls by plain name: for each parameter, all values passed to it."""
        self.fields: dict[str, list[Node]] = {}
        """The values assigned to `this.name`."""
        self.field_types: dict[str, Node] = {}
        self.parameters: dict[Node, Binding] = {}
        """Parameters by their name or object pattern."""
        self.declared_twice: list[Node] = []
        """Names that `let`, `const` or `class` declares again in one block, which is a syntax error."""
        self.assigned_constants: list[Node] = []
        self.callbacks: set[str] = set()
        """Names that are passed to a method, such as `f` in `list.map(f)`."""
        self._lexical: set[tuple[Node, str]] = set()
        self.steps = 0
        assignments = []
        for node in tree.nodes:
            self.steps += 1
            match node.type:
                case "variable_declarator":
                    self._collect_variable(node)
                case (
                    "class_declaration"
                    | "import_specifier"
                    | "namespace_import"
                    | "import_clause"
                    | "enum_declaration"
                ):
                    for name in node.named:
                        if name.type in ("identifier", "type_identifier"):
                            self._declare(name, Binding(is_foreign=True), node.scope)
                case "catch_clause":
                    self._declare_foreign(node.field("parameter"), node)
                case "for_in_statement":
                    self._collect_loop(node)
                case "call_expression":
                    self._collect_call(node)
                case "public_field_definition":
                    field_name, typed = node.field("name"), node.field("type")
                    if field_name is not None and typed is not None:
                        self.field_types[field_name.text] = typed
                case "assignment_expression" | "augmented_assignment_expression" | "update_expression":
                    assignments.append(node)
                case _:
                    if node.type in FUNCTIONS:
                        self._collect_function(node)
        self._bind(tree)
        # Last: an assignment looks its name up, and a function may assign a name declared below it.
        for node in assignments:
            self._collect_assignment(node)

    def _collect_variable(self, node: Node) -> None:
        pattern, value = node.field("name"), node.field("value")
        declaration = node.parent
        kind = declaration.field("kind") if declaration is not None else None
        if kind is not None and kind.type in ("let", "const") and pattern is not None:
            self._declare_lexical(pattern, node.scope)
        if pattern is not None and pattern.type == "identifier":
            binding = Binding()
            binding.is_constant = kind is not None and kind.type == "const"
            if value is not None and value.type not in _NOTHING:
                binding.values.append((value, ""))
            self._declare(pattern, binding, node.scope)
        elif pattern is not None and pattern.type == "object_pattern" and value is not None:
            self._declare_pattern(pattern, value, node.scope)
        else:
            self._declare_foreign(pattern, node.scope)

    def _collect_loop(self, node: Node) -> None:
        """Declare what `for (const x of list)` declares: an element of the list, as the property `[]`."""
        # Without `const`, `let` or `var` the loop assigns an existing name.
        pattern, value, operator = node.field("left"), node.field("right"), node.field("operator")
        is_element = operator is not None and operator.type == "of" and not node.has_token("await")
        if is_element and pattern is not None and pattern.type == "identifier" and value is not None:
            binding = Binding()
            binding.values.append((value, ELEMENT))
            self._declare(pattern, binding, node)
        else:
            self._declare_foreign(pattern, node)

    def _declare_lexical(self, pattern: Node, scope: Node | None) -> None:
        for name in pattern_names(pattern):
            key = (scope, name.text) if scope is not None else None
            if key in self._lexical:
                self.declared_twice.append(name)
            elif key is not None:
                self._lexical.add(key)

    def _collect_function(self, node: Node) -> None:
        name = node.field("name")
        if name is not None and node.type.endswith("_declaration"):
            self._declare(name, Binding(is_foreign=True), node.scope)
        single, parameters = node.field("parameter"), node.field("parameters")
        listed = [single] if single is not None else parameters.named if parameters is not None else []
        for index, parameter in enumerate(listed):
            # TypeScript wraps the pattern; a default value makes it the left side of an assignment.
            pattern = parameter.field("pattern") or parameter.field("left") or parameter
            if pattern.type == "identifier":
                binding = Binding()
                binding.function, binding.index, binding.parameter = node, index, parameter
                self.parameters[pattern] = binding
                self._declare(pattern, binding, node)
                # `constructor(private ns: NS)` also declares the field `this.ns`.
                if parameter.source.startswith(_ACCESS_MODIFIERS, parameter.start, parameter.end):
                    self.fields.setdefault(pattern.text, []).append(pattern)
            elif pattern.type == "object_pattern":
                binding = Binding()
                binding.function, binding.index, binding.parameter = node, index, parameter
                self.bindings[pattern] = self.parameters[pattern] = binding
                self._declare_pattern(pattern, pattern, node)
            else:
                self._declare_foreign(pattern, node)

    def _collect_call(self, node: Node) -> None:
        function, passed = node.field("function"), node.field("arguments")
        if function is None or passed is None:
            return
        if function.type == "member_expression":
            self.callbacks |= {argument.text for argument in passed.named if argument.type == "identifier"}
        if function.type != "identifier":
            return
        name = function.text
        by_index = self.arguments.setdefault(name, [])
        for index, argument in enumerate(passed.named):
            if index == len(by_index):
                by_index.append([])
            by_index[index].append(argument)

    def _collect_assignment(self, node: Node) -> None:
        left, right = node.field("left"), node.field("right")
        if node.type == "update_expression":  # count++
            left = right = node.field("argument")
        if left is None or right is None:
            return
        if left.type == "identifier":
            binding = self.bindings.get(left)
            if binding is not None and binding.is_constant:
                self.assigned_constants.append(left)
            if binding is None or right.type in _NOTHING:
                return
            # `ns ||= x`, or a parameter that is assigned again, has more values than one can follow.
            if node.type != "assignment_expression" or binding.parameter is not None:
                binding.is_foreign = True
            else:
                binding.values.append((right, ""))
        elif left.type == "member_expression" and node.type != "update_expression":
            owner, name = left.field("object"), left.field("property")
            if owner is not None and owner.type == "this" and name is not None:
                self.fields.setdefault(name.text, []).append(right)

    def _declare_pattern(self, pattern: Node, value: Node, scope: Node | None) -> None:
        for name, key in list_pattern(pattern):
            binding = Binding(is_foreign=not key)
            if key:
                binding.values.append((value, key))
            self._declare(name, binding, scope)

    def _declare_foreign(self, pattern: Node | None, scope: Node | None) -> None:
        for name in pattern_names(pattern) if pattern is not None else ():
            self._declare(name, Binding(is_foreign=True), scope)

    def _declare(self, name: Node, binding: Binding, scope: Node | None) -> None:
        self.steps += 1
        if scope is None:
            return
        names, text = self._declared.setdefault(scope, {}), name.text
        # Declared twice: it is uncertain which of the two is meant.
        names[text] = Binding(is_foreign=True) if text in names else binding
        self.names.add(text)

    def _bind(self, tree: Tree) -> None:
        visible: dict[str, list[Binding]] = {}
        opened: list[Node] = []
        for node in tree.nodes:
            self.steps += 1
            while opened and opened[-1] is not node.scope:
                for name in self._declared.get(opened.pop(), ()):
                    visible[name].pop()
            if node.type in _NAMES:
                candidates = visible.get(node.text)
                if candidates:
                    self.bindings[node] = candidates[-1]
            if node.type in SCOPES:
                opened.append(node)
                for name, binding in self._declared.get(node, {}).items():
                    visible.setdefault(name, []).append(binding)


def list_pattern(pattern: Node) -> list[tuple[Node, str]]:
    """Return the names that an object pattern declares, each with its property ("" if unknown)."""
    declared: list[tuple[Node, str]] = []
    for child in pattern.named:
        if child.type == "shorthand_property_identifier_pattern":
            declared.append((child, child.text))
        elif child.type == "object_assignment_pattern":
            name = child.field("left")
            if name is not None:
                declared.append((name, name.text))
        elif child.type == "pair_pattern":
            key, value = child.field("key"), child.field("value")
            if key is not None and value is not None and value.type == "identifier":
                declared.append((value, key.text if key.type == "property_identifier" else ""))
            elif value is not None:
                declared += [(name, "") for name in pattern_names(value)]
        else:
            declared += [(name, "") for name in pattern_names(child)]
    return declared


def pattern_names(pattern: Node) -> Iterator[Node]:
    """Yield the names that a pattern declares; default values are not part of it."""
    waiting = [pattern]
    while waiting:
        node = waiting.pop()
        match node.type:
            case "identifier" | "shorthand_property_identifier_pattern":
                yield node
            case "assignment_pattern" | "object_assignment_pattern":
                waiting += [left] if (left := node.field("left")) is not None else []
            case "pair_pattern":
                waiting += [value] if (value := node.field("value")) is not None else []
            case "required_parameter" | "optional_parameter":
                waiting += [inner] if (inner := node.field("pattern")) is not None else []
            case "object_pattern" | "array_pattern" | "rest_pattern":
                waiting += reversed(node.named)
            case _:
                pass
