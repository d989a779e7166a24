"""`rankmill metrics` and `rankmill presets`: what there is to choose, also for programs."""

from __future__ import annotations

import textwrap
from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from rankmill.cli.command import complete_metrics, complete_presets, table_command
from rankmill.cli.draw import emit
from rankmill.errors import UsageError
from rankmill.semantics.choices import CHOICES
from rankmill.semantics.metric_names import side_text
from rankmill.semantics.presets import PRESETS, Preset, preset
from rankmill.show.tables import Column, Facts, Part, Table, View, listing
from rankmill.show.writers import plain_text, write

if TYPE_CHECKING:
    from rankmill.metrics.base import MetricSpec

_LEGEND = """\
A query has R labels and n predictions. rel(i) is 1 if its i-th prediction is a
hit, else 0; P(i) is the share of hits among the first i. name@k counts only the
first k predictions of each query; in name[@k], the cutoff is optional.
Parameters go in parentheses before it: map(rel=2)@12. Names ignore case, and
those of trec_eval work too: map_cut_10 is map@10.
Most metrics of one list take judged_only, as in P(judged_only)@10, which drops
predictions that are not judged. ndcg and dcg take gain=exp, which counts a gain
of g as 2^g - 1. The definitions are those of the default preset; other presets
and --semantics change divisors, the order of ties, and which queries count.
"""


@table_command(
    "metrics",
    [click.Argument(["name"], required=False, shell_complete=complete_metrics)],
    help="""List the metrics: name, aliases, parameters, definition, range, better side and source.
Give a NAME, such as ndcg, to show only that metric.""",
)
def command(name: str | None, format: str, elsewhere: bool, sets: bool) -> None:
    """List all metrics, or the one of a name, as people or programs read them."""
    from rankmill.metrics.elsewhere import LIBRARIES, exported_names, names_elsewhere
    from rankmill.metrics.packages import load_packages
    from rankmill.metrics.registry import REGISTRY, spec_named

    if sets:
        emit(write(_sets(name), format))
        return
    load_packages()
    specs = list(REGISTRY.values()) if name is None else [spec_named(name)]
    if elsewhere:
        asked = {spec.name for spec in specs}
        names = {one: there for one, there in names_elsewhere().items() if one in asked}
        cells = [[name, *there.values()] for name, there in names.items()]
        table = Table([Column(one) for one in ("metric", *LIBRARIES)], cells)
        titles = "library", "name there", "name here", "why there is none"
        exported = Table([Column(one) for one in titles], exported_names(asked, name is None))
        both = [table, exported] if exported.rows else [table]
        lines = [
            (one, "; ".join(f"{library} {name}" for library, name in there.items() if name))
            for one, there in names.items()
        ]
        others = [
            (f"{library} {name}", f"{here or why}") for library, name, here, why in exported.rows
        ]
        facts = [Facts(rows, aligned=False) for rows in (lines, others) if rows]
        screen: list[Part] = [facts[0], *(part for one in facts[1:] for part in ("", one))]
        view = listing(table, names)
        emit(write(view._replace(screen=lambda: screen, page=lambda: both), format))
        return
    if format == "table":
        alone = name is not None
        emit("\n".join([*([] if alone else [_LEGEND]), *(_paragraph(one, alone) for one in specs)]))
        return
    rows = [_fields(spec) for spec in specs]
    table = Table([Column(name) for name in rows[0]], [_cells(row) for row in rows])
    view = listing(table, rows)
    emit(write(view if name else view._replace(page=lambda: _reference(specs)), format))


def _sets(name: str | None) -> View:
    """Return what is shown of all sets, or of the one of a name."""
    from rankmill.metrics.texts import SETS

    if name is not None and name.lower() not in SETS:
        raise UsageError(f"there is no set of metrics {name!r}; expected one of {', '.join(SETS)}")
    shown = {one: of for one, of in SETS.items() if name is None or one == name.lower()}
    columns = [Column("set"), Column("metrics"), Column("meaning")]
    table = Table(columns, [[one, ",".join(of.metrics), of.meaning] for one, of in shown.items()])
    facts = Facts([(f"{one} ({of.meaning})", ", ".join(of.metrics)) for one, of in shown.items()])
    content = {one: {**of._asdict(), "metrics": list(of.metrics)} for one, of in shown.items()}
    return listing(table, content)._replace(screen=lambda: [facts._replace(aligned=False)])


def _fields(spec: MetricSpec) -> dict[str, str | list[str]]:
    return {
        "name": spec.name,
        "aliases": list(spec.aliases),
        "parameters": _parameters(spec),
        "cutoff": spec.cutoff,
        "definition": spec.definition,
        "range": spec.range,
        "better": spec.better,
        "source": spec.source,
    }


