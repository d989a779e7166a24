"""The keys of rankmill.toml, and the check of a document against them."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from rankmill.config.document import Document, Place
from rankmill.config.option import FILE, Option
from rankmill.config.options import OPTIONS, keys
from rankmill.errors import UsageError
from rankmill.package import GONE
from rankmill.semantics.choices import CHOICES
from rankmill.semantics.presets import preset

VERSION = 1
"""The version of the file that is written and read; without the key it is 1."""

_EXPECTED = {
    "text": "a text between quotation marks",
    "texts": "a text, or a list of texts",
    "pairs": "a table of texts, or a list of texts such as 'name=value'",
    "integer": "an integer",
    "number": "a number",
    "flag": "true or false",
    "input": "a path between quotation marks, or a list of paths",
    "table": "a table",
}
INPUTS = ("labels", "predictions", "systems", "baseline")
COLUMNS, SEMANTICS = "columns", "semantics"


def check_keys(document: Document) -> dict[str, Any]:
    """Check names and types of all keys of a document; return name -> value of the options."""
    _check_version(document)
    tables: dict[str, dict[str, Option]] = {"": {}, COLUMNS: {}}
    for key in keys().values():
        tables[key.table or ""][key.name] = key
    top = [*INPUTS, *tables[""], COLUMNS, SEMANTICS, "version"]
    elsewhere = dict.fromkeys(tables[COLUMNS], COLUMNS)
    elsewhere |= dict.fromkeys(("preset", *CHOICES), SEMANTICS)
    of_one_run = {
        one.name: one
        for rows in OPTIONS.values()
        for one in rows
        if one.table is None and {*one.on.split()} & {*FILE.split()}
    }
    found: dict[str, Any] = {}
    for name, value in document.values.items():
        if name not in top and name in of_one_run:
            flag = of_one_run[name].flags[-1]
            document.fail((name,), f"it belongs to one run; expected {flag} on the command line")
        if name not in top:
            _unknown(document, (name,), top, elsewhere)
        if name in tables[""]:
            found[name] = _checked(document, (name,), value, tables[""][name])
    for name, value in _table(document, COLUMNS).items():
        if name not in tables[COLUMNS]:
            _unknown(document, (COLUMNS, name), tables[COLUMNS], dict.fromkeys(top, ""))
        found[name] = _checked(document, (COLUMNS, name), value, tables[COLUMNS][name])
    return found | _semantics(document)


def _check_version(document: Document) -> None:
    version = document.values.get("version", VERSION)
    if type(version) is not int or version < 1:
        document.fail(("version",), f"{_shown(version)}; expected {VERSION}")
    if version > VERSION:
        document.fail(
            ("version",),
            f"it is {version}, and this rankmill reads {VERSION}; expected a file written for it: "
            "install a newer rankmill, or write the file again by 'rankmill init'",
        )


def _semantics(document: Document) -> dict[str, Any]:
    """Return the preset and the fields as the options take them."""
    found: dict[str, Any] = {}
    fields = []
    for name, value in _table(document, SEMANTICS).items():
        place: Place = (SEMANTICS, name)
        if name not in ("preset", *CHOICES):
            _unknown(document, place, ["preset", *CHOICES], {})
        known = () if name == "preset" else tuple(CHOICES[name])
        _checked(document, place, value, Option(f"--{name} CHOICE", "", choices=known))
        if name == "preset":
            try:
                preset(value)
            except UsageError as error:
                document.fail(place, str(error))
            found["preset"] = value
        else:
            fields.append(f"{name}={value}")
    return found | ({"fields": fields} if fields else {})


def _table(document: Document, name: str) -> Mapping[str, Any]:
    value = document.values.get(name, {})
    if not isinstance(value, dict):
        document.fail((name,), f"{_shown(value)}; expected {_EXPECTED['table']}: [{name}]")
    return value


def check_input(document: Document, place: Place, value: Any) -> str | list[str]:
    """Return a path, or a list of paths, that a document has at a place."""
    paths = value if isinstance(value, list) else [value]
    for number, path in enumerate(paths):
        inner = (*place, number) if isinstance(value, list) else place
        if not isinstance(path, str):
            document.fail(inner, f"{_shown(path)}; expected {_EXPECTED['input']}")
        if not path:
            document.fail(inner, "the text is empty; expected a path")
    if not paths:
        document.fail(place, "the list is empty; expected a path")
    return paths if isinstance(value, list) else str(value)


def check_systems(document: Document) -> dict[str, str | list[str]]:
    """Return name -> path or paths of the table of systems."""
    found = {}
    for name, value in _table(document, "systems").items():
        if not name:
            document.fail(("systems", name), "the name of a system is empty")
        found[name] = check_input(document, ("systems", name), value)
    if not found:
        document.fail(("systems",), "the table is empty; expected lines such as new = 'p.parquet'")
    return found


def _checked(document: Document, place: Place, value: Any, key: Option) -> Any:
    """Return a value of the type that its key has; lists for "texts" and "pairs"."""
    if key.kind == "input":
        return check_input(document, place, value)
    if key.kind == "texts" and isinstance(value, str):
        value = [value]
    if key.kind == "pairs" and isinstance(value, dict):
        for name, one in value.items():
            if isinstance(one, bool) or not isinstance(one, str | int):
                document.fail((*place, name), f"{_shown(one)}; expected a text")
        return [f"{name}={one}" for name, one in value.items()]
    if key.kind in ("texts", "pairs"):
        if not isinstance(value, list):
            document.fail(place, f"{_shown(value)}; expected {_EXPECTED[key.kind]}")
        for number, one in enumerate(value):
            if not isinstance(one, str):
                document.fail((*place, number), f"{_shown(one)}; expected a text")
        return value
    types: Any = {"integer": int, "number": (int, float), "flag": bool}.get(key.kind, str)
    truth = isinstance(value, bool)
    if not isinstance(value, types) or truth != (key.kind == "flag"):
        document.fail(place, f"{_shown(value)}; expected {_EXPECTED[key.kind]}")
    if key.choices and value not in key.choices and not (key.pairs and "=" in value):
        only = ", ".join(key.choices)
        told = f"it is {value!r}; expected one of {only}{nearest(value, key.choices)}"
        document.fail(place, GONE.get(f"{place[-1]} {value}", told))
    return value


def _unknown(
    document: Document, place: Place, known: Iterable[str], elsewhere: Mapping[str, str]
) -> None:
    """Raise UsageError for an unknown key, with the one that may have been meant."""
    name = str(place[-1]).replace("-", "_").lower()
    gone = GONE.get(f"--{name.replace('_', '-')}")
    if gone:
        document.fail(place, gone)
    if name in elsewhere:
        table = elsewhere[name]
        document.fail(place, f"it is in the wrong place; expected it {_in(table)}")
    there = f"a known key {_in('' if len(place) == 1 else str(place[0]))}"
    meant = nearest(name, known)
    if not meant:
        there += f": {', '.join(known)}"
    document.fail(place, f"there is no such key; expected {there}{meant}")


def _in(table: str) -> str:
    return f"in the table [{table}]" if table else "at the top, above the first table"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a question whether the nearest of the known names was meant, or nothing."""
    near = difflib.get_close_matches(name, list(known), 1)
    return f" (did you mean {near[0]}?)" if near else ""


def joined(value: str | list[str]) -> str:
    """Return an input as the command line takes it: several paths between commas."""
    return value if isinstance(value, str) else ",".join(value)


def _shown(value: Any) -> str:
    """Return what a value is, in a few words."""
    if isinstance(value, dict):
        return "it is a table"
    if isinstance(value, list):
        return "it is a list"
    if isinstance(value, bool):
        return f"it is {str(value).lower()}"
    if isinstance(value, str):
        return f"it is the text {value!r}"
    if isinstance(value, int | float):
        return f"it is the number {value}"
    return f"it is {value}, a date or time"
