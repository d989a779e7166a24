"""`rankmill metrics`: the registry, for people and for programs."""

from __future__ import annotations

import json
import textwrap

import click

from rankmill.cli.draw import FORMATS, csv_text, emit, markdown
from rankmill.metrics.registry import REGISTRY, MetricSpec

__all__ = ["command"]

_LEGEND = """\
A query has R labels and n predictions. rel(i) is 1 if its i-th prediction is a
hit, else 0; P(i) is the share of hits among its first i. name@k: only the first
k predictions of each query count; name[@k]: the cutoff may be left out.
"""

_HEADER = ["name", "aliases", "cutoff", "definition", "range", "source"]


@click.command("metrics")
@click.option("--format", "format", type=click.Choice(FORMATS), default="table", show_default=True)
def command(format: str) -> None:
    """List the metrics: name, aliases, definition, range and source."""
    specs = list(REGISTRY.values())
    if format == "json":
        emit(json.dumps([_fields(spec) for spec in specs], indent=2) + "\n")
    elif format == "csv":
        emit(csv_text(_HEADER, [_cells(spec) for spec in specs]))
    elif format == "markdown":
        emit(markdown(_HEADER, [_cells(spec) for spec in specs]))
    else:
        emit("\n".join([_LEGEND, *map(_paragraph, specs)]))


def _fields(spec: MetricSpec) -> dict[str, str | list[str]]:
    return {
        "name": spec.name,
        "aliases": list(spec.aliases),
        "cutoff": spec.cutoff,
        "definition": spec.definition,
        "range": spec.range,
        "source": spec.source,
    }


def _cells(spec: MetricSpec) -> list[str]:
    texts = _fields(spec).values()
    return [text if isinstance(text, str) else " ".join(text) for text in texts]


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
