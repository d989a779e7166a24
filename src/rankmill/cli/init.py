"""`rankmill init`: write a first rankmill.toml for the files that it is shown."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import partial
from statistics import NormalDist
from typing import Any

import click

import rankmill
from rankmill.cli.command import table_command
from rankmill.cli.draw import emit, run
from rankmill.config.document import VERSION, dates_in, is_filled, with_holes
from rankmill.config.face import face_of, options_taken, source_of, system_names
from rankmill.errors import InputError, RankmillError, UsageError, plural
from rankmill.io import whole_files as writing
from rankmill.io.inert_text import visible
from rankmill.io.stores.urls import is_url, shown
from rankmill.results.slices import REACH

_EXAMPLES = """
rankmill init labels.parquet predictions.parquet
rankmill init labels.parquet new.parquet old.parquet -o nightly.toml
rankmill init labels.parquet new.parquet --by users.csv
rankmill init qrels.txt bm25.run -o -
"""
# The longest lists for which the cutoff of the metrics is their length.
_LONGEST = 20
_HOLE = re.compile(r"\{date[^}]*\}")
_TEXT = """\
# The file of 'rankmill evaluate', 'compare', 'gate' and 'report', as in
#   rankmill evaluate rankmill.toml
# A key is an option of these commands; 'rankmill docs config' lists them. Paths are relative to
# the folder of this file. In texts, {{date}} is today in UTC, {{date:%Y%m%d}} the same as 20240501,
# and ${{NAME}} a variable of the environment.
version = {version}

{labels}
{predictions}
# 'rankmill metrics' lists all.
metrics = {metrics}

# What 'rankmill gate' checks; 'rankmill docs gate' has the grammar.
rules = [
{rules}
]

# What slices the queries: columns of the labels, or a file with query ids.
{by}

# Where each run is kept, and the page that shows one.
# history = "history"
# report = "report-{{date}}.html"
# tags = {{ job = "nightly" }}

# What the run may take of the machine.
# threads = 4
# memory = "1GiB"