def _parameters(spec: MetricSpec, options: bool = False) -> list[str]:
    """Return each with its default, what may be given and what it means; and those of most."""
    return [
        f"{one.name}{default}, {one.expected}: {one.meaning}"
        for one in (*spec.parameters, *(spec.options if options else ()))
        for default in ["" if one.default is None else f"={one.written(one.default)}"]
    ]


def _cells(fields: dict[str, str | list[str]]) -> list[str]:
    fields = fields | {"parameters": "; ".join(fields["parameters"])}
    return [text if isinstance(text, str) else " ".join(text) for text in fields.values()]


def _typed(spec: MetricSpec) -> str:
    """Return what may be typed: the name with parameters, their defaults and the cutoff."""
    inner = [
        one.name if one.default is None else f"{one.name}={one.written(one.default)}"
        for one in spec.parameters
        if one is not spec.at
    ]
    at = {"required": "@k", "optional": "[@k]", "none": ""}[spec.cutoff]
    at = f"@{spec.at.name}" if spec.at else at
    return ", ".join([f"{spec.name}({','.join(inner)}){at}".replace("()", ""), *spec.aliases])


def _reference(specs: list[MetricSpec]) -> list[Part]:
    """Return tables of all metrics in which what many share is told once."""
    numbers = {source: n for n, source in enumerate(dict.fromkeys(s.source for s in specs), 1)}
    lines = [
        [
            _typed(one),
            one.definition,
            side_text(one.better).lstrip("; ") if one.range == "0 to 1" else one.range_text,
            str(numbers[one.source]),
        ]
        for one in specs
    ]
    of: dict[tuple[str, str, str], list[str]] = {}
    for spec in specs:
        for one in spec.parameters:
            expected = one.expected.removeprefix("a number ")
            of.setdefault((one.name, one.meaning, expected), []).append(spec.name)
    times = Counter(name for name, *_ in of)
    parameters = [
        [name if times[name] == 1 else f"{name} ({', '.join(where)})", meaning, expected]
        for (name, meaning, expected), where in of.items()
    ]
    return [
        Table([Column(one) for one in ("metric", "definition", "range", "source")], lines),
        "These are the parameters in parentheses, with the metrics if a name has several meanings:",
        Table([Column(one) for one in ("parameter", "meaning", "value")], parameters),
        "These are the sources:",
        Table([Column("source"), Column("title")], [[str(n), one] for one, n in numbers.items()]),
    ]


def _paragraph(spec: MetricSpec, options: bool) -> str:
    suffix = {"required": "@k", "optional": "[@k]", "none": ""}[spec.cutoff]
    aliases = f"  (also {', '.join(spec.aliases)})" if spec.aliases else ""
    lines = [f"{click.style(spec.name + suffix, bold=True)}{aliases}"]
    for title, text in (
        ("", spec.definition),
        *(("parameter: ", text) for text in _parameters(spec, options)),
        ("range: ", spec.range_text),
        ("source: ", spec.source),
    ):
        lines += textwrap.wrap(
            title + text,
            width=78,
            initial_indent="    ",
            subsequent_indent="      ",
            break_on_hyphens=False,
        )
    return "\n".join(lines) + "\n"


_OF_PRESETS = """\
Each field below is a choice on which evaluators differ; fields that are not listed have their
default. R is the number of labels, n of predictions, and k the cutoff.
"""
_COLUMNS = "name", "semantics", "metrics", "source", "note"


@table_command(
    "presets",
    [click.Argument(["name"], required=False, shell_complete=complete_presets)],
)
def presets(name: str | None, format: str) -> None:
    """List the presets: how they count, what their metrics are called there, and the sources.

    Give a NAME, such as kaggle_hm, to show only that preset.
    """
    asked = PRESETS if name is None else {name: preset(name)}
    if format == "table":
        alone = [] if name else [_summary(), _OF_PRESETS]
        emit("\n".join([*alone, *(_preset(*one) for one in asked.items())]))
        return
    rows: list[dict[str, Any]] = []
    cells = []
    for name, one in asked.items():
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


def _preset(name: str, one: Preset) -> str:
    fields = one.semantics.differences().items()
    texts = [f"{field} {choice}: {CHOICES[field][choice]}" for field, choice in fields]
    texts = texts or ["all fields as by default"]
    titled = {"metrics": _pairs(one.metrics, " = "), "source": one.source}
    titled["note"] = one.note
    texts += [f"{title}: {text}" for title, text in titled.items() if text]
    lines = [click.style(name, bold=True)]
    for text in texts:
        lines += textwrap.wrap(text, width=98, initial_indent="    ", subsequent_indent="      ")
    return "\n".join(lines) + "\n"
