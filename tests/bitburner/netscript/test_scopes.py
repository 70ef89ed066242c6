"""Scopes: a name means the declaration that JavaScript would find for it."""

from bridgehead.bitburner.netscript.parsing import Tree
from bridgehead.bitburner.netscript.scopes import Scopes


def value_of_last(name: str, source: str) -> str | None:
    """The value of the declaration that the last use of a name refers to."""
    tree = Tree(source, "a.js")
    scopes = Scopes(tree)
    use = [node for node in tree.nodes if node.type == "identifier" and node.text == name][-1]
    binding = scopes.bindings.get(use)
    return None if binding is None else ", ".join(value.text for value, _ in binding.values)


def test_an_inner_declaration_hides_the_outer_one_up_to_the_end_of_its_block() -> None:
    assert value_of_last("a", "let a = 1; { let a = 2; f(a); }") == "2"
    assert value_of_last("a", "let a = 1; { let a = 2; } f(a);") == "1"


def test_a_function_sees_what_is_declared_below_it() -> None:
    assert value_of_last("a", "const f = () => g(a); const a = 3; f(a);") == "3"


def test_every_assignment_is_a_value() -> None:
    assert value_of_last("a", "let a; function f() { a = 1; } a = 2; f(a);") == "1, 2"


def test_a_global_has_no_declaration() -> None:
    assert value_of_last("a", "f(a);") is None


def test_a_name_that_is_declared_twice_has_no_certain_value() -> None:
    tree = Tree("var a = 1; var a = 2; f(a);", "a.js")
    scopes = Scopes(tree)

    assert all(binding.is_foreign for binding in scopes.bindings.values())


def test_arguments_are_collected_by_their_place() -> None:
    scopes = Scopes(Tree("f(1, 2); f(3); g.f(4);", "a.js"))

    assert [[one.text for one in passed] for passed in scopes.arguments["f"]] == [["1", "3"], ["2"]]
