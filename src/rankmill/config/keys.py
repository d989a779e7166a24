"""The keys of rankmill.toml, and the check of a document against them."""

import difflib
from collections.abc import Mapping
from functools import cache
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
}
COLUMNS, SEMANTICS, SYSTEMS = "columns", "semantics", "systems"
INPUT = Option("--input INPUT", "", kind="input")
"""The row of labels, predictions and each system."""


@cache
def _tables() -> dict[str, dict[str, Option]]:
    """Table -> its keys and their rows; "" is the top, where the row of a table says nothing."""
    table = Option("--table", "")
    found: dict[str, dict[str, Option]] = {"": {}, COLUMNS: {}, SEMANTICS: {}}
    found[""] |= {"labels": INPUT, "predictions": INPUT, SYSTEMS: table, "baseline": INPUT}
    for one in keys().values():
        found[one.table or ""][one.name] = one
    found[""] |= dict.fromkeys((COLUMNS, SEMANTICS, "version"), table)
    found[SEMANTICS]["preset"] = Option("--preset NAME", "")
    for name, choices in CHOICES.items():
        found[SEMANTICS][name] = Option(f"--{name} CHOICE", "", choices=tuple(choices))
    return found


def check_keys(document: Document) -> dict[Place, Any]:
    """Check names and types of all keys of a document; return place -> value."""
    _check_version(document)
    if {"predictions", SYSTEMS} <= {*document.values}:
        document.fail((SYSTEMS,), "predictions are given as well; expected one of the two")
    tables, found = _tables(), dict[Place, Any]()
    for name, value in document.values.items():
        if name not in tables[""]:
            _unknown(document, (name,))
        if name not in (COLUMNS, SEMANTICS, SYSTEMS):
            found |= {} if name == "version" else _checked(document, (name,), value)
            continue
        if not isinstance(value, dict):
            document.fail((name,), f"{_shown(value)}; expected a table: [{name}]")
        for key, one in value.items():
            if name != SYSTEMS and key not in tables[name]:
                _unknown(document, (name, key))
            if not key:
                document.fail((name, key), "the name of a system is empty")
            found |= _checked(document, (name, key), one)
        if name == SYSTEMS and not value:
            document.fail((name,), "the table is empty; expected lines such as new = 'p.parquet'")
    return found


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


def _checked(document: Document, place: Place, value: Any) -> dict[Place, Any]:
    """Return the place of a key, and its value as the key has it: of "texts" and "pairs" a list."""
    *table, name = place
    key = INPUT if table == [SYSTEMS] else _tables()[str(*table)][str(name)]
    if key.kind == "pairs" and isinstance(value, dict):
        for one in value:
            if isinstance(value[one], bool) or not isinstance(value[one], str | int):
                document.fail((*place, one), f"{_shown(value[one])}; expected a text")
        return {place: [f"{one}={text}" for one, text in value.items()]}
    if key.kind in ("texts", "pairs", "input"):
        texts = _texts(document, place, value, key)
        return {place: value if key.kind == "input" else texts}
    types: Any = {"integer": int, "number": (int, float), "flag": bool}.get(key.kind, str)
    if not isinstance(value, types) or isinstance(value, bool) != (key.kind == "flag"):
        document.fail(place, f"{_shown(value)}; expected {_EXPECTED[key.kind]}")
    if key.choices and value not in key.choices and not (key.pairs and "=" in value):
        only = f"{', '.join(key.choices)}{nearest(value, key.choices)}"
        document.fail(place, f"it is {value!r}; expected one of {only}")
    if place == (SEMANTICS, "preset"):
        try:
            preset(value)
        except UsageError as error:
            document.fail(place, str(error))
    return {place: value}


def _texts(document: Document, place: Place, value: Any, key: Option) -> list[str]:
    """Return a list of texts, which may be one that is alone; those of an input are not empty."""
    is_input = key.kind == "input"
    texts = [value] if isinstance(value, str) and key.kind != "pairs" else value
    if not isinstance(texts, list):
        document.fail(place, f"{_shown(texts)}; expected {_EXPECTED[key.kind]}")
    if is_input and not texts:
        document.fail(place, "the list is empty; expected a path")
    for number, one in enumerate(texts):
        inner = (*place, number) if texts is value else place
        if not isinstance(one, str):
            expected = _EXPECTED["input"] if is_input else "a text"
            document.fail(inner, f"{_shown(one)}; expected {expected}")
        if is_input and not one:
            document.fail(inner, "the text is empty; expected a path")
    return texts


def _unknown(document: Document, place: Place) -> None:
    """Raise UsageError for an unknown key, with the one that may have been meant."""
    table, given = ("", *place)[-2:]
    name = str(given).replace("-", "_").lower()
    gone = GONE.get(f"--{name.replace('_', '-')}")
    if gone:
        document.fail(place, gone)
    for rows in () if table else OPTIONS.values():
        for one in rows:
            if one.name == given and one.table is None and {*one.on.split()} & {*FILE.split()}:
                flag = one.flags[-1]
                document.fail(place, f"it belongs to one run; expected {flag} on the command line")
    for other, known in _tables().items():
        if name in known and other != table:
            document.fail(place, f"it is in the wrong place; expected it {_in(other)}")
    known = _tables()[str(table)]
    meant = nearest(name, known)
    there = f"a known key {_in(str(table))}" + ("" if meant else f": {', '.join(known)}")
    document.fail(place, f"there is no such key; expected {there}{meant}")


def _in(table: str) -> str:
    return f"in the table [{table}]" if table else "at the top, above the first table"


def nearest(name: str, known: Any) -> str:
    """Return a question whether the nearest of the known names was meant, or nothing."""
    near = difflib.get_close_matches(name, list(known), 1)
    return f" (did you mean {near[0]}?)" if near else ""


def joined(value: str | list[str]) -> str:
    """Return an input as the command line takes it: several paths between commas."""
    return value if isinstance(value, str) else ",".join(value)


_KINDS: Mapping[type, str] = {dict: "a table", list: "a list"}


def _shown(value: Any) -> str:
    """Return what a value is, in a few words."""
    if isinstance(value, bool):
        return f"it is {str(value).lower()}"
    if isinstance(value, str):
        return f"it is the text {value!r}"
    if isinstance(value, int | float):
        return f"it is the number {value}"
    return f"it is {_KINDS.get(type(value), f'{value}, a date or time')}"
