"""Hypothesis strategies for whole inputs, and their translation into every shape rankmill reads.

A Case is the input of the oracle: ``labels`` and ``predictions`` are dicts from a query to a list
of (item, gain) or (item, confidence). An item may be None (a null item), and a list may be None (a
null list). The helpers below turn both sides into wide and long tables and Ragged arrays.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import hypothesis
import pyarrow as pa
import pytest
from hypothesis import strategies as st

import catalogue_oracle
import oracle
import oracle_confidence
from rankmill.arrays import Ragged
from rankmill.sources.meaning.looks import MISSING

INTEGER_TYPES = [
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.uint8(),
    pa.uint16(),
    pa.uint32(),
    pa.uint64(),
]
STRING_TYPES = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.dictionary(pa.int32(), pa.string()),
    pa.dictionary(pa.int8(), pa.large_string()),
]
# Hard cases: -1 and 2**64 - 1 have the same bits, like 2**63 and -2**63; 255 and 256 end in them.
INTEGERS = [0, 1, -1, 2**64 - 1, 2**63, -(2**63), 255, 2, 256, 127, -128, 3, 2**31, 2**32]
INTEGERS += [2**63 - 1, -2]
PREFIX = "the-same-first-twelve-bytes-and-more/"
# Blanks and words for a missing value are told apart by exact_ids alone.
STRINGS = [
    "n",
    "a",
    "ab",
    "a\0",
    "A",
    "0",
    "00",
    "\N{NO-BREAK SPACE}a",
    "é",
    "e\u0301",
    "日本語",
    "🦀",
]
STRINGS += [PREFIX, PREFIX + "1", PREFIX + "2", PREFIX * 3]
# All are exact in float32, so float32 and float64 give the same order and the same ties.
CONFIDENCES = [float("-inf"), -1.5, -0.0, 0.0, 0.25, 0.5, 1.0, float("inf")]
GAINS = [-1.0, 0.0, 0.5, 1.0, 2.0, 3.0]
CUTOFFS = [1, 2, 3, 5, 12, 1000]

Side = dict[Any, Any]


@dataclass(frozen=True)
class Case:
    """One input, and the Arrow types of its four id columns."""

    labels: Side
    predictions: Side
    graded: bool
    label_query: pa.DataType
    label_item: pa.DataType
    prediction_query: pa.DataType
    prediction_item: pa.DataType
    confidence: pa.DataType


def fits(value: Any, kind: pa.DataType) -> bool:
    """Return whether an integer or string fits the type."""
    if not pa.types.is_integer(kind):
        return isinstance(value, str)
    low, high = (-(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1))
    if pa.types.is_unsigned_integer(kind):
        low, high = 0, 2**kind.bit_width
    return low <= value < high


def id_types(draw: st.DrawFn) -> tuple[pa.DataType, pa.DataType]:
    """Types of one id on both sides: both integers, or both strings."""
    types = draw(st.sampled_from([INTEGER_TYPES, STRING_TYPES]))
    return draw(st.sampled_from(types)), draw(st.sampled_from(types))


@st.composite
def cases(draw: st.DrawFn, graded: bool | None = None, nulls: bool = True) -> Case:
    """Make Ragged inputs with every legal odd case; they have at least one label and one row."""
    label_query, prediction_query = id_types(draw)
    label_item, prediction_item = id_types(draw)
    strings = not pa.types.is_integer(label_item)
    items = draw(
        st.lists(st.sampled_from(STRINGS if strings else INTEGERS), min_size=1, max_size=5)
    )
    items += STRINGS[:1] if strings else [0]  # 0 fits every type, so each side has an item
    all_queries = INTEGERS if pa.types.is_integer(label_query) else STRINGS
    if graded is None:
        graded = draw(st.booleans())
    gain = st.sampled_from(GAINS) if graded else st.just(1.0)
    confidence = st.sampled_from(CONFIDENCES)

    def side(query: pa.DataType, item: pa.DataType, second: st.SearchStrategy[float]) -> Side:
        known = [value for value in items if fits(value, item)]
        one = st.tuples(st.sampled_from([*known, *known, None] if nulls else known), second)
        # one_of would make null lists as frequent as full ones.
        kind = st.sampled_from(["full"] * 6 + ["short"] + ["null"] * nulls)
        some = kind.flatmap(
            lambda which: {
                "full": st.lists(one, min_size=2, max_size=9),
                "short": st.lists(one, max_size=1),
                "null": st.none(),
            }[which]
        )
        # There are few possible queries, so most queries are on both sides.
        queries = [value for value in all_queries if fits(value, query)][:5]
        keys = draw(st.lists(st.sampled_from(queries), min_size=2, max_size=5, unique=True))
        return {key: draw(some) for key in keys}

    labels = side(label_query, label_item, gain)
    predictions = side(prediction_query, prediction_item, confidence)
    if not any(map(oracle.label_gains, labels.values())):
        first = next(iter(labels))
        labels[first] = [*(labels[first] or []), (items[-1], 1.0)]
    confidence_type = draw(st.sampled_from([pa.float64(), pa.float32()]))
    return Case(
        labels,
        predictions,
        graded,
        label_query,
        label_item,
        prediction_query,
        prediction_item,
        confidence_type,
    )


def plain(case: Case) -> Case:
    """Return the case without null items, null lists and empty lists, which some shapes lack."""
    labels = {
        query: [(item, gain) for item, gain in listed or [] if item is not None]
        for query, listed in case.labels.items()
    }
    predictions = {
        query: oracle.prediction_pairs(listed) for query, listed in case.predictions.items()
    }
    return replace(
        case,
        labels={query: listed for query, listed in labels.items() if listed},
        predictions={query: listed for query, listed in predictions.items() if listed},
    )


def aligned(case: Case) -> Case:
    """Return the case as Ragged has it: queries by position, empty lists for missing ones."""
    bare = plain(case)
    queries = list(dict.fromkeys([*bare.labels, *bare.predictions]))
    return replace(
        case,
        labels={i: bare.labels.get(query, []) for i, query in enumerate(queries)},
        predictions={i: bare.predictions.get(query, []) for i, query in enumerate(queries)},
        label_query=pa.int64(),
        prediction_query=pa.int64(),
    )


# ------------------------------------------------------------------ Arrow


def array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """An Arrow array, dictionary types included."""
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(values, kind)


def lists(
    values: Sequence[Sequence[Any] | None],
    kind: pa.DataType,
    list_type: Callable[[pa.DataType], pa.DataType] = pa.list_,
) -> pa.Array:
    """Make an array of lists of any list type; a null list may hide values, as Arrow allows."""
    flat: list[Any] = []
    offsets, sizes = [], []
    for listed in values:
        offsets.append(len(flat))
        sizes.append(len(listed or []))
        flat += listed or []
        if listed is None and flat:
            flat.append(flat[0])
            sizes[-1] = 1
    offsets.append(len(flat))
    content = array(flat, kind)
    wanted = list_type(kind)
    mask = pa.array([listed is None for listed in values], pa.bool_())
    if pa.types.is_fixed_size_list(wanted):
        return pa.FixedSizeListArray.from_arrays(content, wanted.list_size)
    if pa.types.is_list(wanted):
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), content, mask=mask)
    if pa.types.is_large_list(wanted):
        return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), content, mask=mask)
    large = wanted.id == pa.large_list_view(pa.int8()).id
    index = pa.int64() if large else pa.int32()
    view = pa.LargeListViewArray if large else pa.ListViewArray
    return view.from_arrays(
        pa.array(offsets[:-1], index), pa.array(sizes, index), content, mask=mask
    )


def _halves(side: Side) -> tuple[list[Any], list[Any]]:
    first = [None if v is None else [item for item, _ in v] for v in side.values()]
    second = [None if v is None else [other for _, other in v] for v in side.values()]
    return first, second


def wide(
    side: Side,
    query: pa.DataType,
    item: pa.DataType,
    other: pa.DataType | None = None,
    other_name: str = "confidence",
    list_type: Callable[[pa.DataType], pa.DataType] = pa.list_,
) -> pa.Table:
    """One row a query: query_id, items and, if asked for, a list of gains or confidences."""
    items, others = _halves(side)
    columns = {"query_id": array(list(side), query), "items": lists(items, item, list_type)}
    if other is not None:
        columns[other_name] = lists(others, other, list_type)
    return pa.table(columns)


def wide_labels(case: Case, **options: Any) -> pa.Table:
    gain = pa.float64() if case.graded else None
    return wide(case.labels, case.label_query, case.label_item, gain, "gain", **options)


def wide_predictions(case: Case, **options: Any) -> pa.Table:
    return wide(
        case.predictions, case.prediction_query, case.prediction_item, case.confidence, **options
    )


Row = tuple[Any, Any, int, Any]


def rows(side: Side, shuffle: random.Random | None = None) -> list[Row]:
    """(query, item, rank, gain or confidence); ranks count null items, as a file's would."""
    out = [
        (query, item, rank, other)
        for query, listed in side.items()
        for rank, (item, other) in enumerate(listed or [], start=1)
    ]
    if shuffle is not None:
        shuffle.shuffle(out)
    return out


