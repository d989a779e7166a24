"""What the slices of a state come to: values, weighted sums, and how they merge and travel."""

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import pyarrow as pa

from rankmill.engine.segments import Key, check_slices, natural
from rankmill.errors import InputError, UsageError
from rankmill.metrics.aggregate import Ratio
from rankmill.metrics.aggregate import Value as Finished
from rankmill.metrics.records.state_rows import Row, damaged, field, text
from rankmill.metrics.sums import Term, TermProducts
from rankmill.results.slices import UNKNOWN, MetricOfSlice, WeightedSum, weighted_sum

Values = Mapping[str, Finished]
OfState = TypeVar("OfState")


def in_order(slices: Mapping[Key, OfState], by: tuple[str, ...]) -> dict[Key, OfState]:
    """Return slices as they are shown; UsageError if they are too many."""
    for name in by:
        check_slices([name], sum(of == name for of, _ in slices))
    order = sorted(slices, key=lambda key: (by.index(key[0]), natural(key[1])))
    return {key: slices[key] for key in order}


def merged(one: Mapping[Key, Any], other: Mapping[Key, Any]) -> dict[Key, Any]:
    """Return the slices of two states."""
    both = {**one}
    for key, state in other.items():
        both[key] = both[key].merge(state) if key in both else state
    return both


def packed(
    by: tuple[str, ...], sums: tuple[str, ...], slices: Mapping[Key, Any], moments: TermProducts
) -> dict[str, Any]:
    """Return the fields of a row; slices are the bytes of an Arrow stream with a row each."""
    if not (by or sums):
        return {}
    rows = [
        {"slice": value, "slice.by": name, **state.to_row()}
        for (name, value), state in in_order(slices, by).items()
    ]
    sink = pa.BufferOutputStream()
    table = pa.Table.from_pylist(rows)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    texts = {"by": "\n".join(by), "sums": "\n".join(sums)}
    return {**texts, "slices": bytes(sink.getvalue()), **moments.to_row()}


def unpacked(row: Row, read: Callable[[Row], OfState]) -> dict[str, Any]:
    """Return the fields of a state that `packed` wrote; UsageError if it wrote others."""
    if "slices" not in row:
        return {}
    by, sums = (tuple(text(row, name).splitlines()) for name in ("by", "sums"))
    try:
        rows = pa.ipc.open_stream(field(row, "slices")).read_all().to_pylist()
        found = {(one["slice.by"], one["slice"]): read(one) for one in rows}
    except (pa.ArrowException, TypeError, KeyError) as error:
        raise damaged(f"slices: {error}") from None
    if not {name for name, _ in found} <= {*by}:
        raise damaged("its slices are not those of by")
    moments = TermProducts.from_row(row)
    return {"by": by, "sums": sums, "slices": found, "moments": moments}


def rows_of(slices: Mapping[Key, tuple[int, Values]]) -> list[MetricOfSlice]:
    """Return the rows of `Result.by`."""
    return [
        MetricOfSlice(by, value, metric, one.value, one.standard_error, queries)
        for (by, value), (queries, values) in slices.items()
        for metric, one in values.items()
    ]


def sums_of(
    sums: Mapping[str, list[Term]],
    values: Values,
    slices: Mapping[Key, tuple[int, Values]],
    by: tuple[str, ...],
    moments: TermProducts,
    ratio: Callable[[Key | None, str], Ratio | None],
) -> dict[str, WeightedSum]:
    """Return weighted sums; those of means and micro-averages have an error."""
    found = {}
    linear = [*dict.fromkeys(one.place for each in sums.values() for one in each if one.linear)]
    for name, terms in sums.items():
        parts, weights = [], dict.fromkeys(linear, 0.0)
        ratios: dict[tuple[str, str, str], Ratio | None] = dict.fromkeys(linear)
        for one in terms:
            key = slice_of(name, one, slices, by)
            value = (slices[key][1] if key else values)[one.metric.text].value
            if value is None:
                raise InputError(f"the sum {name!r} has no value, as {one} has none")
            parts.append(one.weight * value)
            if one.linear:
                weights[one.place] += one.weight
                ratios[one.place] = ratio(key, one.metric.text)
        error = None
        if all(one.linear for one in terms):
            error = moments.standard_error([*weights.values()], [*ratios.values()])
        found[name] = weighted_sum(math.fsum(parts), error)
    return found


def check_terms(sums: Mapping[str, list[Term]], by: tuple[str, ...]) -> None:
    """Raise UsageError if a sum has a slice of what does not cut."""
    for name, terms in sums.items():
        for one in terms:
            if one.by and one.by not in by:
                there = f"slices are only of {', '.join(by)}" if by else "there are no slices"
                raise UsageError(
                    f"the sum {name!r} has {one}, but {there}: name {one.by!r} in --by"
                )


def slice_of(name: str, term: Term, slices: Mapping[Key, Any], by: tuple[str, ...]) -> Key | None:
    """Return the slice of a term of a sum; None for all queries."""
    check_terms({name: [term]}, by)
    if not term.by:
        return None
    key = term.by, None if term.value == UNKNOWN else term.value
    if key not in slices:
        texts = [UNKNOWN if value is None else value for of, value in slices if of == term.by]
        shown = ", ".join(texts[:10]) + (", ..." if len(texts) > 10 else "")
        raise InputError(
            f"the sum {name!r} has {term}, but no query that counts has {term.value!r} in "
            f"{term.by!r}; there are {shown}"
        )
    return key
