"""What an evaluation will read and hold, told from footers before anything is read."""

from collections.abc import Iterable, Mapping
from typing import Any

from rankmill.engine.evaluate import evaluate
from rankmill.engine.job import make_job, open_job
from rankmill.engine.memory import bytes_of_all, bytes_of_groups, id_ranges, is_text
from rankmill.engine.options import options_of, split_options
from rankmill.metrics.defaults import DEFAULT_METRICS
from rankmill.sources.inputs import Input
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


@options_of(evaluate)
def plan(
    labels: Any,
    predictions: Any,
    metrics: str | Iterable[str] = DEFAULT_METRICS,
    **options: Any,
) -> dict[str, Any]:
    """Tell what `evaluate` with the same arguments will read and hold; reads footers only.

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
    labels, predictions, metrics, **options
        As for `evaluate`.

    Returns
    -------
    dict
        "labels" and "predictions": source, files, rows, values, bytes (to read, compressed), shape,
        columns; "memory": bytes expected at the peak; "threads".

    Raises
    ------
    InputError, UsageError
        As `evaluate`, as far as footers tell.

    Examples
    --------
    >>> import pyarrow as pa
    >>> labels = pa.table({"user_id": [7, 8], "items": [[1, 2], [3]]})
    >>> plan(labels, labels, ["map"])["labels"]["values"]
    3
    """
    whole = plan_runs(labels, {"": predictions}, metrics, **options)
    return whole | {"predictions": whole["predictions"][""]}


@options_of(evaluate)
def plan_runs(
    labels: Any,
    runs: Mapping[str, Any],
    metrics: str | Iterable[str] = DEFAULT_METRICS,
    **options: Any,
) -> dict[str, Any]:
    """As `plan`, for `evaluate_runs`; "predictions" is a dict by name."""
    columns, resources, choices = split_options(options)
    job = make_job(metrics, **choices)
    label_input, inputs = open_job(job, labels, runs, columns)
    threads, memory = thread_count(resources["threads"]), job.memory
    described = {name: _described(one) for name, one in inputs.items()}
    of_labels = _described(label_input)
    needed = BASE + threads * A_THREAD
    if is_text(label_input, "query") or is_text(label_input, "item"):
        needed += threads * A_THREAD
    if job.keep_values:
        needed += 8 * of_labels["rows"] * len(job.per_query)
    extra = 0
    for name, one in inputs.items():
        confidences = 8 * described[name]["values"] * len(job.pooled)
        held = min(memory, confidences) + (COUNTING if job.pooled else 0)
        if not one.columns.wide:
            held += min(memory, one.source.rows * BYTES_A_ROW)
        ranges = id_ranges(label_input, one, job)
        if ranges:
            held += max(bytes_of_groups(label_input, each.labels) for each in ranges)
            held += NOT_GIVEN_BACK
        else:
            held += bytes_of_all(label_input)
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
