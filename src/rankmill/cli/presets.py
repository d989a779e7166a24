"""`rankmill presets`: how other evaluators count, for people and for programs."""

import textwrap
from typing import Any

import click

from rankmill.cli.command import table_command
from rankmill.cli.draw import emit
from rankmill.semantics.choices import CHOICES
from rankmill.semantics.presets import PRESETS, Preset
from rankmill.show.tables import Column, Table, listing
from rankmill.show.writers import plain_text, write

_LEGEND = """\
Each field below is a choice on which evaluators differ; fields that are not listed have their
default. R is the number of labels, n of predictions, and k the cutoff.
"""
_COLUMNS = "name", "semantics", "metrics", "source", "note"


@table_command("presets")
def command(format: str) -> None:
    """List the presets: how they count, what their metrics are called there, and the sources."""
    if format == "table":
        emit("\n".join([_summary(), _LEGEND, *(_paragraph(*one) for one in PRESETS.items())]))
        return
    rows: list[dict[str, Any]] = []
    cells = []
    for name, one in PRESETS.items():
        fields, texts = one.semantics.differences(), (one.source, one.note)
        rows.append(dict(zip(_COLUMNS, (name, fields, one.metrics, *texts), strict=True)))
        cells.append([name, _pairs(fields, " "), _pairs(one.metrics, " = "), *texts])
    emit(write(listing(Table([*map(Column, _COLUMNS)], cells), rows), format))


def _summary() -> str:
    """Return a line for each preset: its name, and the evaluator that it counts as."""
    rows = [[name, one.evaluator] for name, one in PRESETS.items()]
    table = Table([Column("--preset NAME"), Column("counts as")], rows)
    return plain_text([table, ""])


def _pairs(texts: dict[str, str], between: str) -> str:
    return ", ".join(f"{key}{between}{text}" for key, text in texts.items())


def _paragraph(name: str, preset: Preset) -> str:
    fields = preset.semantics.differences().items()
    texts = [f"{field} {choice}: {CHOICES[field][choice]}" for field, choice in fields]
    texts = texts or ["all fields as by default"]
    titled = {"metrics": _pairs(preset.metrics, " = "), "source": preset.source}
    titled["note"] = preset.note
    texts += [f"{title}: {text}" for title, text in titled.items() if text]
    lines = [click.style(name, bold=True)]
    for text in texts:
        lines += textwrap.wrap(text, width=98, initial_indent="    ", subsequent_indent="      ")
    return "\n".join(lines) + "\n"
