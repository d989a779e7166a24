"""A TOML document: its values with the texts filled in, and errors that name file and key."""

import datetime
import difflib
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, NoReturn

from rankmill.config.option import FILE, Option
from rankmill.config.options import OPTIONS, keys
from rankmill.errors import UsageError
from rankmill.io.stores.urls import opened
from rankmill.package import GONE
from rankmill.semantics.choices import CHOICES
from rankmill.semantics.presets import preset

_DATE = re.compile(r"(?<!\d)20\d\d(?:-\d\d-\d\d|\d{4})(?!\d)")
_HOLE = re.compile(
    r"\{date(?::(?P<form>[^{}]*))?\}"
    r"|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<default>:-(?:[^{}]|\{[^{}]*\})*)?\}"
    r"|(?P<wrong>\$\{)"
    r"|(?P<unknown>\{[A-Za-z_]\w*(?::[^{}]*)?\})"
)

Place = tuple[str | int, ...]
"""The keys that lead to a value; the elements of an array have their number, from 0."""
# Texts in which braces hold the names of columns.
TEMPLATES = {("columns", "query"), ("columns", "label_query")}
_AT = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


def fill(text: str, date: datetime.date, environment: Mapping[str, str]) -> str:
    """Fill ``{date}``, ``{date:%Y%m%d}``, ``${NAME}`` and ``${NAME:-other}`` into a text.

    What is filled in is not looked at again. As in a shell, the text after ``:-`` is taken if the
    variable is not set or empty. All else in braces is a UsageError.

    Examples
    --------
    >>> day = datetime.date(2024, 5, 1)
    >>> fill("${RUNS}/{date:%Y%m%d}/${MODEL:-base}.parquet", day, {"RUNS": "s3://runs"})
    's3://runs/20240501/base.parquet'
    """

    def value(found: re.Match[str]) -> str:
        if found["wrong"]:
            raise UsageError(f"'${{' begins no ${{NAME}} or ${{NAME:-default}} in {text!r}")
        if found["unknown"]:
            raise UsageError(f"{found['unknown']} is unknown in {text!r}; expected {{date}}")
        name = found["name"]
        if name is None:
            return _shown(date, found["form"])
        if environment.get(name):
            return environment[name]
        if found["default"] is not None:
            return fill(found["default"][2:], date, environment)
        state = "empty" if name in environment else "not set"
        raise UsageError(
            f"the environment variable {name} is {state}; set it, or write ${{{name}:-default}}"
        )

    return _HOLE.sub(value, text)


def is_filled(text: str) -> bool:
    """Whether something would be filled into a text.

    Examples
    --------
    >>> is_filled("run-{date}.parquet"), is_filled("run-{1}.parquet")
    (True, False)
    """
    return _HOLE.search(text) is not None


def dates_in(text: str) -> list[datetime.date]:
    """Return the dates that a name holds, as 2024-05-01 or 20240501.

    Examples
    --------
    >>> dates_in("runs/2024-05-01/new-20240502.parquet"), dates_in("run-20249999-1.parquet")
    ([datetime.date(2024, 5, 1), datetime.date(2024, 5, 2)], [])
    """
    found = []
    for one in _DATE.finditer(text):
        with suppress(ValueError):  # digits that are no date
            found.append(datetime.date.fromisoformat(one[0]))
    return found


def with_holes(text: str, date: datetime.date) -> str:
    """Return a name with ``{date}`` in the place of a date, so that `fill` gives the name.

    Examples
    --------
    >>> with_holes("2024-05-01/new-20240501.parquet", datetime.date(2024, 5, 1))
    '{date}/new-{date:%Y%m%d}.parquet'
    """

    def hole(found: re.Match[str]) -> str:
        if dates_in(found[0]) != [date]:
            return found[0]
        return "{date}" if "-" in found[0] else "{date:%Y%m%d}"

    return _DATE.sub(hole, text)


def _shown(date: datetime.date, form: str | None) -> str:
    if form is None:
        return date.isoformat()
    try:
        return date.strftime(form)
    except ValueError as error:
        raise UsageError(f"{form!r} is not a date format such as %Y%m%d: {error}") from None


def parse_date(text: str | None, today: datetime.date | None = None) -> datetime.date:
    """Return the date of a text, which may be "today" or "yesterday" in UTC; None is today.

    Examples
    --------
    >>> parse_date("2024-05-01")
    datetime.date(2024, 5, 1)
    >>> parse_date("yesterday", datetime.date(2024, 5, 1))
    datetime.date(2024, 4, 30)
    """
    today = today or datetime.datetime.now(datetime.UTC).date()
    if text is None or text == "today":
        return today
    if text == "yesterday":
        return today - datetime.timedelta(days=1)
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"the date is {text!r}; expected one such as 2024-05-01, or today or yesterday in UTC"
        ) from None


