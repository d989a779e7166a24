"""`rankmill metrics`: the registry, for people and for programs."""

from __future__ import annotations

import textwrap

import click

from rankmill.cli.draw import emit
from rankmill.metrics.registry import REGISTRY, MetricSpec
from rankmill.results.tables import Column, Table, listing
from rankmill.results.writers import FORMATS, write

__all__ = ["command"]

_LEGEND = """\
A query has R labels and n predictions. rel(i) is 1 if its i-th prediction is a
hit, else 0; P(i) is the share of hits among its first i. name@k: only the first
k predictions of each query count; name[@k]: the cutoff may be left out.
"""


@click.command("metrics")
@click.option("--format", "format", type=click.Choice(FORMATS), default="table", show_default=True)
def command(format: str) -> None:
    """List the metrics: name, aliases, definition, range and source."""
    specs = list(REGISTRY.values())
    if format == "table":
        emit("\n".join([_LEGEND, *map(_paragraph, specs)]))
        return
    rows = [_fields(spec) for spec in specs]
    table = Table([Column(name) for name in rows[0]], [_cells(row) for row in rows])
    emit(write(listing(table, rows), format))


def _fields(spec: MetricSpec) -> dict[str, str | list[str]]:
    return {
        "name": spec.name,
        "aliases": list(spec.aliases),
        "cutoff": spec.cutoff,
        "definition": spec.definition,
        "range": spec.range,
        "source": spec.source,
    }


def _cells(fields: dict[str, str | list[str]]) -> list[str]:
    return [text if isinstance(text, str) else " ".join(text) for text in fields.values()]


def _paragraph(spec: MetricSpec) -> str:
    suffix = {"required": "@k", "optional": "[@k]", "none": ""}[spec.cutoff]
    aliases = f"  (also {', '.join(spec.aliases)})" if spec.aliases else ""
    lines = [f"{click.style(spec.name + suffix, bold=True)}{aliases}"]
    for title, text in (
        ("", spec.definition),
        ("range: ", spec.range),
        ("source: ", spec.source),
    ):
        lines += textwrap.wrap(
            title + text, width=78, initial_indent="    ", subsequent_indent="      "
        )
    return "\n".join(lines) + "\n"
