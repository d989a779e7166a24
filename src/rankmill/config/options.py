"""The table of options, by the groups that helps show, and what is looked up in it."""

from functools import cache

from rankmill.config.option import Option
from rankmill.config.table_of_comparisons import COMPARISON, RULES
from rankmill.config.table_of_inputs import COUNTING, INPUTS, METRICS
from rankmill.config.table_of_outputs import OUTPUT, RESOURCES

OPTIONS: dict[str, tuple[Option, ...]] = {
    "Inputs": INPUTS,
    "Metrics": METRICS,
    "Rules": RULES,
    "Counting": COUNTING,
    "Comparison": COMPARISON,
    "Output": OUTPUT,
    "Resources": RESOURCES,
}
"""Group -> its rows. The first row of a name is what a rankmill.toml means by it."""


def options_of(command: str) -> dict[str, list[Option]]:
    """Return the options of a command, by group; those of "spark compare" have both words."""
    whole, _, part = command.partition(" ")
    wanted = {whole, part or "evaluate"} if whole == "spark" else {whole}

    def takes(one: Option) -> bool:
        on = {*one.on.split()}
        return wanted <= on or on == {whole}

    found = {group: [one for one in rows if takes(one)] for group, rows in OPTIONS.items()}
    return {group: rows for group, rows in found.items() if rows}


@cache
def keys() -> dict[str, Option]:
    """Return name -> option of what may stand in a rankmill.toml, but for the semantics."""
    found: dict[str, Option] = {}
    for rows in OPTIONS.values():
        for one in rows:
            if one.table in ("", "columns"):
                found.setdefault(one.name, one)
    return found