@dataclass(frozen=True)
class Document:
    """The values of a TOML file."""

    path: str
    values: dict[str, Any]

    def fail(self, place: Place, reason: str) -> NoReturn:
        """Raise UsageError for a value."""
        raise UsageError(f"{self.path}, {key_text(place)}: {reason}")


def key_text(place: Place) -> str:
    """Return a place as it is read: ``systems.new``, ``rules[2]`` (from 1).

    Examples
    --------
    >>> key_text(("systems", "new")), key_text(("rules", 1))
    ('systems.new', 'rules[2]')
    """
    text = "".join(f"[{one + 1}]" if isinstance(one, int) else f".{one}" for one in place)
    return text.removeprefix(".")


def read_document(
    path: str | os.PathLike[str], date: datetime.date, environment: Mapping[str, str]
) -> Document:
    """Read a file and fill in its texts; UsageError if that is not possible."""
    name = os.fspath(path)
    text = _text(name)
    try:
        document = Document(name, tomllib.loads(text))
        values = _filled(document, (), document.values, lambda one: fill(one, date, environment))
        return Document(name, values)
    except RecursionError:
        raise UsageError(
            f"{name}: its arrays or tables are nested too deep; expected tables of options"
        ) from None
    except UsageError:
        raise
    except ValueError as error:  # tomllib's own, and Python's for an integer of too many digits
        reason = str(error)
        found = _AT.search(reason)
        last = text.count("\n") + (not text.endswith("\n"))
        line = "" if found is None else f", line {found[1] or last}"
        raise UsageError(f"{name}{line}: not valid TOML: {_AT.sub('', reason)}") from None


def _text(path: str) -> str:
    opened(path)
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror or error}; 'rankmill init' writes such a file"
        ) from None
    except ValueError as error:  # a null character in the name
        raise UsageError(f"cannot read {path!r}: {error}") from None
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}, line {line}: not UTF-8; save the file as UTF-8") from None


def _filled(document: Document, place: Place, value: Any, work: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(document, (*place, key), one, work) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(document, (*place, n), one, work) for n, one in enumerate(value)]
    if not isinstance(value, str) or (place in TEMPLATES and "${" not in value):
        return value
    try:
        return work(value)
    except UsageError as error:
        document.fail(place, str(error))


# ------------------------------------------------------------------ the check of its keys

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
            document.fail((name,), f"{_what(value)}; expected a table: [{name}]")
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
        document.fail(("version",), f"{_what(version)}; expected {VERSION}")
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
                document.fail((*place, one), f"{_what(value[one])}; expected a text")
        return {place: [f"{one}={text}" for one, text in value.items()]}
    if key.kind in ("texts", "pairs", "input"):
        texts = _texts(document, place, value, key)
        return {place: value if key.kind == "input" else texts}
    types: Any = {"integer": int, "number": (int, float), "flag": bool}.get(key.kind, str)
    if not isinstance(value, types) or isinstance(value, bool) != (key.kind == "flag"):
        document.fail(place, f"{_what(value)}; expected {_EXPECTED[key.kind]}")
    if key.choices and value not in key.choices and not (key.pairs and "=" in value):
        only = f"{', '.join(key.choices)}{nearest(value, key.choices)}"
        told = f"it is {value!r}; expected one of {only}"
        document.fail(place, GONE.get(f"{place[-1]} {value}", told))
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
        document.fail(place, f"{_what(texts)}; expected {_EXPECTED[key.kind]}")
    if is_input and not texts:
        document.fail(place, "the list is empty; expected a path")
    for number, one in enumerate(texts):
        inner = (*place, number) if texts is value else place
        if not isinstance(one, str):
            expected = _EXPECTED["input"] if is_input else "a text"
            document.fail(inner, f"{_what(one)}; expected {expected}")
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


def _what(value: Any) -> str:
    """Return what a value is, in a few words."""
    if isinstance(value, bool):
        return f"it is {str(value).lower()}"
    if isinstance(value, str):
        return f"it is the text {value!r}"
    if isinstance(value, int | float):
        return f"it is the number {value}"
    return f"it is {_KINDS.get(type(value), f'{value}, a date or time')}"
