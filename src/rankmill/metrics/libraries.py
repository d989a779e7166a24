"""The names of metrics in other libraries: what to type here, or why there is none.

They stand in ``names.csv``, a row each, of one of these kinds:

- "named": what a library calls a metric, beside what its preset says;
- "computed": a name that a library exports, and what to type here (behind a semicolon, what else to
  choose);
- "refused": a name that a library exports, and why it is not computed;
- "anywhere": a name, in small letters, that is refused under every preset, and why: a measure of
  trec_eval and ir_measures that is not computed, or a name of one thing in one library and of
  another thing in the next;
- "written": a name of the field that no name here is nearly spelled like, and the name here;
- "under": a name, in small letters, that means something else in the library of a preset.
"""

from __future__ import annotations

import csv
import pkgutil
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from rankmill.metrics.base import REL, Metric
from rankmill.semantics.presets import PRESETS, preset_named


@cache
def tables() -> dict[str, dict[str, dict[str, str]]]:
    """Kind of rows -> library -> name -> text."""
    text = (pkgutil.get_data("rankmill.metrics", "names.csv") or b"").decode()
    found: dict[str, dict[str, dict[str, str]]] = {}
    for kind, library, name, told in csv.reader(text.splitlines()):
        found.setdefault(kind, {}).setdefault(library, {})[name] = told
    return found


def table(kind: str) -> dict[str, dict[str, str]]:
    """Library -> name -> text, of the rows of a kind."""
    return tables().get(kind, {})


def refused_anywhere() -> dict[str, str]:
    """Names, in small letters, that are no metric under any preset, and why."""
    return table("anywhere")[""]


def refused_elsewhere(name: str) -> str:
    """Why a name of these libraries is not a metric here, "" if none is called so."""
    found = dict(_texts_of(name, "refused"))
    return "; ".join(f"in {library}, {why}" for library, why in found.items())


def _texts_of(name: str, kind: str) -> list[tuple[str, str]]:
    """The library and the text of each row with a name, in whatever letters."""
    rows = [(library, *one) for library, names in table(kind).items() for one in names.items()]
    return [(library, told) for library, one, told in rows if one.lower() == name.lower()]


def told_under(semantics: Any, metric: Metric) -> str:
    """What a name means in the library of a preset, if it means something else there, or "".

    `semantics` are as given: the name of a preset, or a mapping or `Semantics` with one.
    """
    preset = preset_named(semantics)
    told = semantics if isinstance(semantics, Mapping) else getattr(semantics, "__dict__", {})
    unpredicted = told.get("unpredicted")
    name = re.split(r"[(@:]|_\d", metric.text)[0].strip().lower()
    given = dict(metric.given).keys()
    says_which = {
        ("lenskit", "rbp"): given - {REL.name},
        ("ranx", "rbp"): given & {REL.name},
        ("torchmetrics", "fallout"): told.get("no_relevant"),
        ("recommenders", "map"): metric.k,
        ("recommenders", "ndcg"): (unpredicted or "skip") != "skip",
    }
    if not preset or says_which.get((preset, name)):
        return ""
    return table("under").get(preset, {}).get(name, "")


def here_for(name: str) -> str:
    """What to type for a name of the libraries of presets, as "map@k for that of spark", or ""."""
    found: dict[str, list[str]] = {}
    for library, preset in PRESETS.items():
        for metric, there in preset.metrics.items():
            uncut = f"{metric}@k" in preset.metrics
            if re.split(r"[(@]", there)[0].lower() == name.lower() and not uncut:
                found.setdefault(metric, []).append(library)
    for library, here in [] if found else _texts_of(name, "computed"):
        found.setdefault(here.replace(";", " with"), []).append(library)
    return " or ".join(f"{metric} for that of {' and '.join(of)}" for metric, of in found.items())


def parameter_elsewhere(text: str, name: str, value: str) -> str:
    """What to type for a parameter that other libraries have and metrics here do not, else ""."""
    bare, level = re.sub(r"\([^()]*\)", "", text).strip(), value.strip("'\"")
    if name.isdigit() or name in ("k", "top_k", "n", "cutoff"):
        return f"type {bare}@{level or name}"
    if name == "dcg" and level != "exp-log2":
        return f"type {bare}"
    if name == "rel":
        return f"type NumRelRet(rel={level})" if bare.lower() == "numret" else ""
    if name in ("dcg", "gains"):
        found = re.search(r"{([^{}]*)}", text)
        worth = "exp" if found is None else re.sub(r"\s", "", found[1]).replace(":", "=")
        return (
            f"type {bare} with --gain-function {worth} on the command line, "
            f"Semantics(gain_function={worth!r}) in Python"
        )
    said = {
        "judged_only": f"type {bare} with --judged-only",
        "relative": "type set_relative_p",
        "max_rel": f"type max={level} in its place",
        "min_rel": "the least gain is 0: leave it out",
    }
    return said.get(name, "")
