"""A TOML document: its values with the texts filled in, and errors that name file and key."""

from __future__ import annotations

import datetime
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from rankmill.config.placeholders import fill
from rankmill.errors import UsageError
from rankmill.io.stores.read_paths import opened

Place = tuple[str | int, ...]
"""The keys that lead to a value; the elements of an array have their number, from 0."""

# Texts in which braces hold the names of columns.
TEMPLATES = {("columns", "query"), ("columns", "label_query")}
_AT = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


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
    """Read a file and fill in its texts.

    Raises
    ------
    UsageError
        If the file cannot be read, is no TOML, or a text cannot be filled in.
    """
    name = os.fspath(path)
    text = _text(name)
    try:
        document = Document(name, tomllib.loads(text))
        return Document(name, _filled(document, (), document.values, date, environment))
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


def _filled(
    document: Document,
    place: Place,
    value: Any,
    date: datetime.date,
    environment: Mapping[str, str],
) -> Any:
    if isinstance(value, dict):
        return {
            key: _filled(document, (*place, key), one, date, environment)
            for key, one in value.items()
        }
    if isinstance(value, list):
        return [
            _filled(document, (*place, number), one, date, environment)
            for number, one in enumerate(value)
        ]
    if not isinstance(value, str):
        return value
    if place in TEMPLATES and "${" not in value:
        return value
    try:
        return fill(value, date, environment)
    except UsageError as error:
        document.fail(place, str(error))
