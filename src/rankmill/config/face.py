"""What flat options, of a command line or a file, become: the arguments of a function."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from rankmill.config.options import OPTIONS, keys
from rankmill.errors import UsageError
from rankmill.package import public

_ROWS = "Labels", "Predictions"
# Flat option -> the fields of nouns that it becomes, where a function has no parameter of its name.
# Of two options of one field the later one wins, if it is given.
PARAMETERS = {
    one.name: tuple(word for word in one.parameter.split() if "." in word)
    for rows in OPTIONS.values()
    for one in rows
    if "." in one.parameter
}
# Parameter of a function -> the noun that it takes.
_TAKEN = {
    "labels": "Labels",
    "predictions": "Predictions",
    "runs": "Predictions",
    "semantics": "Semantics",
    "catalogue": "Catalogue",
    "tests": "Tests",
    "rules": "Rules",
}


def options_taken(function: Callable[..., Any]) -> set[str]:
    """Return the flat options that a function has a place for."""
    wanted = inspect.signature(function).parameters
    nouns = _nouns_of(wanted)
    found = {name for name, fields in PARAMETERS.items() if _taken(fields, nouns)}
    if function.__module__.startswith("rankmill.spark"):
        found -= {"told_format", *(name for name, one in keys().items() if not one.frames)}
    return found | {*wanted}


def face_of(
    function: Callable[..., Any], labels: Any, runs: Any, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a function of rankmill, given inputs and flat options.

    `labels` is the input of `convert` and `head`, which take one. `runs` are the predictions, or
    those of each system. TypeError is raised for an option that the function has no place for.
    """
    wanted = inspect.signature(function).parameters
    nouns = _nouns_of(wanted)
    fields: dict[str, dict[str, Any]] = {noun: {} for noun in nouns}
    found: dict[str, Any] = {}
    for name in sorted(options, key=[*PARAMETERS, *options].index):
        value, places = options[name], _taken(PARAMETERS.get(name, ()), nouns)
        if name in wanted or (name == "role" and "source" in wanted):
            found[name] = value
        elif not places:
            raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}")
        for noun, field in () if name in found else places:
            if value is not None and value is not False:
                fields[noun][field] = value
    for name, noun in _TAKEN.items():
        if noun not in _ROWS and name in wanted:
            made = _made(noun, found.get(name), fields[noun])
            found |= {} if made is None else {name: made}
    if "source" in wanted:
        return found | {"source": _source(labels, found.pop("role", None), fields)}
    if "labels" in wanted:
        found["labels"] = _made("Labels", labels, fields["Labels"])
    told = fields.get("Predictions", {})
    if "runs" in wanted and isinstance(runs, Mapping):
        found["runs"] = {name: _made("Predictions", one, told) for name, one in runs.items()}
    elif "Predictions" in nouns:
        found["runs" if "runs" in wanted else "predictions"] = _made("Predictions", runs, told)
    return found


def _nouns_of(wanted: Mapping[str, Any]) -> set[str]:
    if "source" in wanted:
        return {*_ROWS}
    return {noun for parameter, noun in _TAKEN.items() if parameter in wanted}


def _taken(fields: tuple[str, ...], nouns: set[str]) -> list[tuple[str, str]]:
    pairs = [(noun, field) for noun, _, field in (one.partition(".") for one in fields)]
    return [(noun, field) for noun, field in pairs if noun in nouns]


def _source(data: Any, role: str | None, fields: Mapping[str, Mapping[str, Any]]) -> Any:
    """Return an input of one kind, which its columns tell if nothing else does."""
    from rankmill.sources import nouns

    shared = {name for name in fields["Labels"] if name not in ("gain", "binary")}
    own = (noun for noun in _ROWS if {*fields[noun]} - shared)
    implied, asked = next(own, "Given"), "Given" if role is None else role.capitalize()
    if "Given" not in (implied, asked) and implied != asked:
        theirs = "a score, rank or in_order" if role == "labels" else "a gain or binary"
        raise UsageError(f"{role} have no use for {theirs}: leave it out, or change the role")
    noun = implied if role is None else asked
    told = fields.get(noun) or {name: fields["Labels"][name] for name in shared}
    return getattr(nouns, noun)(data, **told)


def _made(noun: str, given: Any, told: Mapping[str, Any]) -> Any:
    """Return a noun with what is told of it; what is given, bare, where nothing is."""
    from rankmill.sources.nouns import Given

    if noun == "Semantics" and (told or given is not None):
        from rankmill.semantics.semantics import Semantics

        return replace(Semantics.of("default" if given is None else given), **told)
    if not told:
        return given
    if isinstance(given, Given):
        return replace(given, **told)
    return public(noun)(*([] if given is None else [given]), **told)
