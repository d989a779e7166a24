"""What texts and flat options, of a command line or a file, become: arguments of a function."""

import glob
import inspect
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from rankmill.config.options import OPTIONS
from rankmill.errors import UsageError
from rankmill.io.stores.urls import is_url, redacted, shown
from rankmill.package import GONE, public

# What other libraries call the cutoff of a metric.
CUTOFFS = "k", "ks", "cutoff", "cutoffs", "top_k", "topk", "at"

# ------------------------------------------------------------------ inputs


def source_of(text: str, name: str) -> str | list[str]:
    """Return the input that an argument names: one path or glob, or a list of paths and globs."""
    if not text:
        raise UsageError(
            f"{name} is empty, as an unset shell variable would be; expected a file, a glob or "
            "a folder"
        )
    if "," not in text or os.path.exists(text):
        return text
    paths = text.split(",")
    if not all(paths):
        raise UsageError(
            f"{name} {redacted(text)!r} has an empty name between its commas: remove a comma"
        )
    return paths


def system_names(texts: Sequence[str]) -> list[str]:
    """Return a short, unique name for each input of predictions; UsageError if one is repeated.

    The name is that of the file. If several files have the same name, enough folders are put in
    front of the names to make them different.
    """
    for text, count in Counter(texts).items():
        if count > 1:
            raise UsageError(
                f"PREDICTIONS {redacted(text)} are given {count} times: leave the others out"
            )
    parts = [_parts(text) for text in texts]
    depths = [1] * len(texts)
    while True:
        names = ["/".join(one[-depth:]) for one, depth in zip(parts, depths, strict=True)]
        counts = Counter(names)
        shared = [i for i, name in enumerate(names) if counts[name] > 1]
        longer = [i for i in shared if depths[i] < len(parts[i])]
        for i in longer:
            depths[i] += 1
        if not longer:
            return [redacted(texts[i]) if i in shared else name for i, name in enumerate(names)]


def _parts(text: str) -> list[str]:
    """Return the folders and the name of an input, without its suffix and its wildcards."""
    from rankmill.sources.files.formats import without_suffix

    paths = [text] if os.path.exists(text) else text.split(",")
    if is_url(paths[0]):
        parts = [part for part in shown(paths[0]).partition("://")[2].split("/") if part]
    else:
        parts = [part for part in Path(os.path.abspath(paths[0])).parts if part != os.sep]
    while len(parts) > 1 and glob.has_magic(parts[-1]) and not os.path.exists(text):
        parts.pop()
    if not parts:
        return [text]
    parts[-1] = without_suffix(parts[-1])
    if len(paths) > 1:
        parts[-1] += f"+{len(paths) - 1}"
    return parts


# ------------------------------------------------------------------ runs of a history

_CHOICES = re.compile(
    r"((?P<last>last) | median:(?P<median>[1-9]\d{0,6}) | ago:(?P<ago>[1-9]\d{0,5}d)"
    r"| tag:(?P<tag>[^=]+=.*?)) (?P<none>\ or\ none)? | (?P<run>\d{8}T\d{12}Z-[0-9a-f]{16})",
    re.VERBOSE | re.DOTALL,
)
EXPECTED = (
    "last, the median of the last runs as median:7, a run some days back as ago:28d, the "
    "newest run of a tag as tag:release=v7, each with ' or none' for the first night, or the id of "
    "a run"
)


class Choice(NamedTuple):
    """How a run of a history is chosen: its kind, and what stands behind the colon."""

    kind: str
    value: str
    optional: bool = False  # on the first night there is none

    @property
    def pinned(self) -> bool:
        """Whether the user named the run, so that it serves whatever its verdict."""
        return self.kind in ("tag", "run")


def is_choice(text: str) -> bool:
    """Return whether a text says how to choose a run of a history.

    Examples
    --------
    >>> is_choice("last or none"), is_choice("old.parquet")
    (True, False)
    """
    return bool(_CHOICES.fullmatch(text) or re.match("best$|(median|ago|tag):", text))


def read_choice(text: str) -> Choice:
    """Take apart how a run is chosen; UsageError if a history has no such run.

    Examples
    --------
    >>> read_choice("median:7"), read_choice("tag:release=v7").value
    (Choice(kind='median', value='7', optional=False), 'release=v7')
    >>> read_choice("tag:release=v7 or none")
    Choice(kind='tag', value='release=v7', optional=True)
    """
    found = _CHOICES.fullmatch(text)
    if found is None:
        told = f"a history has no baseline {text!r}; expected {EXPECTED}"
        raise UsageError(GONE.get(text, told))
    known = found.groupdict()
    optional = known.pop("none") is not None
    kind, value = next((kind, one) for kind, one in known.items() if one is not None)
    return Choice(kind, value, optional)


# ------------------------------------------------------------------ arguments of a function

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


def field_text(option: str, function: Callable[..., Any] | None = None) -> str:
    """Return how to give a flat option to a function, as an error ends; "" if nothing is near.

    Examples
    --------
    >>> field_text("query"), field_text("preset"), field_text("nope")
    (': use Labels(data, query=...) or Predictions(data, query=...)', ': use semantics=...', '')
    """
    if option == "preset":
        return ": use semantics=..."
    if option in CUTOFFS:
        return ": write it behind a metric, as in 'map@10'"
    places = (one.partition(".") for one in PARAMETERS.get(option, ()))
    data = {"Labels": "data, ", "Predictions": "data, "}
    uses = (f"{noun}({data.get(noun, '')}{field}=...)" for noun, _, field in places)
    taken = [] if function is None else [*inspect.signature(function).parameters]
    own = [f"{one}=..." for one in taken if one.startswith(f"{option}_")]
    near = [f"{one}=..." for one in get_close_matches(option, taken, 1)]
    text = " or ".join([*own, *uses] or near)
    return f": use {text}" if text else ""


def options_taken(function: Callable[..., Any]) -> set[str]:
    """Return the flat options that a function has a place for."""
    wanted = inspect.signature(function).parameters
    nouns = _nouns_of(wanted)
    return {*wanted, *(name for name, fields in PARAMETERS.items() if _taken(fields, nouns))}


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
