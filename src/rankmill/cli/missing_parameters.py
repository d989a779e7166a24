"""What to say of an argument or an option that a command needs and that was not given."""

from __future__ import annotations

import re
import shlex

import click

_MEANINGS = {
    "labels": "the correct items of each query",
    "predictions": "the ranked items of each query",
    "solution": "the solution, or the sample submission",
    "submission": "the file to check",
    "history": "the folder that a gate keeps its runs in",
    "source": "the file, folder or URL to read",
    "output": "the Parquet file to write",
    "runs": "the ranked lists to fuse",
    "states": "the files that 'rankmill evaluate --state' wrote",
}
"""What the argument of each name is; help texts have only its name."""


def missing(error: click.MissingParameter) -> str:
    """Return what is missing, what it is, and a command that has it."""
    context, first = error.ctx, error.param
    if context is None or first is None:
        return error.format_message()
    # Arguments are filled from the left: those after the first missing one are missing, too.
    later = context.command.params[context.command.params.index(first) :]
    all_of = [one for one in later if one.required and isinstance(one, click.Argument)]
    named = " and ".join(_named(one, context) for one in (all_of if first in all_of else [first]))
    typed = str(getattr(context.command, "example", ""))
    if isinstance(first, click.Option):
        words = [*(context.obj or ())]
        more = re.findall(r" ((-\S+) \S+)", typed)
        typed = " ".join(
            [f"rankmill {shlex.join(words)}", *(one for one, flag in more if flag not in words)]
        )
    if getattr(context.command, "takes_file", False):
        named += ", or a FILE.toml that names them"
    return f"missing {named}" + (f": type, for example, {typed}" if typed else "")


def _named(one: click.Parameter, context: click.Context) -> str:
    """Return the name of a parameter, and what it is."""
    if isinstance(one, click.Option):
        told = (one.help or "").split(". ")[0].rstrip(".")
        return f"{one.opts[0]} {one.metavar} ({told[:1].lower()}{told[1:]})"
    name = one.make_metavar(context).removesuffix("...").strip("[]")
    return f"{name} ({_MEANINGS[str(one.name)]})"
