"""Which columns the ids of a role are compared by, and whether those of two inputs can be equal."""

from collections.abc import Sequence

from rankmill.errors import UsageError
from rankmill.sources.roles.columns import Columns
from rankmill.sources.roles.source import Source


def id_columns(source: Source, columns: Columns, role: str) -> tuple[str, ...]:
    """The columns whose values must agree for ids to be equal: of a tuple, all its parts."""
    if role == "query" and source.key is not None and not source.key.texts:
        return source.key.parts
    name = getattr(columns, role)
    return (name,) if name else ()


def check_keys(labels: tuple[Source, Columns], predictions: tuple[Source, Columns]) -> None:
    """Raise UsageError if query ids are made of columns in ways that cannot be compared."""
    queries = labels[1].query and predictions[1].query  # the items of a catalogue have none
    several = labels[0].key is not None or predictions[0].key is not None
    if queries and several and labels[0] is not predictions[0]:
        _check_keys((labels[0], predictions[0]))


def _check_keys(sides: Sequence[Source]) -> None:
    """Raise UsageError if query ids are made in ways that no two can be equal, or be told apart."""
    keys = [one.key for one in sides]
    sizes = [len(key.parts) if key and not key.texts else 0 for key in keys]
    both = all(key and key.texts and len(key.parts) > 1 for key in keys)
    if sizes[0] == sizes[1] and not both:
        if sizes[0]:
            labels, others = (key.parts for key in keys if key)
            check_order(labels, others, sides[1].name)
        return
    parts = next(key.parts for key in keys if key)
    made = [", ".join(one.key.parts) if one.key else "one column" for one in sides]
    template = "_".join(f"{{{part}}}" for part in parts)
    raise UsageError(
        f"the query ids cannot be compared: those of {sides[0].name} consist of {made[0]}, those "
        f"of {sides[1].name} of {made[1]}: if both have the columns, use --query {','.join(parts)} "
        f"on the command line, query={[*parts]} of both in Python; if one side has a column with "
        "their joined text, name it, and give the other a template for it, as --query or "
        f"--label-query {template!r} on the command line, query={template!r} in Python"
    )


def check_order(labels: Sequence[str], others: Sequence[str], name: str) -> None:
    """Raise UsageError if two keys are made of the same columns in another order."""
    if [*labels] != [*others] and sorted(labels) == sorted(others):
        raise UsageError(
            f"the query ids of the labels consist of {', '.join(labels)}, those of {name} of "
            f"{', '.join(others)}: name the columns in the same order, as the first is compared "
            "with the first"
        )