def long(
    listed: Sequence[Row],
    query: pa.DataType,
    item: pa.DataType,
    rank: pa.DataType | None = None,
    other: pa.DataType | None = None,
    other_name: str = "confidence",
) -> pa.Table:
    """One row a (query, item), with a column for the rank, the other value, both or neither."""
    columns = {
        "query_id": array([row[0] for row in listed], query),
        "item_id": array([row[1] for row in listed], item),
    }
    if rank is not None:
        columns["rank"] = array([row[2] for row in listed], rank)
    if other is not None:
        columns[other_name] = array([row[3] for row in listed], other)
    return pa.table(columns)


def long_labels(case: Case, listed: Sequence[Row]) -> pa.Table:
    gain = pa.float64() if case.graded else None
    return long(listed, case.label_query, case.label_item, other=gain, other_name="gain")


def long_predictions(
    case: Case, listed: Sequence[Row], rank: bool = True, confidence: bool = True
) -> pa.Table:
    return long(
        listed,
        case.prediction_query,
        case.prediction_item,
        pa.int32() if rank else None,
        case.confidence if confidence else None,
    )


def chunked(table: pa.Table, size: int) -> pa.Table:
    """The same rows, every column in chunks that are slices of one array."""
    return pa.concat_tables([table.slice(at, size) for at in range(0, len(table), size)])


