"""How the results of several systems look side by side."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from rankmill import signals
from rankmill.cli.draw import (
    CSV_HEADER,
    csv_text,
    described,
    drawn,
    exact_rows,
    markdown,
    semantics_text,
)
from rankmill.results import audit
from rankmill.results.escaping import markdown_text, visible
from rankmill.results.result import Result, table_cells
from rankmill.results.tables import aligned_numbers, plain_table
from rankmill.semantics.choices import DEFAULT

__all__ = ["draw_all", "render_all"]

_LEGEND = "* the best of a metric"


def render_all(results: Mapping[str, Result], format: str) -> str:
    """Return the results of several systems as text in one format, with a line break at the end."""
    if format == "json":
        return _json(results)
    _, note = _compared(results)
    if format == "csv":
        rows = [[name, *row, note] for name, one in results.items() for row in exact_rows(one)]
        return csv_text(["system", *CSV_HEADER, "note"], rows)
    if format == "markdown":
        tables = {name: table_cells(one) for name, one in results.items()}
        header = max((header for header, _ in tables.values()), key=len)
        cells = [[name, *row] for name, (_, part) in tables.items() for row in part]
        filled = [row + [""] * (len(header) + 1 - len(row)) for row in cells]
        table = markdown(["system", *header], filled, right=(2, 3, 4))
        return table + (f"\n{markdown_text(note)}\n" if note else "")
    names = list(results)
    texts = [
        [metric, *(value + "* "[not best] for value, best in cells)]
        for metric, cells in _values(results, comparable=not note)
    ]
    any_best = any(cell.endswith("*") for row in texts for cell in row[1:])
    parts = [
        plain_table(["metric", *(f"{name} " for name in names)], texts, left=(0,)),
        *([_LEGEND] if any_best else []),
        "",
        plain_table(["audit", *names, ""], _counts(results), left=(0, len(names) + 1)),
        "",
        *(f"{visible(title)}: {visible(text)}" for title, text in _facts(results, note)),
    ]
    return "\n".join(parts) + "\n"


def draw_all(results: Mapping[str, Result]) -> None:
    """Draw the results of several systems on the terminal that is standard output.

    As many systems stand side by side as the terminal is wide enough for; the others follow below.
    """
    signals.printing()
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    _, note = _compared(results)
    values, counts = _values(results, comparable=not note), _counts(results)
    titles = max(len(row[0]) for row in [*values, *counts])
    names = list(results)
    widths = [
        max(
            len(visible(name)),
            *(len(cells[i][0]) for _, cells in values),
            *(len(row[i + 1]) for row in counts),
        )
        for i, name in enumerate(names)
    ]
    for start, end in _groups(widths, console.width - titles):
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        table.add_column("metric", no_wrap=True, style="bold", min_width=titles)
        for name in names[start:end]:
            table.add_column(drawn(name), justify="right", overflow="fold")
        for metric, cells in values:
            shown = [drawn(value, "bold" if best else "") for value, best in cells[start:end]]
            table.add_row(drawn(metric), *shown)
        table.add_section()
        for row in counts:
            table.add_row(drawn(row[0], "not bold"), *map(drawn, row[start + 1 : end + 1]))
        console.print(table)
        console.print()
    facts = Table.grid(padding=(0, 2), pad_edge=False)
    facts.add_column(style="dim", overflow="fold")
    facts.add_column(overflow="fold")
    for row in counts:
        facts.add_row(drawn(row[0]), drawn(row[-1]))
    facts.add_row()
    for fact in _facts(results, note):
        facts.add_row(*map(drawn, fact))
    console.print(facts)


def _json(results: Mapping[str, Result]) -> str:
    same, note = _compared(results)
    contents = {name: one.to_dict() for name, one in results.items()}
    shared = {
        "rankmill": next(iter(contents.values()))["rankmill"],
        "same_queries": same,
        "note": note or None,
    }
    systems = {
        name: {key: value for key, value in content.items() if key not in shared}
        for name, content in contents.items()
    }
    return json.dumps(shared | {"systems": systems}, indent=2, allow_nan=False) + "\n"


def _compared(results: Mapping[str, Result]) -> tuple[bool | None, str]:
    """Return whether systems were averaged over the same queries, and in words if they were not."""
    from rankmill.compare.aligned import same_queries  # loads what evaluating has loaded before

    same = same_queries(results)
    if same:
        return same, ""
    counts = ", ".join(f"{name} {one.queries:,}" for name, one in results.items())
    if same is None:
        return same, f"perhaps averaged over different queries: {counts}; --per-query tells"
    return same, f"averaged over different queries, so that values do not compare: {counts}"


def _values(
    results: Mapping[str, Result], *, comparable: bool
) -> list[tuple[str, list[tuple[str, bool]]]]:
    """Return each metric with the value of each system as text, and whether it is the best.

    None is the best unless they are `comparable`.
    """
    metrics = list(next(iter(results.values())).metrics)
    numbers = [[one.metrics[metric] for one in results.values()] for metric in metrics]
    texts = iter(aligned_numbers([value for row in numbers for value in row], 6))
    rows = []
    for metric, row in zip(metrics, numbers, strict=True):
        known = [value for value in row if value is not None]
        best = max(known) if comparable and len(set(known)) > 1 else None
        rows.append((metric, [(next(texts), best is not None and value == best) for value in row]))
    return rows


def _counts(results: Mapping[str, Result]) -> list[list[str]]:
    """Return the counts that any input has or that one of these does, and their meanings."""
    audits = [one.audit for one in results.values()]
    semantics = next(iter(results.values())).semantics
    shown = set(audit.HEADLINE).union(*(audit.notable(one) for one in audits))
    return [
        [name, *(f"{one.get(name, 0):,}" for one in audits), meaning]
        for name, meaning in audit.meanings(semantics).items()
        if name in shown
    ]


def _facts(results: Mapping[str, Result], note: str) -> list[tuple[str, str]]:
    labels = next(iter(results.values())).inputs.get("labels", {})
    facts = [("labels", described(labels))]
    facts += [(name, described(one.inputs.get("predictions", {}))) for name, one in results.items()]
    semantics = next(iter(results.values())).semantics
    if semantics != DEFAULT:
        facts.append(("semantics", semantics_text(semantics)))
    if note:
        facts.append(("queries", note))
    return [*facts, ("seconds", f"{sum(one.seconds for one in results.values()):.2f}")]


def _groups(widths: Sequence[int], room: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of columns that fit beside each other, one column at least."""
    start = used = 0
    for end, width in enumerate(widths):
        if end > start and used + width + 3 > room:
            yield start, end
            start, used = end, 0
        used += width + 3
    yield start, len(widths)
