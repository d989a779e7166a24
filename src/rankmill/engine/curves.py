"""Metrics at several cutoffs as lines over these, such as precision over recall."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from rankmill.errors import UsageError
from rankmill.metrics.registry import parse
from rankmill.results.curves import curves_of
from rankmill.results.result import Result
from rankmill.show.pictures import Picture
from rankmill.show.value_lines import picture_of_lines

AT_CUTOFFS = "a metric at several cutoffs, such as map@1..100, or pr"


def cuts_of(metrics: Iterable[str]) -> dict[str, dict[float, str]]:
    """Return the metrics that are at several cutoffs: title -> cutoff -> name.

    Examples
    --------
    >>> cuts_of(["map@1", "mrr", "map@5", "iprec@0.5", "iprec@1"])
    {'map': {1: 'map@1', 5: 'map@5'}, 'iprec': {0.5: 'iprec@0.5', 1.0: 'iprec@1'}}
    """
    found: dict[str, dict[float, str]] = {}
    for text in metrics:
        one = parse(text)
        if one.cut is not None:
            at = one.spec.at.name if one.spec.at else ""
            given = ",".join(f"{name}={value:g}" for name, value in one.given if name != at)
            title = one.name + (f"({given})" if given else "")
            title += f":{one.summary}" if one.summary else ""
            found.setdefault(title, {})[one.cut] = text
    return {title: of for title, of in found.items() if len(of) > 1}


def curve_rows(results: Mapping[str, Result]) -> pa.Table:
    """Return all curves as rows: those over cutoffs, and those that metrics are made of."""
    first = next(iter(results.values()))
    rows = [
        {"system": name, "metric": title, "cutoff": float(cut), "value": one.metrics[text],
         "standard_error": one.standard_errors[text]}
        for name, one in results.items()
        for title, of in cuts_of(first.metrics).items()
        for cut, text in sorted(of.items())
    ]  # fmt: skip
    kinds = dict.fromkeys(("system", "metric"), pa.string())
    kinds |= dict.fromkeys(("cutoff", "value", "standard_error"), pa.float64())
    table = pa.Table.from_pylist(rows, pa.schema(kinds))
    parts = [table if len(results) > 1 else table.drop_columns("system")] if rows else []
    if first.curves:
        parts.append(curves_of({name: one.curves for name, one in results.items()}))
    return pa.concat_tables(parts, promote_options="permissive")


def curve_picture(results: Mapping[str, Result]) -> Picture:
    """Return a picture of the curves over cutoffs; UsageError if there are none."""
    lines = {
        title: {
            name: {cut: (one.metrics[text], None) for cut, text in of.items()}
            for name, one in results.items()
        }
        for title, of in cuts_of(next(iter(results.values())).metrics).items()
    }
    if not lines:
        raise UsageError(f"there is no picture of a Results without {AT_CUTOFFS}")
    over = "recall" if set(lines) == {"iprec"} else "cutoff"
    return picture_of_lines(lines, f"{'Precision' if over == 'recall' else 'Value'} by {over}")
