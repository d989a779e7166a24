"""Rows of the table of options as click has options: what a value may be, and what it becomes."""

import re
from typing import Any

import click

from rankmill.config.given_inputs import source_of
from rankmill.config.option import Option
from rankmill.package import GONE

__all__ = ["click_option", "parse_size"]

MOST_DIGITS = 30  # the most digits in a size, which is far more than any memory needs
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_UNITS |= {f"{unit}IB": size for unit, size in _UNITS.items() if unit}
_UNITS |= {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


class KnownChoice(click.Choice[str]):
    """One of some texts; of one that is gone, it says what to use instead."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text as the option writes it."""
        gone = GONE.get(f"{param.name} {value}") if param else None
        if gone:
            self.fail(gone, param, ctx)
        return super().convert(value, param, ctx)


class ChoiceOrPairs(KnownChoice):
    """One of some texts, or pairs such as "1=3,2=7", which are checked later."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text as it is if it holds pairs."""
        return str(value) if "=" in str(value) else super().convert(value, param, ctx)


def click_option(one: Option, **more: Any) -> click.Option:
    """Return a row of the table as click has options; `more` is of click."""
    more |= _KINDS.get(one.kind, {})
    if one.choices:
        more |= {"type": (ChoiceOrPairs if one.pairs else KnownChoice)(one.choices, False)}
    elif one.kind == "integer":
        more |= {"type": click.IntRange(one.least, one.most)}
    elif one.kind == "number":
        bounded = one.least is not None or one.most is not None
        more |= {"type": click.FloatRange(one.least, one.most) if bounded else float}
    if one.kind != "flag":
        more |= {"metavar": one.metavar}
    if one.bare is not None:
        more |= {"flag_value": one.bare, "is_flag": one.kind == "flag"}
    if one.default is not None:
        more |= {"default": one.default, "show_default": True}
    if one.required:
        more |= {"required": True}
    return click.Option([*one.flags, one.name], help=one.help, **more)


def parse_size(context: click.Context, parameter: click.Parameter, text: str) -> int:
    """Return a size as a number of bytes: 500MB is 500,000,000; 2GiB and 2G are 2 * 2**30."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) *([A-Za-z]*)", text.strip())
    unit = _UNITS.get(found[2].upper()) if found else None
    size = 0
    if found and unit and len(found[1]) <= MOST_DIGITS:
        size = int(found[1]) * unit if found[1].isdecimal() else int(float(found[1]) * unit)
    if size < 1:
        shown = text if len(text) <= MOST_DIGITS else f"{text[:MOST_DIGITS]}..."
        raise click.BadParameter(
            f"{shown!r} is not a size in bytes; expected one such as 500MB, 2GB or 1GiB"
        )
    return size


def _source(_: click.Context, one: click.Parameter, text: str | None) -> str | list[str] | None:
    return text if text is None else source_of(text, f"--{one.name}")


_KINDS: dict[str, dict[str, Any]] = {
    "flag": {"is_flag": True},
    "texts": {"multiple": True},
    "pairs": {"multiple": True},
    "input": {"callback": _source},
    "size": {"callback": parse_size},
}
