"""Transplant: puts what a mutant changes at import into a module that is imported already.

The module runs once more, with the mutant on, beside the one that is in use. Constants and defaults of
functions that came out differently are put into the one in use, and into whoever imported them by name. The
classes stay, so that everything still fits together. What cannot be put over so is tried in a process of its
own.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType


def transplant(module: ModuleType) -> bool:
    """Run a module anew and put what is different into it; tell whether there was anything."""
    fresh = ModuleType(module.__name__)
    fresh.__dict__.update({name: vars(module)[name] for name in ("__package__", "__file__", "__spec__")})
    source = Path(str(module.__file__)).read_text(encoding="utf-8")
    exec(compile(source, str(module.__file__), "exec"), vars(fresh))  # noqa: S102 - a copy of our own
    pairs = [(value, vars(fresh)[name], name) for name, value in vars(module).items() if name in vars(fresh)]
    found = [_put_constant(*pair) for pair in pairs if _is_constant(*pair)]
    functions = dict(_functions(vars(fresh)))
    found += [
        _put_defaults(old, functions[name]) for name, old in _functions(vars(module)) if name in functions
    ]
    return any(found)


def _is_constant(old: object, new: object, name: str) -> bool:
    """Tell whether a value is one that its text tells apart, and not something that the module made."""
    made = isinstance(new, type | FunctionType | ModuleType) or " at 0x" in f"{old!r}{new!r}"
    return not made and not name.startswith(("__", "_mutant"))


def _put_constant(old: object, new: object, name: str) -> bool:
    if repr(old) == repr(new):
        return False
    for one in tuple(sys.modules.values()):
        if getattr(one, "__dict__", {}).get(name) is old:
            setattr(one, name, new)
    return True


def _put_defaults(old: FunctionType, new: FunctionType) -> bool:
    before = repr((old.__defaults__, old.__kwdefaults__))
    if before == repr((new.__defaults__, new.__kwdefaults__)) or " at 0x" in before:
        return False
    old.__defaults__, old.__kwdefaults__ = new.__defaults__, new.__kwdefaults__
    return True


def _functions(namespace: dict[str, object], prefix: str = "") -> Iterator[tuple[str, FunctionType]]:
    for name, value in namespace.items():
        if isinstance(value, FunctionType):
            yield prefix + name, value
        elif isinstance(value, type) and not prefix:
            yield from _functions(dict(vars(value)), f"{name}.")
