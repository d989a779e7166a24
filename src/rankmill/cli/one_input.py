"""Options of the commands that take inputs of one kind: convert, head and fuse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from rankmill.sources.formats import FORMATS

__all__ = ["input_options", "prediction_options"]

_Command = TypeVar("_Command", bound=Callable[..., Any])

# An option has all names under which messages of other commands advise it.
_ROLES = (
    click.option("--labels", "role", flag_value="labels", help="Read it as labels."),
    click.option(
        "--predictions",
        "role",
        flag_value="predictions",
        help="Read it as predictions. By default the columns tell: it is labels if it has gains, "
        "but neither ranks nor confidences.",
    ),
)
_PREDICTIONS = (
    click.option(
        "--as",
        "--labels-as",
        "--predictions-as",
        "told_format",
        type=click.Choice(tuple(FORMATS)),
        metavar="FORMAT",
        help=f"The format of the files, if they do not tell it: {', '.join(FORMATS)}.",
    ),
    click.option(
        "--columns",
        "--label-columns",
        "columns",
        metavar="NAMES",
        help="The names of columns without a header, as query,item.",
    ),
    click.option(
        "--encoding",
        "--label-encoding",
        "encoding",
        metavar="NAME",
        help="The encoding of text that is not UTF-8, as latin-1 or utf-16.",
    ),
    click.option(
        "--query",
        "--label-query",
        "query",
        metavar="COLUMN",
        help="The column of query ids; several as session,type or '{session}_{type}'.",
    ),
    click.option("--item", "--label-item", "item", metavar="COLUMN", help="The column of items."),
    click.option("--score", metavar="COLUMN", help="The column of confidences."),
    click.option("--rank", metavar="COLUMN", help="The column of ranks."),
    click.option(
        "--in-order",
        is_flag=True,
        help="The rows of long predictions are in rank order, whatever their confidences.",
    ),
    click.option(
        "--padding", metavar="ITEM", help="An item that is none, such as -1, which is dropped."
    ),
)
_LABELS = (
    click.option("--gain", metavar="COLUMN", help="The column of gains (graded relevance)."),
    click.option("--binary", is_flag=True, help="Labels are just relevant or not."),
)


def input_options(command: _Command) -> _Command:
    """Add the options that tell what an input is and which its columns are."""
    return _with((*_ROLES, *_PREDICTIONS, *_LABELS), command)


def prediction_options(command: _Command) -> _Command:
    """Add the options that tell how predictions are read."""
    return _with(_PREDICTIONS, command)


def _with(options: Sequence[Callable[[_Command], _Command]], command: _Command) -> _Command:
    for option in reversed(options):
        command = option(command)
    return command
