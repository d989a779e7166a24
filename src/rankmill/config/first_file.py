"""The text of a first rankmill.toml, for what was found in the files that it names."""

import json
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankmill.config.keys import VERSION
from rankmill.errors import plural
from rankmill.io.inert_text import visible

_TOP = """\
# The file of 'rankmill evaluate', 'compare', 'gate' and 'report', as in
#   rankmill evaluate rankmill.toml
# A key is an option of these commands; 'rankmill docs config' lists them. Paths are relative to
# the folder of this file. In texts, {date} is today in UTC, {date:%Y%m%d} the same as 20240501, and
# ${NAME} a variable of the environment.
"""
_SLICES = "What slices the queries: columns of the labels, or a file with query ids."
# What a first file leaves out: about some keys, and how they may be given.
_REST = (
    (
        "Where each run is kept, and the page that shows one.",
        {"history": '"history"', "report": '"report-{date}.html"', "tags": '{ job = "nightly" }'},
    ),
    (
        "With a history: compare each night with the last one that held, in rules with drop.",
        {"baseline": '"last"'},
    ),
    ("What the run may take of the machine.", {"threads": "4", "memory": '"1GiB"'}),
)


@dataclass(frozen=True)
class FoundInput:
    """An input: its path or paths as the file has them, and what `head` told of it."""

    path: str | list[str]
    told: Mapping[str, Any]

    def comment(self) -> str:
        """What it was understood as, in a line."""
        told = self.told
        rows = "" if told["rows"] is None else f", {plural(told['rows'], 'row')}"
        roles = ", ".join(f"{one['role']} = {one['name']}" for one in self.read())
        return _comment(f"{told['format'] or 'Arrow'}, {told['shape']}{rows}: {roles}")

    def read(self) -> list[Mapping[str, Any]]:
        """The columns that are read."""
        return [one for one in self.told["columns"] if one["role"] is not None]

    def unread(self) -> list[str]:
        """The names of the columns that are not read, without those of lists."""
        columns = self.told["columns"]
        return [c["name"] for c in columns if c["role"] is None and "<" not in c["type"]]


def written(
    labels: FoundInput,
    systems: Mapping[str, FoundInput],
    metrics: Sequence[str],
    options: Mapping[str, Any],
    today: Mapping[str, Any],
    by: Sequence[str],
    columns: Sequence[str],
    hint: str,
) -> str:
    """Return the text of a file.

    The systems are one, or the candidate and then its baseline. `options` are for the table of
    columns, `today` has the "metrics" and the "audit" of the candidate if they are known, `by` is
    what slices the queries and `columns` those that it names, and `hint` is about the baseline.
    """
    names = list(systems)
    cuts = columns or labels.unread()
    parts = [
        f"{_TOP}version = {VERSION}\n",
        f"{labels.comment()}labels = {toml_value(labels.path)}\n",
    ]
    if len(names) == 1:
        one = systems[names[0]]
        parts.append(f"{one.comment()}predictions = {toml_value(one.path)}\n")
    else:
        about = "".join(map(_comment, textwrap.wrap(hint, 98)))
        parts.append(f"{about}baseline = {toml_value(names[1])}  # a system below\n")
    parts.append(f"# 'rankmill metrics' lists all.\nmetrics = {toml_value(list(metrics))}\n")
    parts.append(_rules(metrics, today, len(names) > 1, cuts, on=bool(by)))
    sliced = f"by = {toml_value(list(by or cuts or ['label_count']))}"
    parts.append(_comment(_SLICES) + (f"{sliced}\n" if by else _comment(sliced)))
    for about, rest in _REST:
        free = (key for key in rest if key != "baseline" or len(names) == 1)
        there = [f"{key} = {rest[key]}" for key in free]
        parts += ["".join(map(_comment, [about, *there]))] if there else []
    if len(names) > 1:
        pairs = [(f"{_key(name)} = {toml_value(one.path)}", one) for name, one in systems.items()]
        lines = [f"{one.comment()}{line}\n" for line, one in pairs]
        parts.append("[systems]\n" + "".join(lines))
    parts.append(_columns(labels, systems[names[0]], options))
    parts.append("[semantics]\n# preset = \"trec_eval\"  # 'rankmill presets' lists all\n")
    return "\n".join(parts)


def _rules(
    metrics: Sequence[str],
    today: Mapping[str, Any],
    paired: bool,
    cuts: Sequence[str],
    *,
    on: bool,
) -> str:
    """Return two rules, and more as comments, with limits that the values of today keep.

    A rule for slices is on if `on` says so, and there is a baseline.
    """
    first, *others = metrics
    values, audit = today.get("metrics", {}), today.get("audit", {})
    rules = [_limit(first, values.get(first)) or f"{toml_value(f'{first} > 0')},"]
    more = [line for name in others if (line := _limit(name, values.get(name)))]
    if paired:
        more.insert(0, rules[0])
        rules = [f"{toml_value(f'{first} drop <= 1% confidence 0.95')},"]
        more.append('"queries change <= 10%",')
    lost = audit.get("queries_only_labelled", 0) / (audit.get("queries_labelled", 0) or 1)
    told = f"  # it is {100 * lost:.3g}% today" if today else ""
    most = min(99, max(1, math.ceil(110 * lost)))
    rules.append(f'"queries_only_labelled <= {most}%",{told}')
    more.append('"repeated_items <= 1%",')
    needs = "" if paired else '  # needs a baseline, such as baseline = "last" with a history'
    if not paired:
        more.append(f'"{first} drop <= 1% confidence 0.95",{needs}')
    if cuts and cuts[0].isidentifier():
        about = needs or "  # every slice; (unknown) if it is large enough"
        every = f'"{first}[{cuts[0]}=*] drop <= 5%",{about}'
        (rules if on and paired else more).append(every)
    lines = [f"  {line}\n" for line in rules] + [f"  # {line}\n" for line in more]
    about = _comment("What 'rankmill gate' checks; 'rankmill docs gate' has the grammar.")
    return f"{about}rules = [\n{''.join(lines)}]\n"


def _limit(name: str, value: float | None) -> str:
    """Return a rule a little below a value, which it tells; "" if there is nothing below."""
    if value is None or not math.isfinite(value) or value <= 0:
        return ""
    return f"{toml_value(f'{name} >= {_below(value)}')},  # it is {value:.6g} today"


def _below(value: float) -> str:
    """Return 95% of a value above 0, rounded down to two digits."""
    unit = 10.0 ** (math.floor(math.log10(value * 0.95)) - 1)
    return f"{math.floor(value * 0.95 / unit) * unit:.6g}"


def _columns(labels: FoundInput, predictions: FoundInput, options: Mapping[str, Any]) -> str:
    """Return the table of columns: what was told, and as comments what was found by its name."""
    lines = ["[columns]\n"]
    lines += [f"{name} = {toml_value(value)}\n" for name, value in options.items()]
    found = {}
    for side, prefix in ((labels, "label_"), (predictions, "")):
        for one in side.read():
            for role in one["role"].split(", "):
                found[f"{prefix if role in ('query', 'item') else ''}{role}"] = one["name"]
    for role in ("query", "item"):
        if role in found and found.get(f"label_{role}") == found[role]:
            del found[f"label_{role}"]
    for name, column in found.items():
        if name not in options:
            lines.append(_comment(f"{name} = {toml_value(column)}  # found by its name"))
    return "".join(lines)


def _comment(text: str) -> str:
    # A text of TOML has its escapes already; they are shown as they are.
    return f"# {visible(text).replace(chr(92) * 2, chr(92))}\n"


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
