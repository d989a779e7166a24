"""The table of a paper or a leaderboard: a row for each system, a column for each metric."""

from collections.abc import Collection, Mapping

from rankmill.show.tables import LETTERS, Best, Cell, Column, Marked, Table

Values = Mapping[str, Mapping[str, float | None]]
"""Metric -> system -> value."""
Beaten = Mapping[str, Mapping[str, Collection[str]]]
"""Metric -> system -> the systems that differ from it and have the value that is worse."""


def leaderboard(values: Values, sides: Mapping[str, str], beaten: Beaten | None = None) -> Table:
    """Return the systems, the best one of the first metric first, and the best values marked.

    `sides` says which side of a metric is better: "higher", "lower" or "neither". `beaten` has the
    systems whose letters stand behind a value.

    Examples
    --------
    >>> values = {"map": {"old": 0.25, "new": 0.5}}
    >>> table = leaderboard(values, {"map": "higher"}, {"map": {"new": ["old"], "old": []}})
    >>> table.texts()
    [['#', 'system', 'map'], ['a', 'new', '0.5000*ᵇ'], ['b', 'old', '0.2500']]
    """
    best_of = {"higher": max, "lower": min}
    first = next(iter(values))
    systems = list(values[first])
    if sides[first] in best_of:
        sign = 1 if sides[first] == "lower" else -1
        keys = {name: (one is None, sign * (one or 0.0)) for name, one in values[first].items()}
        systems.sort(key=keys.__getitem__)
    letters = dict(zip(systems, _letters(len(systems)), strict=True))
    between = "," if len(systems) > len(LETTERS) else ""

    def cell(metric: str, name: str) -> Cell:
        known = [one for one in values[metric].values() if one is not None]
        value, side = values[metric][name], sides[metric]
        if value is None:
            return None
        told = () if beaten is None else beaten[metric][name]
        mark = between.join(letters[one] for one in systems if one in told)
        best = side in best_of and len({*known}) > 1 and value == best_of[side](known)
        return (Best if best else Marked)(value, mark)

    columns = [
        Column("system"),
        *(Column(m, "short" if beaten is None else "lettered") for m in values),
    ]
    rows = [[name, *(cell(metric, name) for metric in values)] for name in systems]
    if beaten is None:
        return Table(columns, rows)
    named = zip(systems, rows, strict=True)
    return Table([Column("#"), *columns], [[letters[name], *row] for name, row in named])


def _letters(count: int) -> list[str]:
    """Return so many labels: a to z without q, and then two letters each."""
    if count <= len(LETTERS):
        return list(LETTERS[:count])
    size = len(LETTERS)
    return [(LETTERS[i // size - 1] if i >= size else "") + LETTERS[i % size] for i in range(count)]
