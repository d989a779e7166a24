"""What is filled into the texts of rankmill.toml: the date, and variables of the environment."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from contextlib import suppress

from rankmill.errors import UsageError

_DATE = re.compile(r"(?<!\d)20\d\d(?:-\d\d-\d\d|\d{4})(?!\d)")
_HOLE = re.compile(
    r"\{date(?::(?P<form>[^{}]*))?\}"
    r"|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<default>:-(?:[^{}]|\{[^{}]*\})*)?\}"
    r"|(?P<wrong>\$\{)"
    r"|(?P<unknown>\{[A-Za-z_]\w*(?::[^{}]*)?\})"
)


def fill(text: str, date: datetime.date, environment: Mapping[str, str]) -> str:
    """Fill ``{date}``, ``{date:%Y%m%d}``, ``${NAME}`` and ``${NAME:-other}`` into a text.

    What is filled in is not looked at again. As in a shell, the text after ``:-`` is taken if the
    variable is not set or empty.

    Raises
    ------
    UsageError
        If a variable is not set or not written as above, or another name stands in braces.

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


def parse_date(text: str | None) -> datetime.date:
    """Return the date of a text, or today in UTC.

    Examples
    --------
    >>> parse_date("2024-05-01")
    datetime.date(2024, 5, 1)
    """
    if text is None:
        return datetime.datetime.now(datetime.UTC).date()
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"date is {text!r}; expected one such as 2024-05-01") from None
