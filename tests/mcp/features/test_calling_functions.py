"""Functions as they are called: which take a struct of arguments, and where the context goes."""

from inspect import Parameter
from typing import Any

from bridgehead.mcp import Arguments, Context
from bridgehead.mcp.features.functions import is_context, make_handler, read_parameters, takes_struct


class Named(Arguments):
    name: str


def plain(args: Named, ctx: Context[None]) -> str:
    return args.name


def unannotated(args: Named, _ctx) -> str:  # type: ignore[no-untyped-def]  # noqa: ANN001
    return args.name


def alone(args: Named) -> str:
    return args.name


def apart(name: str, ctx: Context[None]) -> str:
    return name


def beside(args: Named, count: int) -> str:
    return args.name * count


def later(args: "Later", ctx: Context[None]) -> str:  # type: ignore[name-defined]  # noqa: F821
    return str(args)


def test_only_a_strict_struct_with_nothing_but_the_context_beside_it_holds_the_arguments() -> None:
    taking = [
        function.__name__ for function in (plain, unannotated, alone, apart, beside) if takes_struct(function)
    ]

    assert taking == ["plain", "unannotated", "alone"]


def test_a_type_that_is_defined_later_is_not_taken_for_a_struct_yet() -> None:
    assert not takes_struct(later)


def test_a_context_is_known_evaluated_or_not() -> None:
    contexts: list[Any] = [
        Context,
        Context[None],
        Context | None,
        Context[None] | None,
        "Context",
        "mcp.Context[State]",
        "mcp.Context[State] | None",
        "Optional[Context]",
        Parameter.empty,
    ]
    others: list[Any] = [int, "int", "Contexts", "list[Context]", None]

    def read(annotation: Any) -> bool:
        parameter = Parameter("p", Parameter.KEYWORD_ONLY, annotation=annotation)
        return is_context(parameter, plain)

    assert [read(kind) for kind in contexts] == [True] * len(contexts)
    assert [read(kind) for kind in others] == [False] * len(others)


def test_the_self_of_a_bound_method_is_no_parameter() -> None:
    class Shop:
        def sell(self, count: int) -> int:
            return count

    assert [*read_parameters(Shop().sell)] == ["count"]
    assert [*read_parameters(Shop.sell)] == ["self", "count"]


def test_a_function_that_takes_a_struct_and_the_context_is_its_own_handler() -> None:
    assert [make_handler(function) is function for function in (plain, unannotated)] == [True, True]
    assert [make_handler(function) is function for function in (alone, apart, beside)] == [False] * 3
