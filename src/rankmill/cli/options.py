"""Options that several commands have: the columns of both inputs, how to count, where to write."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import click

from rankmill.cli.inputs import parse_size
from rankmill.results.writers import FORMATS
from rankmill.semantics.choices import CHOICES, Semantics
from rankmill.semantics.presets import semantics_of

__all__ = ["column_options", "output_options", "resource_options", "semantics_options"]

_Command = TypeVar("_Command", bound=Callable[..., Any])

_COLUMNS = (
    click.option("--query", metavar="COLUMN", help="Column of query ids, in both inputs."),
    click.option("--item", metavar="COLUMN", help="Column of items, in both inputs."),
    click.option("--score", metavar="COLUMN", help="Column of confidences of the predictions."),
    click.option("--rank", metavar="COLUMN", help="Column of ranks of the predictions."),
    click.option(
        "--gain", metavar="COLUMN", help="Column of gains (graded relevance) of the labels."
    ),
    click.option("--label-query", metavar="COLUMN", help="As --query, where the labels differ."),
    click.option("--label-item", metavar="COLUMN", help="As --item, where the labels differ."),
    click.option(
        "--gain-function",
        type=click.Choice(("linear", "exp")),
        default="linear",
        show_default=True,
        help="Gain of a label g in ndcg and dcg: g, or 2^g - 1.",
    ),
)
_SEMANTICS = (
    click.option(
        "--preset",
        metavar="NAME",
        default="default",
        show_default=True,
        help="Count as another evaluator does, as trec_eval; see 'rankmill presets'.",
    ),
    click.option(
        "--semantics",
        "fields",
        metavar="FIELD=CHOICE",
        multiple=True,
        help="But for this, as repeated_predictions=drop; repeat for more. A wrong one lists all.",
    ),
)
_OUTPUT = (
    click.option(
        "--format",
        "format",
        type=click.Choice(FORMATS),
        metavar="FORMAT",
        help="table, json, csv or markdown; if not given, as the suffix of -o says, else table. In "
        "csv a text that begins with = + - @ or ' has a ' before it: it is no formula.",
    ),
    click.option("-o", "--output", metavar="FILE", help="Write the result to FILE instead."),
)
_RESOURCES = (
    click.option(
        "--memory",
        callback=parse_size,
        metavar="SIZE",
        default="1GiB",
        show_default=True,
        help="What confidences for gap, long rows whose queries are scattered, or labels of files "
        "sorted by query may take in memory, as 500MB or 2GB; beyond, the first are read twice, "
        "the second grouped on disk, the third held range by range.",
    ),
    click.option(
        "--threads",
        type=click.IntRange(min=1),
        metavar="N",
        help="Threads to use; default: all cores.",
    ),
)


def column_options(command: _Command) -> _Command:
    """Add the options that say which column means what."""
    return _with(_COLUMNS, command)


def semantics_options(command: _Command) -> _Command:
    """Add the options that say how to count; the command gets `semantics`."""

    @wraps(command)
    def combined(preset: str, fields: tuple[str, ...], **others: Any) -> Any:
        return command(semantics=_semantics(preset, fields), **others)

    return _with(_SEMANTICS, cast(_Command, combined))


def _semantics(preset: str, fields: tuple[str, ...]) -> Semantics:
    pairs = [text.partition("=") for text in fields]
    for field, equals, _ in pairs:
        if not equals or field not in CHOICES:
            raise click.BadParameter(
                f"{field + equals!r} is no FIELD=CHOICE with a field of {', '.join(CHOICES)}",
                param_hint="--semantics",
            )
    return semantics_of({"preset": preset} | {field: choice for field, _, choice in pairs})


def output_options(command: _Command) -> _Command:
    """Add the options that say what to write, and where."""
    return _with(_OUTPUT, command)


def resource_options(command: _Command) -> _Command:
    """Add the options that say how much memory and how many threads to use."""
    return _with(_RESOURCES, command)


def _with(options: tuple[Callable[[_Command], _Command], ...], command: _Command) -> _Command:
    for option in reversed(options):  # help shows them in the order of the code
        command = option(command)
    return command
