"""Tables of a comparison beside that of each metric, and those that a paper prints."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from rankmill.analysis.compare.differences.differences import (
    BETTER,
    EQUAL,
    HIGHER,
    LOWER,
    NON_INFERIOR,
    WORSE,
    Difference,
    Estimate,
    Moved,
    Settings,
    Slice,
    SystemPair,
    beaten_of,
    ranks_of,
)
from rankmill.errors import plural
from rankmill.metrics.registry import parse, sides_of
from rankmill.results.slices import UNKNOWN
from rankmill.show.tables import (
    STAR,
    Best,
    Cell,
    Column,
    Marked,
    Part,
    Table,
    best_value,
    decimals_of,
    leaderboard,
)

# The most characters of a value in a table.
LONGEST = 60
Explain: TypeAlias = Callable[[str, str, int | str], str]
"""The command that explains a metric, a system and a query."""

TITLES = {
    "t": "a paired t-test",
    "randomization": "a paired randomization test",
    "wilcoxon": "a Wilcoxon signed-rank test",
}
"""What tests are called in prose."""
CORRECTIONS = {"holm": "Holm", "bh": "Benjamini and Hochberg"}
"""Whose correction it is."""
MARKS = {BETTER: "↑", WORSE: "↓", EQUAL: "≈", NON_INFERIOR: "≥", HIGHER: "+", LOWER: "-"}
"""Verdict -> its mark beside a value."""


def slice_text(one: Slice) -> str:
    """Return what the queries of a slice have in common.

    Examples
    --------
    >>> slice_text(Slice(("country",), ("de",), 5, {}, {}))
    'country = de'
    """
    pairs = zip(one.by, one.value, strict=True)
    return ", ".join(f"{name} = {_short(value)}" for name, value in pairs)


def _short(value: str | None) -> str:
    """Return a value as a table has room for it; JSON and CSV have it whole."""
    if value is None:
        return UNKNOWN
    return value if len(value) <= LONGEST else f"{value[:LONGEST]}..."


def slice_tables(
    baseline: str, others: list[str], slices: list[Slice], settings: Settings
) -> Iterator[list[Part]]:
    """Yield a table for each metric and way to cut: a row for each slice and system."""
    together = next((one.confidence for one in slices if one.confidence), settings.confidence)
    for by in dict.fromkeys(one.by for one in slices):
        of_way = [one for one in slices if one.by == by]
        for metric in of_way[0].values:
            columns = [Column(", ".join(by)), Column("queries", "count")]
            columns += [] if len(others) == 1 else [Column("system")]
            columns += [Column(baseline, "value")]
            columns += [Column(others[0] if len(others) == 1 else "value", "value")]
            columns += _tested_columns(f"from {baseline}", settings, together)
            rows = []
            for one in of_way:
                for name in others:
                    base, value = (one.values[metric][each].value for each in (baseline, name))
                    row: list[Cell] = [slice_text(one).removeprefix(f"{by[0]} = "), one.queries]
                    row += [] if len(others) == 1 else [name]
                    rows.append([*row, base, value, *_tested_cells(one.differences[metric][name])])
            title = f"{metric} by {', '.join(by)}"
            if together > settings.confidence:
                title += f"; all intervals hold together at {100 * settings.confidence:.6g}%"
            yield [title, Table(columns, rows)]


def pair_tables(pairs: list[SystemPair], settings: Settings) -> Iterator[list[Part]]:
    """Yield a table for each metric: a row for every two systems."""
    columns = [Column("system"), Column("against")]
    columns += _tested_columns("difference", settings, settings.confidence)
    for metric in dict.fromkeys(one.metric for one in pairs):
        of_metric = [one for one in pairs if one.metric == metric]
        rows = [[one.system, one.baseline, *_tested_cells(one.difference)] for one in of_metric]
        yield [f"{metric}: every two systems", Table(columns, rows)]


def rank_tables(
    values: Mapping[str, Mapping[str, Estimate]], lines: Mapping[str, Mapping[int, str]]
) -> Iterator[list[Part]]:
    """Yield a table for each of the `lines_of` metrics: values and ranks of systems by cutoff."""
    for metric, names in lines.items():
        at = {k: values[name] for k, name in names.items()}
        ranks = {k: ranks_of(at[k], parse(name).better) for k, name in names.items()}
        decimals = decimals_of([one.value for of in at.values() for one in of.values()])
        rows: list[list[Cell]] = []
        for system in next(iter(at.values())):
            cells: list[Cell] = [system]
            before = None
            for k, of in at.items():
                value, rank = of[system].value, ranks[k][system]
                moved = "*" if before not in (None, rank) else ""
                cells.append(None if value is None else f"{value:.{decimals}f} ({rank}){moved}")
                before = rank
            rows.append(cells)
        title = f"{metric} over cutoffs: (1) the rank of the system, * where it changes"
        yield [title, Table([Column("system"), *(Column(f"@{k}") for k in at)], rows)]


def _tested_columns(title: str, settings: Settings, confidence: float) -> list[Column]:
    """The columns of `_tested_cells`."""
    p = "p" if settings.correction == "none" else f"p ({settings.correction})"
    interval = Column(f"{100 * confidence:.6g}% interval", "interval")
    return [Column(title, "difference"), interval, Column(p, "p"), Column("result")]


def _tested_cells(one: Difference) -> list[Cell]:
    """The difference, its interval, the corrected p of its first test, and the word."""
    p = next((test.corrected_p for test in one.tests.values()), None)
    return [one.value, one.interval, p, one.verdict or "not tested"]


def moved_tables(
    baseline: str,
    moved: dict[str, dict[str, list[Moved]]],
    settings: Settings,
    explain: Explain | None,
) -> Iterator[list[Part]]:
    """Yield a title and a table of queries for each metric and system."""
    for metric, of_system in moved.items():
        for name, rows in of_system.items():
            columns = [Column("query"), Column(baseline, "value"), Column(name, "value")]
            columns += [Column("difference", "difference")]
            columns += [Column("explain")] if explain else []
            shown: list[list[Cell]] = [[str(one.query), *one[1:]] for one in rows]
            for row, one in zip(shown, rows, strict=True):
                row += [explain(metric, name, one.query)] if explain else []
            what = "differs most from" if settings.moved > 0 else "lost most against"
            title = f"{metric}: the queries where {name} {what} {baseline}"
            if rows:
                yield [title, Table(columns, shown)]


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
        parts = [*board_parts(baseline, whole, settings, pairs), *notes]
    else:
        columns = [Column("system"), *_metric_columns(whole)]
        table = Table(columns, [[name, *cells] for name, *cells in _rows(baseline, whole)])
        note = _note(f"Compared with {baseline}", whole, settings)
        parts = [table, " ".join([note, *_legend(table)]), *notes]
    for by in dict.fromkeys(one.by for one in slices):
        parts += _slice_parts(baseline, [one for one in slices if one.by == by])
    if slices and settings.correction != "none":
        count = sum(one.tests_run for one in slices)
        parts.append(
            f"Slices: p is corrected over all {count:,} tests of slices, apart from the whole."
        )
    return parts


def board_parts(
    baseline: str, whole: Slice, settings: Settings, pairs: Sequence[SystemPair] = ()
) -> list[Part]:
    """Return the table of all queries with its note, and the letters of the `pairs` that differ."""
    values = {
        metric: {name: one.value for name, one in of.items()} for metric, of in whole.values.items()
    }
    sides = sides_of(values)
    table = leaderboard(values, sides, beaten_of(pairs, values) if pairs else None)
    what = "All pairs compared" if pairs else f"Compared with {baseline}"
    note = _note(what, whole, settings, pairs)
    if pairs:
        note += " The letters after a value name the systems that it is significantly better than"
        note += ", or higher than where neither side is better" * ("neither" in sides.values())
        note += "."
    return [table, f"{note} The {STAR} is marked." if table.marked else note]


def tests_of(whole: Slice, pairs: Sequence[SystemPair]) -> int:
    """Return how many differences of all queries were tested."""
    return sum(bool(one.difference.tests) for one in pairs) if pairs else whole.tests_run


def _note(
    what: str,
    whole: Slice,
    settings: Settings,
    pairs: Sequence[SystemPair] = (),
) -> str:
    """Return over how many queries means are, and how differences are tested."""
    means, count = f"Means over {plural(whole.queries, 'query')}.", tests_of(whole, pairs)
    if not count:
        return f"{means} Nothing is tested."
    test = settings.tests[0]  # JSON of 0.9 may have a test or a correction that is gone
    words = f"{means} {what} by {TITLES.get(test, test)}"
    words += "" if settings.cluster is None else f" of clusters by {settings.cluster}"
    words += "" if settings.adjust is None else f" adjusted by {settings.adjust}"
    if settings.correction == "none":
        words += ", p not corrected"
    else:
        whose = CORRECTIONS.get(settings.correction, settings.correction)
        words += f", p corrected by {whose} over {count:,} tests"
    words += f", level {1 - settings.confidence:.6g}."
    if settings.margin is not None:
        words += f" The margin is {settings.margin:.6g}, by two one-sided t-tests."
    return words


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
    sides = sides_of(one.values)
    bests = {
        metric: best_value([each.value for each in of.values()], sides[metric])
        for metric, of in one.values.items()
    }
    for name in dict.fromkeys(name for of in one.values.values() for name in of):
        cells: list[Cell] = [name]
        for metric, of in one.values.items():
            difference = one.differences[metric].get(name)
            mark = "" if difference is None else MARKS.get(difference.verdict or "", "")
            value = of[name].value
            kind = Best if value == bests[metric] else Marked
            cells.append(None if value is None else kind(value, mark))
        yield cells


def _legend(table: Table) -> Iterator[str]:
    """Yield what the marks of a table mean, those that it has."""
    shown = {cell.mark for row in table.rows for cell in row if isinstance(cell, Marked)}
    words = [
        f"{mark} {word}" if word == EQUAL else f"{mark} shown to be {word}"
        for word, mark in MARKS.items()
        if mark in shown
    ]
    words += [f"bold: {STAR}"] if table.marked else []
    if words:
        yield f"{'; '.join(words)}."