def sliced(table: pa.Table) -> pa.Table:
    """Return the same rows as a slice of a longer table."""
    return pa.concat_tables([table, table, table]).combine_chunks().slice(len(table), len(table))


def ragged(side: Side, kind: pa.DataType, index: int = 0) -> Any:
    """A Ragged of the items (index 0) or of the gains or confidences (index 1) of a side."""

    values = [[pair[index] for pair in listed] for listed in side.values()]
    return Ragged.from_arrow(lists(values, kind))


# ------------------------------------------------------------------ metrics


GIVEN = {
    **{"rel": "rel=2", "p": "p=0.5", "beta": "beta=0.5", "max": "max=2", "t": "t=1.5"},
    **{"a": "a=0.5", "b": "b=-0.25", "c": "c=-1", "bins": "bins=4"},
    **{"items": "items=9", "by": "by=hits", "gamma": "gamma=0.5"},
}


def _given(name: str) -> str:
    if name not in GIVEN:
        raise LookupError(
            f'add to tests/support/strategies.py, GIVEN: "{name}": "{name}=VALUE", with another '
            "value than the default"
        )
    return GIVEN[name]


# At all cutoffs; the others at the first and the last.
EVERYWHERE = {"map", "first_hit", "precision", "recall", "hit", "f1", "ndcg", "dcg", "gap"}
SHARES = {"recall": ("0", "0.3", "1"), "times": ("0.2", "1", "1.8")}
SHARES |= {"precision": ("0.3", "0.5", "1")}


def metric_names(
    cutoffs: Sequence[int] = CUTOFFS, bare: bool = True, every: bool = False
) -> list[str]:
    """Every registered metric, at each of the cutoffs, and without one where that is allowed.

    But not those over a catalogue, which are of all lists together: see test_catalogue.py.

    Those with parameters also with them, at one of the cutoffs. Without `every`, those that the
    default semantics refuse are left out, at least where a query has no predictions. Those that
    need bounded confidences have tests of their own, and so have those of subtopics.
    """
    from rankmill.metrics.registry import REGISTRY, is_defined, parse
    from rankmill.semantics.choices import DEFAULT

    names = []
    for name, spec in REGISTRY.items():
        if name in catalogue_oracle.VALUES or name in oracle_confidence.BOUNDED:
            continue
        if spec.gains == "subtopics" or parse(spec.example).summary:
            continue  # the latter is no mean
        given = [_given(one.name) for one in spec.parameters if one is not spec.at]
        if spec.at is not None:
            names += [f"{name}@{share}" for share in SHARES[spec.at.name]]
            if given:
                names.append(f"{name}({','.join(given)})@{SHARES[spec.at.name][1]}")
            continue
        if spec.wanted:
            names.append(f"{name}({','.join(given)})@{cutoffs[:2][-1]}")
            continue
        if spec.cutoff != "required" and (bare or spec.cutoff == "none"):
            names.append(name)
        some = list(cutoffs) if name in EVERYWHERE else [*cutoffs[:1], *cutoffs[1:][-1:]]
        if spec.cutoff != "none":
            names += [f"{name}@{k}" for k in some]
        if given:
            at = "" if spec.cutoff == "none" else f"@{cutoffs[-1]}"
            names.append(f"{name}({','.join(given)}){at}")

    def refused(name: str) -> bool:
        metric = parse(name)
        return math.isnan(metric.spec.worst) or not is_defined(metric, DEFAULT)

    return [name for name in names if every or not refused(name)]


# ------------------------------------------------------------------ examples


def some(parameters: Iterable[Any], step: int) -> list[Any]:
    """Return parameters of a test: `scripts/test --all` takes all, other runs one in ``step``."""
    return [
        pytest.param(
            *(one if isinstance(one, tuple) else [one]), marks=[pytest.mark.long][: n % step]
        )
        for n, one in enumerate(parameters)
    ]


def storable(table: pa.Table) -> pa.Table:
    """Return views as plain strings, because Parquet files do not store views."""
    fields = []
    for field in table.schema:
        kind = field.type
        if pa.types.is_list(kind) and kind.value_type == pa.string_view():
            kind = pa.list_(pa.string())
        fields.append(field.with_type(pa.string() if kind == pa.string_view() else kind))
    return table.cast(pa.schema(fields))


def stands_for_itself(text: str) -> bool:
    """Whether an id has no spaces around, and doesn't stand for a missing value."""
    return text == text.strip() and text not in MISSING


def examples(count: int) -> int:
    """So many examples, or seeds, under `scripts/test --all`; otherwise a share of them."""
    return max(1, count * hypothesis.settings.default.max_examples // 40)