{systems}# Which column is what, where it is not found by its name.
[columns]
{columns}
[semantics]
# preset = "trec_eval"  # 'rankmill presets' lists all
"""


@table_command(
    "init",
    [
        click.Argument(["labels"]),
        click.Argument(["predictions"]),
        click.Argument(["baseline"], required=False),
    ],
    examples=_EXAMPLES,
)
def command(
    labels: str,
    predictions: str,
    baseline: str | None,
    output: str,
    force: bool,
    no_evaluate: bool,
    by: tuple[str, ...],
    **options: Any,
) -> None:
    """Write a first rankmill.toml for LABELS, PREDICTIONS and an optional BASELINE.

    Use the file with evaluate, compare, gate and report: 'rankmill evaluate rankmill.toml'. Its
    comments show how the inputs were read. It has two rules for 'rankmill gate' with today's
    values, and more in comments. A date in a name, such as 2024-05-01 or 20240501, becomes {date}.
    An existing file is not replaced. See 'rankmill docs config' for all keys.
    """
    if output != "-":
        _check_output(output, force)
    folder = "" if output == "-" else os.path.dirname(output)
    texts = [predictions] if baseline is None else [predictions, baseline]
    names = system_names(texts)
    sources = [source_of(labels, "LABELS"), *(source_of(one, "PREDICTIONS") for one in texts)]
    # The date of the predictions, else that of the labels.
    day = [None, *dates_in(f"{labels} {predictions}")][-1]
    paths = [toml_value(_path(one, folder, day)) for one in sources]
    given = {name: value for name, value in options.items() if value not in (None, False)}
    if given.get("gain_function") == "linear":  # the default
        del given["gain_function"]

    from rankmill.engine.cuts import column_names
    from rankmill.sources.files.formats import is_path

    told = [_told(one, one is sources[0], given) for one in sources]
    metrics = _metrics(told[1:])
    slices = [_path(one, folder, day) if is_path(one) else one for one in by]
    named = [name for one in by for name in (column_names(one) if is_path(one) else [one])]
    columns = {one["name"]: one for one in told[0]["columns"]}
    free = [name for name, one in columns.items() if not one["role"] and "<" not in one["type"]]
    cuts = [name for name in named if name not in columns or name in free] or free
    today: dict[str, Any] = {}
    if not no_evaluate:
        asked = given | {"metrics": metrics, "per_query": False}
        today = _today(sources, asked, by, cuts[:1])
    pair = None if baseline is None else partial(_smallest, sources, given)
    abouts = [_about(one) for one in told]
    if baseline is None:
        predictions, systems = f"{abouts[1]}predictions = {paths[1]}\n", ""
    else:
        names = _undated(names, day)
        predictions = f"baseline = {toml_value(names[1])}  # a system below\n"
        rows = zip(abouts[1:], names, paths[1:], strict=True)
        lines = [f"{about}{_key(name)} = {path}\n" for about, name, path in rows]
        systems = f"[systems]\n{''.join(lines)}\n"
    text = _TEXT.format(
        version=VERSION,
        labels=f"{abouts[0]}labels = {paths[0]}\n",
        predictions=predictions,
        metrics=toml_value(metrics),
        rules=_rules(metrics, today, cuts, day, pair, sliced=bool(by)),
        by=f"{'' if by else '# '}by = {toml_value(slices or cuts or ['label_count'])}",
        systems=systems,
        columns="".join(f"{name} = {toml_value(value)}\n" for name, value in given.items()),
    )
    if output == "-":
        emit(text)
    else:
        writing.write_files([(output, text)])
        dated = "" if day is None else f" --date {day}"
        emit(f"wrote {output}; now: rankmill gate {shlex.quote(output)}{dated}\n")
    other = [one for one in dates_in(labels)[-1:] if one != day]
    if other:
        click.echo(f"note: the labels are of {other[0]}, and the predictions of {day}", err=True)


def _check_output(output: str, force: bool) -> None:
    if is_url(output) or not output.lower().endswith(".toml"):
        raise UsageError(
            f"cannot write {shown(output)}: expected the name of a local file in .toml"
        )
    writing.check_target(output)
    if os.path.lexists(output) and not force:
        raise UsageError(f"{output} exists; choose another name with -o, or replace it by --force")


def _path(source: str | list[str], folder: str, day: date | None) -> str | list[str]:
    """Return the path or paths of an input for a file in a folder, with {date} for the day."""
    if isinstance(source, list):
        return [str(_path(one, folder, day)) for one in source]
    if source == "-":
        raise UsageError("standard input cannot be read again by a FILE.toml; expected a file")
    if shown(source) != source:
        raise UsageError(
            f"{shown(source)} is given with credentials, which do not belong into a file; set "
            "them in the environment ('rankmill docs data')"
        )
    if is_filled(source):
        raise UsageError(f"{source} holds {{date}} or ${{, which a FILE.toml fills in; rename it")
    if folder and not (os.path.isabs(source) or is_url(source) or source.startswith("file://")):
        source = os.path.relpath(source, folder)
    return source if day is None else with_holes(source, day)


def _told(source: Any, is_labels: bool, given: dict[str, Any]) -> dict[str, Any]:
    """Return how an input is understood under the options."""
    known = {name: one for name, one in given.items() if name in options_taken(rankmill.plan)}
    both = face_of(rankmill.plan, source, source, known)
    kind = rankmill.Labels if is_labels else rankmill.Predictions
    told = rankmill.head(kind.of(both["labels" if is_labels else "predictions"]))
    if told["problem"] is not None:
        raise InputError(told["problem"])
    return told


def _about(told: Mapping[str, Any]) -> str:
    """Return what an input was understood as, in a line that is a comment."""
    rows = "" if told["rows"] is None else f", {plural(told['rows'], 'row')}"
    roles = ", ".join(f"{one['role']} = {one['name']}" for one in told["columns"] if one["role"])
    text = f"{told['format'] or 'Arrow'}, {told['shape']}{rows}: {roles}"
    return f"# {visible(text)}\n"


def _metrics(told: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return metrics for systems: at the length of short lists, and gap if all have confidences."""
    longest = max((query["count"] for one in told for query in one["queries"]), default=0)
    k = longest if 2 < longest <= _LONGEST else 10
    roles = [", ".join(column["role"] or "" for column in one["columns"]) for one in told]
    names = [f"{name}@{k}" for name in ("map", "first_hit", "recall", "ndcg")]
    return [*names, "gap"] if all("score" in its.split(", ") for its in roles) else names


def _undated(names: Sequence[str], day: date | None) -> list[str]:
    """Return names of systems without the date, which is another one tomorrow."""
    if day is None:
        return [*names]
    shorter = [_HOLE.sub("", with_holes(name, day)).strip("-_. /") for name in names]
    return shorter if all(shorter) and len({*shorter}) == len(shorter) else [*names]


def _today(
    sources: Sequence[Any], asked: Mapping[str, Any], by: Sequence[str], guess: Sequence[str]
) -> dict[str, Any]:
    """Return the result in slices by what is given, or by a column that may slice the queries."""
    try:
        found = run(rankmill.evaluate, sources[0], sources[1], {**asked, "by": by or guess})
    except RankmillError:
        if by or not guess:
            raise
        found = run(rankmill.evaluate, sources[0], sources[1], {**asked, "by": ()})
    return vars(found)


def _smallest(sources: Sequence[Any], given: Mapping[str, Any], rule: str) -> float | None:
    """Return the smallest drop that a rule finds between two systems, as --power shows it."""
    asked = {**given, "rules": [rule], "baseline": sources[2]}
    found: float | None = run(rankmill.gate_power, sources[0], sources[1], asked).rules[0].smallest
    return found


