"""What an evaluation will read and hold, told from footers before anything is read."""

from collections.abc import Iterable, Mapping
from typing import Any

from rankmill.engine.job import Plan
from rankmill.engine.memory import bytes_of_groups, id_ranges, is_text, label_bytes
from rankmill.errors import UsageError
from rankmill.metrics.registry import DEFAULT_METRICS, parse_all
from rankmill.semantics.choices import Semantics
from rankmill.semantics.presets import semantics_of
from rankmill.sources.inputs import MEMORY, Input, open_inputs
from rankmill.sources.long import BYTES_A_ROW
from rankmill.threads import thread_count

# Python, NumPy, numba, pyarrow and the compiled kernels.
BASE = 230 << 20
# Batches that are read, matched and scored, by each thread; twice as much where ids are strings.
A_THREAD = 64 << 20
# Confidences that are being sorted and counted.
COUNTING = 128 << 20
# What the allocator does not give back of the ranges of queries before.
NOT_GIVEN_BACK = 128 << 20


def plan(
    labels: Any,
    runs: Mapping[str, Any],
    metrics: str | Iterable[str] = DEFAULT_METRICS,
    *,
    semantics: str | Semantics | Mapping[str, str] = "default",
    threads: int | None = None,
    memory: int = MEMORY,
    per_query: bool = True,
    **columns: Any,
) -> dict[str, Any]:
    """Tell what `evaluate_runs` with the same arguments will read and hold; reads footers only.

    Peak memory is, in bytes, about ``230 MiB + 64 MiB a thread + 35 a labelled query + 8 a label +
    8 a query and metric if values per query are kept``; for strings 64 MiB more a thread, and for
    each in the labels 24 more, or 8 and its bytes in the file if these are more than 16; for gap up
    to `memory` and 128 MiB for counting; for long predictions `memory` at most, or 96 a row if that
    is less; for gains 8 more a label. Arrays that grow may hold an eighth more. If labels take
    more than `memory`, row groups are sorted by query id on both sides, and no values per query are
    kept, then only labels of `memory` bytes are held at a time (of 32 MiB at least, or of a row
    group if they take more), and 128 MiB more are for what is not given back between ranges.

    Parameters
    ----------
    labels, runs, metrics, semantics, threads, memory, per_query
        As for `evaluate_runs`.
    **columns
        The columns, as for `evaluate_runs`.

    Returns
    -------
    dict
        "labels" and "predictions" (a dict by name): source, files, rows, values, bytes (to read,
        compressed), shape, columns; "memory": bytes expected at the peak; "threads".

    Raises
    ------
    InputError, UsageError
        As `evaluate_runs`, as far as footers tell.

    Examples
    --------
    >>> import pyarrow as pa
    >>> labels = pa.table({"user_id": [7, 8], "items": [[1, 2], [3]]})
    >>> plan(labels, {"system": labels}, ["map"])["labels"]["values"]
    3
    """
    asked = parse_all(metrics)
    if columns.pop("gain_function", "linear") not in ("linear", "exp"):
        raise UsageError("gain_function is 'linear' or 'exp'")
    semantics = semantics_of(semantics)
    pooled = [metric for metric in asked if not metric.spec.kernel]
    to_do = Plan(
        [metric for metric in asked if metric.spec.kernel], pooled, per_query, memory, semantics
    )
    label_input, inputs = open_inputs(
        labels, runs, need_score=bool(pooled), semantics=semantics, **columns
    )
    threads = thread_count(threads)
    described = {name: _described(one) for name, one in inputs.items()}
    of_labels = _described(label_input)
    needed = BASE + threads * A_THREAD
    if is_text(label_input, "query") or is_text(label_input, "item"):
        needed += threads * A_THREAD
    if per_query:
        needed += 8 * of_labels["rows"] * len(to_do.per_query)
    extra = 0
    for name, one in inputs.items():
        confidences = 8 * described[name]["values"] * len(pooled)
        held = min(memory, confidences) + (COUNTING if pooled else 0)
        if not one.columns.wide:
            held += min(memory, one.source.rows * BYTES_A_ROW)
        ranges = id_ranges(label_input, one, to_do)
        if ranges:
            held += max(bytes_of_groups(label_input, each.labels) for each in ranges)
            held += NOT_GIVEN_BACK
        else:
            held += _bytes_of_all(label_input)
        extra = max(extra, held)
    return {
        "labels": of_labels,
        "predictions": described,
        "threads": threads,
        "memory": needed + extra,
    }


def _described(one: Input) -> dict[str, Any]:
    sizes = one.source.sizes(one.columns.names())
    return one.described() | {
        "values": sizes[one.columns.item][0],
        "bytes": sum(size for _, size in sizes.values()),
    }


def _bytes_of_all(labels: Input) -> int:
    """What all labels take when they are held."""
    query, item = labels.columns.query, labels.columns.item
    sizes = labels.source.sizes([query, item])
    values, item_bytes = sizes[item]
    return label_bytes(labels, labels.source.rows, values, sizes[query][1], item_bytes)
