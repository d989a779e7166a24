"""Public names are handed on from the modules that define them, which are loaded on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping

# This replaces typing.TYPE_CHECKING, because importing typing would delay the moment when a command
# handles Ctrl-C.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

__all__ = ["handed_on", "public"]


def handed_on(
    module: str, homes: Mapping[str, str], modules: Collection[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a module that hands names on.

    Parameters
    ----------
    module : str
        The name of the module.
    homes : mapping
        Public name -> the module below rankmill that defines it.
    modules : collection of str
        The public modules within the module.
    """

    def find(name: str) -> Any:
        from importlib import import_module

        if name in modules:
            return import_module(f"{module}.{name}")
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = getattr(import_module(f"rankmill.{homes[name]}"), name)
        setattr(sys.modules[module], name, value)
        return value

    def names() -> list[str]:
        own = (name for name in vars(sys.modules[module]) if name.startswith("__"))
        return sorted({*homes, *modules, *own})

    return find, names


def public(name: str) -> Any:
    """Return a public function or class by its name, for those that stand below its module."""
    return getattr(sys.modules["rankmill"], name)
