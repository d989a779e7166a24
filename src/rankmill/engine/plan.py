"""What an evaluation will read and hold in memory, estimated from footers only."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from rankmill.engine.catalogue_inputs import beside, described_beside, opened
from rankmill.engine.job import Job, open_job, parse_job, runs_of
from rankmill.engine.memory import (
    bytes_at_once,
    bytes_of_all,
    bytes_of_items,
    bytes_of_vectors,
    id_ranges,
    is_text,
    items_at_most,
    room_beside,
)
from rankmill.metrics.aggregate import Sizes
from rankmill.metrics.defaults import DEFAULT_METRICS
from rankmill.semantics.semantics import Counting
from rankmill.sources.input_options import FRUGAL, MEMORY
from rankmill.sources.inputs.inputs import Input, bytes_ahead
from rankmill.sources.nouns import Catalogue, Labels
from rankmill.sources.rows.long import BYTES_A_ROW
from rankmill.threads import thread_count

# The bytes of Python, NumPy, numba, pyarrow and the compiled kernels.
BASE = 200 << 20
# The bytes of the batches that each thread reads, matches and scores; twice as much for strings.
# Within little memory, batches of Parquet files are smaller, and fewer wait.
A_THREAD, FRUGAL_THREAD = 72 << 20, 20 << 20


def plan(
    labels: Any,
    predictions: Any,
    metrics: str | Iterable[str] = DEFAULT_METRICS,
    *,
    semantics: Counting = "default",
    catalogue: Catalogue | None = None,
    threads: int | None = None,
    memory: int = MEMORY,
    per_query: bool = True,
) -> dict[str, Any]:
    """Show what `evaluate` with the same arguments would read and hold, from file footers only.

    The expected peak of memory is the sum of:

    - 200 MiB, and for each thread 72 MiB, or 20 MiB if `memory` is less than 512 MiB and all inputs
      are Parquet files; twice as much for a thread if ids are strings;
    - 64 MiB of predictions read ahead, if they are in files, there is more than one thread, and
      `memory` is at least 512 MiB;
    - 35 bytes for each labeled query, 56 more for its weight, and 8 for each label (16 if it has a
      gain);
    - for each string in the labels 24 bytes more, or 8 and its bytes in the file if these are more
      than 16;
    - 8 bytes for each query and metric, if values of each query are kept;
    - for gap, 15 bytes for each prediction and 48 for each label, but at most what the labels leave
      of `memory` and a quarter of it, or half of that with metrics over a catalogue;
    - for long predictions 96 bytes for each row, but at most what the labels leave of `memory`;
    - for lists with an average of more than a million items, 64 bytes for each item of one;
    - the interactions of `train`, as labels; 24 bytes for each item of `items` and `features`, and
      16 for each number of a vector, half of them while it is read;
    - for metrics over a catalogue, but at most `memory`, or half of it with gap, on each thread,
      72 bytes for each item, 24 more for each cutoff, and three times its text, but on all threads
      together for no more items than there are predictions; twice as much for coverage_of_labels.
      Without `items` and `features`, the number of items is a bound, and so is the peak: as many as
      there are labels and predictions, or integers between the lowest and the highest in the
      footers. Of text, a bound is only known for Parquet files; for others this is left out.

    Other arrays that grow may take an eighth more. Labels of more than half of `memory` are held in
    ranges if no values of each query are kept and the row groups of both sides are sorted by query
    id. A range takes half of `memory` (at least 32 MiB, and at least one row group).

    Parameters
    ----------
    labels, predictions, metrics, semantics, catalogue, threads, memory, per_query
        As for `evaluate`.

    Returns
    -------
    dict
        "labels" and "predictions": source, files, rows, values, bytes (compressed, to read), shape,
        columns, unread (the columns that are not read, if any), rules (those that read each
        column), and so "train", "items" and "features", if given; "memory": the expected peak in
        bytes; "least": how many bytes `memory` has to allow, or files are refused that need more
        than 64 MiB; "counts", if metrics over a catalogue count items: "items" (None if not
        known), "most" (a bound of them; None if there is none) and the "bytes" of one on all
        threads; "threads"; "scope": `rel`, `depth`, `judged_only` and `weight`.

    Raises
    ------
    InputError, UsageError
        As `evaluate`, if footers are enough to find the error.

    Examples
    --------
    >>> import pyarrow as pa
    >>> labels = pa.table({"user_id": [7, 8], "items": [[1, 2], [3]]})
    >>> plan(labels, labels, ["map"])["labels"]["values"]
    3
    """
    how = semantics, catalogue, threads, memory, per_query
    whole = plan_runs(labels, {"": predictions}, metrics, *how)
    return whole | {"predictions": whole["predictions"][""]}


def plan_runs(
    labels: Any,
    runs: Mapping[str, Any],
    metrics: str | Iterable[str] = DEFAULT_METRICS,
    semantics: Counting = "default",
    catalogue: Catalogue | None = None,
    threads: int | None = None,
    memory: int = MEMORY,
    per_query: bool = True,
) -> dict[str, Any]:
    """Do the same as `plan` for `evaluate_runs`; "predictions" is a dict by name of the system."""
    given, systems = Labels.of(labels), runs_of(runs)
    how: Any = {"memory": memory, "keep_values": per_query}
    job = parse_job(metrics, given, semantics, catalogue, **how)
    with open_job(job, given, systems) as (label_input, inputs):
        return _plan(job, label_input, inputs, catalogue, thread_count(threads))


def _plan(
    job: Job,
    label_input: Input,
    inputs: Mapping[str, Input],
    catalogue: Catalogue | None,
    threads: int,
) -> dict[str, Any]:
    memory = job.memory
    described = {name: _described(one) for name, one in inputs.items()}
    of_labels = _described(label_input)
    several = label_input, *inputs.values()
    frugal = memory < FRUGAL and all(one.source.format == "parquet" for one in several)
    a_thread = FRUGAL_THREAD if frugal else A_THREAD
    text = is_text(label_input, "query") or is_text(label_input, "item")
    needed = BASE + threads * a_thread * (1 + text)
    if job.keep_values:
        needed += 8 * (of_labels["rows"] or 0) * len(job.values_kept) * len(inputs)
    more, beside_them, items, size = _beside(catalogue, label_input, memory)
    extra, least, whole = 0, 0, bytes_of_all(label_input)
    none, most = Sizes(0, 0, 0, 0, threads, memory), 0
    an_item = _needed(job, none._replace(items=1)) - _needed(job, none)
    if an_item and not items:
        most, size = _most_items(label_input, inputs)
    for name, one in inputs.items():
        ranges = id_ranges(label_input, one, job, whole)
        held, a_list = bytes_at_once(label_input, one, ranges, whole)
        left, values = room_beside(held, memory), described[name]["values"]
        share = replace(job, memory=left).share
        least = max(least, held, a_list)
        held += 0 if ranges else bytes_ahead(one, memory, threads)
        sizes = Sizes(values, of_labels["values"], items or most, size, threads, share)
        held += _needed(job, sizes)
        if not one.columns.wide:
            held += min(left, (one.source.rows or values) * BYTES_A_ROW)
        extra = max(extra, held + max(0, a_list - A_THREAD))
    if an_item:
        more["counts"] = {"items": items or None, "most": most or None, "bytes": an_item}
    return {
        "labels": of_labels,
        "predictions": described,
        **more,
        "threads": threads,
        "memory": needed + extra + beside_them,
        "least": least,
        "scope": job.scope.to_dict(),
    }


def _most_items(labels: Input, inputs: Mapping[str, Input]) -> tuple[int, int]:
    """Return how many items a system and the labels have at most, and their texts; or 0, 0."""
    bounds = [items_at_most([labels, one]) for one in inputs.values()]
    counts, texts = zip(*bounds, strict=True)
    return (max(counts), max(texts)) if all(counts) else (0, 0)


def _needed(job: Job, sizes: Sizes) -> int:
    """Return the bytes of what the metrics need."""
    return sum(need.bytes(asked, sizes) for need, asked in job.needs.items())


def _beside(
    catalogue: Catalogue | None, labels: Input, memory: int
) -> tuple[dict[str, Any], int, int, int]:
    """Return what is told of the training set and the catalogue, their bytes, items, and texts."""
    told: dict[str, Any] = {}
    held = items = text = 0
    for name, opener in beside(catalogue, labels, memory).items():
        with opened(name, opener, labels) as one:
            told[name] = described_beside(name, one) | _sizes(one)
            held += bytes_of_all(one) if name == "train" else bytes_of_items(one)
            if name != "train" and not items:
                items, size = one.source.sizes([one.columns.item])[one.columns.item]
                text = size if is_text(one, "item") else 0
            if name == "features":
                held += bytes_of_vectors(one)
    return told, held, items, text


def _described(one: Input) -> dict[str, Any]:
    return one.described() | _sizes(one) | {"rules": one.source.findings.rules()}


def _sizes(one: Input) -> dict[str, Any]:
    names = filter(None, [*one.columns.names(), *one.columns.facts])
    sizes = one.source.sizes(list(dict.fromkeys(names)))
    return {
        "values": sizes[one.columns.item][0],
        "bytes": sum(size for _, size in sizes.values()),
    }
