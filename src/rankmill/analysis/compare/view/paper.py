"""A comparison as a paper prints it: a row a system, a column a metric, marks and a note."""

from collections.abc import Iterator, Sequence

from rankmill.analysis.compare.differences.differences import (
    BETTER,
    EQUAL,
    HIGHER,
    LOWER,
    WORSE,
    Settings,
    Slice,
    SystemPair,
    beaten_of,
    winner_of,
)
from rankmill.analysis.compare.differences.slice_tables import slice_text
from rankmill.analysis.statistics.significance import TUKEY
from rankmill.errors import plural
from rankmill.metrics.registry import sides_of
from rankmill.show.leaderboard import leaderboard
from rankmill.show.tables import Best, Cell, Column, Marked, Part, Table

TITLES = {
    "t": "a paired t-test",
    "randomization": "a paired randomization test",
    "bootstrap": "a paired bootstrap test",
    "bca": "a paired bootstrap test (BCa)",
    "wilcoxon": "a Wilcoxon signed-rank test",
    "sign": "a sign test",
    TUKEY: "a randomized Tukey HSD test",
}
"""What tests are called in prose."""

CORRECTIONS = {"holm": "Holm", "bonferroni": "Bonferroni", "bh": "Benjamini and Hochberg"}
"""Whose correction it is."""

MARKS = {BETTER: "↑", WORSE: "↓", EQUAL: "≈", HIGHER: "+", LOWER: "-"}
_MEANING = {
    **{"↑": "shown to be better", "↓": "shown to be worse", "≈": "equal within the margin"},
    **{"+": "shown to be higher", "-": "shown to be lower"},
}


def paper_parts(
    baseline: str,
    whole: Slice,
    slices: Sequence[Slice],
    settings: Settings,
    notes: Sequence[str],
    pairs: Sequence[SystemPair] = (),
) -> list[Part]:
    """Return the table of all queries with its note, and a table for each way to cut them."""
    if pairs:
        parts = [*board_parts(whole, slices, settings, pairs), *notes]
    else:
        columns = [Column("system"), *_metric_columns(whole)]
        table = Table(columns, [[name, *cells] for name, *cells in _rows(baseline, whole)])
        note = _note(f"Compared with {baseline}", whole, slices, settings)
        parts = [table, " ".join([note, *_legend(table)]), *notes]
    for by in dict.fromkeys(one.by for one in slices):
        parts += _slice_parts(baseline, [one for one in slices if one.by == by])
    if slices:
        parts.append(
            "p is corrected over all queries and all slices, metrics and systems together."
        )
    return parts


def board_parts(
    whole: Slice, slices: Sequence[Slice], settings: Settings, pairs: Sequence[SystemPair]
) -> list[Part]:
    """Return the table of all queries with the letters of the pairs that differ, and its note."""
    values = {
        metric: {name: one.value for name, one in of.items()} for metric, of in whole.values.items()
    }
    sides = sides_of(values)
    table = leaderboard(values, sides, beaten_of(pairs, values))
    note = _note("All pairs compared", whole, slices, settings, pairs)
    note += " The letters after a value name the systems that it is significantly better than"
    note += ", or higher than where neither side is better" * ("neither" in sides.values())
    return [table, f"{note}{'; the best value is marked' if table.marked else ''}."]


def tests_of(whole: Slice, slices: Sequence[Slice], pairs: Sequence[SystemPair]) -> int:
    """Return how many differences were tested, of all queries and in slices."""
    first = sum(bool(one.difference.tests) for one in pairs) if pairs else whole.tests_run
    return first + sum(one.tests_run for one in slices)


def _note(
    what: str,
    whole: Slice,
    slices: Sequence[Slice],
    settings: Settings,
    pairs: Sequence[SystemPair] = (),
) -> str:
    told = _how_tested(what, settings, tests_of(whole, slices, pairs))
    return f"Means over {plural(whole.queries, 'query')}. {told}"


def _slice_parts(baseline: str, of_way: Sequence[Slice]) -> Iterator[Part]:
    by = of_way[0].by
    columns = [Column(", ".join(by)), Column("queries", "count"), Column("system")]
    rows: list[list[Cell]] = []
    for one in of_way:
        told: list[Cell] = [slice_text(one).removeprefix(f"{by[0]} = "), one.queries]
        for cells in _rows(baseline, one):
            rows.append([*told, *cells])
            told = [None, None]
    table = Table([*columns, *_metric_columns(of_way[0])], rows)
    yield table
    yield from _legend(table)


def _metric_columns(one: Slice) -> list[Column]:
    return [Column(metric, "short") for metric in one.values]


def _rows(baseline: str, one: Slice) -> Iterator[list[Cell]]:
    """Yield the name of each system and its value in each metric."""
    winners = {metric: winner_of(baseline, of) for metric, of in one.differences.items()}
    for name in dict.fromkeys(name for of in one.values.values() for name in of):
        cells: list[Cell] = [name]
        for metric, of in one.values.items():
            difference = one.differences[metric].get(name)
            mark = "" if difference is None else MARKS.get(difference.verdict or "", "")
            value, kind = of[name].value, Best if name == winners[metric] else Marked
            cells.append(None if value is None else kind(value, mark))
        yield cells


def _legend(table: Table) -> Iterator[str]:
    """Yield what the marks of a table mean, those that it has."""
    shown = {cell.mark for row in table.rows for cell in row if isinstance(cell, Marked)}
    words = [f"{mark} {meaning}" for mark, meaning in _MEANING.items() if mark in shown]
    words += ["bold: shown to be better than every other system"] if table.marked else []
    if words:
        yield f"{'; '.join(words)}."


def _how_tested(what: str, settings: Settings, count: int) -> str:
    if not count:
        return "Nothing is tested."
    test = settings.tests[0]
    words = f"{what} by {TITLES[test]}"
    words += "" if settings.cluster is None else f" of clusters by {settings.cluster}"
    words += "" if settings.adjust is None else f" adjusted by {settings.adjust}"
    if settings.correction == "none":
        words += ", p not corrected"
    elif test == TUKEY:
        words += ", p corrected over systems by the test and over metrics by Bonferroni"
    else:
        words += f", p corrected by {CORRECTIONS[settings.correction]} over {count:,} tests"
    words += f", level {1 - settings.confidence:.6g}."
    if settings.margin is not None:
        words += f" The margin is {settings.margin:.6g}, by two one-sided t-tests."
    return words
