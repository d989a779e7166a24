"""What the saved code of a kernel is linked with."""

from typing import Any

from llvmlite.binding import Linkage, parse_bitcode


def needs_of(library: Any) -> list[str]:
    """Return the names of what a kernel calls or reads that is not a part of it."""
    module = library._final_module
    named = [*module.functions, *module.global_variables]
    return sorted(
        one.name for one in named if one.is_declaration and not one.name.startswith("llvm.")
    )


def needs_python(library: Any, description: Any) -> bool:
    """Return whether what a kernel calls uses objects of its module, as print does.

    Each function has a variable with the address of these, which is set where it is compiled, and
    not where it is loaded as a part of another.
    """
    module = library._final_module
    names = {one.name for one in module.global_variables if one.name.startswith("_ZN08NumbaEnv")}
    text = str(module)
    return any(text.count(one) > 1 for one in names - {description.env_name})


def alone(library: Any) -> bytes:
    """Return somebody's kernel, and hide the functions that are compiled into it.

    Those of another process may have the same names, and only numbers tell versions apart: a linker
    would take the first of a name for all.
    """
    module = parse_bitcode(library._final_module.as_bitcode())
    for function in module.functions:
        if not function.is_declaration and function.linkage != Linkage.external:
            function.linkage = Linkage.internal
    code: bytes = library.codegen._tm.emit_object(module)
    return code