def _rules(
    metrics: Sequence[str],
    today: Mapping[str, Any],
    cuts: Sequence[str],
    day: date | None,
    pair: Callable[[str], float | None] | None,
    *,
    sliced: bool,
) -> str:
    """Return two rules or three, and more as comments, with limits that the values of today keep.

    `pair` tells the smallest drop that a rule finds, if there is a baseline to pair with.
    """
    paired = pair is not None
    audit = today.get("audit", {})
    lost = audit.get("queries_only_labelled", 0) / (audit.get("queries_labelled", 0) or 1)
    most = min(99, max(1, math.ceil(110 * lost)))
    told = f"  # it is {100 * lost:.3g}% today" if today else ""
    first, *others = [_limit(name, today.get("metrics", {}).get(name, 0)) for name in metrics]
    needs = (
        "" if paired else '  # needs a baseline, such as baseline = "last or none" with a history'
    )
    value, error = (today.get(one, {}).get(metrics[0]) for one in ("metrics", "standard_errors"))
    percent = (_shown_drop(value, error or 0.0, paired=paired) or 50) if value else 1
    rule = f"{metrics[0]} drop <= {percent}% confidence 0.95"
    drop = f'"{rule}",{needs}'
    if value and error is not None:
        least = percent / 100 + _reach(error, paired=False) / value
        found = least if pair is None else pair(rule)
        told_drop = "finds no drop in these data"
        if found is not None:
            told_drop = f"finds drops from about {100 * found:.2g}% on"
        drop = f'"{rule}",  # {told_drop}{needs.replace("  # ", "; ")}'
    series = f'"{rule} since {day or date.today():%Y-%m-%d}",'
    series += "  # a series of nights finds smaller losses; needs a history"
    on, off = (
        ([drop], [first, '"queries change <= 10%",  # with a history'])
        if paired
        else ([first], [drop])
    )
    on.append(f'"queries_only_labelled <= {most}%",{told}')
    off += [series, *others, '"repeated_items <= 1%",']
    if cuts and cuts[0].isidentifier():
        limit, small = _drop_of_slices(metrics[0], cuts[0], today, paired=paired)
        every = f'"{metrics[0]}[{cuts[0]}=*] drop <= {limit or 20}%",'
        why = f"too few queries in {small}" if small else "are its slices large enough?"
        told = needs if limit else f"  # {why}: 'rankmill gate --power' shows what it detects"
        (on if paired and sliced and limit else off).append(every + told)
    return "\n".join([*(f"  {one}" for one in on), *(f"  # {one}" for one in off)])


def _drop_of_slices(
    metric: str, by: str, today: Mapping[str, Any], *, paired: bool
) -> tuple[int | None, str]:
    """Return such a limit for every slice, or None and the slice that is too small for one."""
    table = today.get("by")
    rows = [] if table is None else table.to_pylist()
    found = [one for one in rows if (one["by"], one["metric"]) == (by, metric) and one["slice"]]
    beyond = NormalDist().inv_cdf(1 - 0.025 / max(1, len(found)))  # all of them hold together
    most: int | None = None
    for one in found:
        error = math.inf if one["standard_error"] is None else one["standard_error"]
        limit = _shown_drop(one["value"], error, paired=paired, beyond=beyond)
        if limit is None:
            return None, f"{by} = {visible(one['slice'])}"
        most = max(most or 0, limit)
    return most, ""


def _shown_drop(
    value: float | None, error: float, *, paired: bool, beyond: float = REACH
) -> int | None:
    """Return a limit in percent that a night like today is likely to be shown to keep, or None."""
    far = _reach(error, paired=paired, beyond=beyond)
    limits = (one for one in (1, 2, 3, 5, 10, 20) if value and 100 * far <= one * value)
    return next(limits, None)


def _reach(error: float, *, paired: bool, beyond: float = REACH) -> float:
    """Return how far beyond a limit a value is that is shown in 80% of nights of this error."""
    return (beyond + 0.84) * error * (0.7 if paired else 1.4)  # pairs differ by less than nights


def _limit(name: str, value: float) -> str:
    """Return a rule that a metric is at least 95% of its value, rounded down to two digits."""
    if not 0 < value < math.inf:
        return f'"{name} > 0",'
    unit = 10.0 ** (math.floor(math.log10(value * 0.95)) - 1)
    return f'"{name} >= {math.floor(value * 0.95 / unit) * unit:.6g}",  # it is {value:.6g} today'


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_value(name)


def toml_value(value: Any) -> str:
    r"""Return a text, a truth value, a number or a list of these as TOML.

    Examples
    --------
    >>> print(toml_value(["a\n", True, 3]))
    ["a\n", true, 3]
    """
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    # JSON escapes as TOML does, but for one control character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
