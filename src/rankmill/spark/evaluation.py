"""Scoring DataFrames of Spark: the driver, the second pass, and the values of queries."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any, cast

import pyarrow as pa

from rankmill.engine.cuts import check_several
from rankmill.engine.finish import (
    catalogue_notes,
    limits_of,
    needs_items,
    nothing_in_common,
    per_query_table,
    reread_among,
)
from rankmill.engine.first_pass import run
from rankmill.engine.held_labels import HeldLabels, check_labelled
from rankmill.engine.job import Job
from rankmill.engine.slices import check_terms
from rankmill.engine.state import State
from rankmill.errors import InputError, UsageError, plural, spoken
from rankmill.metrics.base import NO_CUTOFF
from rankmill.metrics.gap.gap_counts import Among
from rankmill.metrics.sums import read_sums
from rankmill.results.result import WEIGHT, Result
from rankmill.sources.inputs.inputs import Input
from rankmill.sources.nouns import (
    Catalogue,
    Labels,
    Predictions,
)
from rankmill.sources.roles.streams import open_stream
from rankmill.spark.exchange.layout import Form, Side, arrow_schema, column, shuffled, spark_type
from rankmill.spark.exchange.returned_rows import Returned, packed, unpacked
from rankmill.spark.exchange.spark_request import SparkRequest, request_of, tasks_of
from rankmill.spark.exchange.tasks import (
    check_seen,
    collected,
    inputs_of,
    mapped,
    partition,
    score,
    seals_of,
    tell,
    with_training,
)
from rankmill.spark.slice_sides import check_derived, with_columns, with_known_items
from rankmill.threads import Workers


def request_to_evaluate(
    labels: Labels,
    runs: Mapping[str, Predictions],
    job: Job,
    partitions: int | None,
    catalogue: Catalogue | None,
) -> SparkRequest:
    """Check a request; tables of `by` become columns of the labels."""
    if job.cuts is None:
        return request_of(labels, runs, job, partitions, catalogue=catalogue)
    check_derived(job.cuts)
    if len(runs) > 1:
        check_several(job)
        if "list_length" in job.cuts.derived:
            raise UsageError(
                "by='list_length' uses the lists of the first system, which other tasks of Spark "
                "cannot see: evaluate one system at a time, or use rankmill.evaluate_runs"
            )
    if job.cuts.tables:
        _check_lists(job)
        plain = request_of(labels, runs, replace(job, cuts=None, by=(), sums=()), partitions)
        label_input = plain.inputs[0]
        frame, names = with_columns(plain.sides[0], job.cuts.tables, label_input, job.memory)
        cuts = job.cuts._replace(columns=(*job.cuts.columns, *names), tables=())
        # Columns that are found by their names must not be found in the tables.
        found = label_input.columns
        told: dict[str, Any] = {"item": found.item, "gain": found.gain}
        told = {role: one for role, one in told.items() if one in labels.data.columns}
        told |= {"query": labels.query or found.query, "binary": found.gain is None}
        labels = replace(labels, data=frame, **told)
        job = replace(job, cuts=cuts, by=(*cuts.columns, *cuts.derived))
        check_terms(read_sums(job.sums, job.scope.rel), job.by)
    return request_of(labels, runs, job, partitions, job.cuts.facts, catalogue)


def _check_lists(job: Job) -> None:
    """Raise UsageError if lists of queries without labels count, as tables are joined to labels."""
    shown = next((one.text for one in job.metrics if not one.spec.kernel), None)
    if shown is None and job.semantics.unlabelled != "skip":
        shown = f"unlabelled {job.semantics.unlabelled!r}"
    if shown is not None:
        raise UsageError(
            f"{shown} counts the lists of queries without labels, whose slices a table on Spark "
            "does not have: name a column of the labels in by, evaluate each slice alone, or all "
            "on one machine"
        )


def evaluate(request: SparkRequest) -> dict[str, Result]:
    """Return the result of each system, all of which are scored in one shuffle."""
    began = time.perf_counter()
    request = with_known_items(request)
    rows, form = request.rows(*range(len(request.sides)))
    task = partial(score, job=request.job, form=form)
    # A state without confidences is so small that the driver merges those of all partitions.
    returned = collected(rows, task, request.partitions if request.job.pooled else 0)
    found = {one.system: one for one in returned}
    results = {}
    for number, name in enumerate(request.names, 1):
        one = found.get(request.sides[number].system, Returned(0, value=State.of(request.job)))
        tell((request.inputs[0], request.inputs[number]), one.odd)
        result, _ = result_of(request, number, one.value, one.label_rows, one.rows, one.seals)
        results[name] = replace(result, seconds=time.perf_counter() - began)
        began = time.perf_counter()
    return results


def result_of(
    request: SparkRequest,
    number: int,
    state: State,
    label_rows: int,
    rows: int,
    seals: frozenset[int] = frozenset(),
) -> tuple[Result, dict[str, Among]]:
    """Return the result of a system, given its number, state and rows read; and its second pass."""
    _check_rows(request, number, state, label_rows, rows)
    among: dict[str, Among] = {}
    if state.two_passes:
        side, memory = request.sides[number], request.job.memory
        among = counted(state, request.frames[number], side, request.partitions, memory)
    both = request.inputs[0], request.inputs[number]
    result = state.result(among)
    result = replace(
        result,
        notes=[
            *result.notes,
            *nothing_in_common(result, partial(_examples, request, number)),
            *_ties(request, number, state),
            *(spoken(doubt) for one in both for doubt in one.columns.doubts),
            *(spoken(note) for one in both for note in one.source.findings.notes()),
            *catalogue_notes(request.job),
        ],
        inputs={
            "labels": request.inputs[0].described() | {"rows": label_rows},
            "predictions": request.inputs[number].described() | {"rows": rows},
            **({} if request.job.catalogue is None else request.job.catalogue.described),
        },
        per_query=per_query_frame(request, number, seals) if request.job.keep_values else None,
    )
    return result, among


def _examples(request: SparkRequest, number: int) -> str:
    """Return a query id of the labels and one of a system, which have none in common."""
    ids = []
    for one in (0, number):
        side, frame = request.sides[one], request.frames[one]
        found = frame.select(*(column(frame, name) for name in side.queries)).first()
        ids.append(found[0] if len(found) == 1 else (*found,))
    return f": the labels have {ids[0]!r}, the predictions {ids[1]!r}"


def _check_rows(request: SparkRequest, number: int, state: State, labels: int, rows: int) -> None:
    """Raise InputError where `rankmill.evaluate` does: without rows, or without a label."""
    whole = replace(request.job, part=False)
    for one, count, what in (
        (request.inputs[0], labels, "labels"),
        (request.inputs[number], rows, "predictions"),
    ):
        if not count:
            raise InputError(f"{one.source.name} holds no rows; expected {what}")
    check_labelled(request.inputs[0], whole, state.audit["queries_labelled"])


def _ties(request: SparkRequest, number: int, state: State) -> list[str]:
    """Return a note if items of a query are equal in what ranks them."""
    tied = state.audit["tied_ranks"]
    columns = request.inputs[number].columns
    if columns.wide or not tied:
        return []
    name = columns.rank if columns.rank is not None else columns.score
    return [
        f"{plural(tied, 'prediction', 'has', 'have')} the same {name} as another prediction of "
        "the query: on Spark they rank by item id, ascending; rankmill.evaluate ranks them in the "
        "order of the file"
    ]


# ------------------------------------------------------------------ the values of each query


def per_query_frame(request: SparkRequest, number: int, seals: frozenset[int] | None) -> Any:
    """Return a DataFrame with the values of each query that counts for a system.

    `seals` are those of the pass before, if there was one, whose rows it has to find again.
    """
    rows, form = request.rows(0, number, *request.training)
    names = [metric.text for metric in request.job.per_query]
    names += [WEIGHT] if request.job.scope.weight is not None else []
    query = request.inputs[0].columns.query
    (kind,) = request.inputs[0].id_types("query")
    fields = {"query" if query in names else query: spark_type(kind)}
    schema = pa.schema({**fields, **dict.fromkeys(names, pa.float64())})
    job = replace(request.job, keep_values=True, cuts=None, by=(), sums=())
    return mapped(rows, schema, _values, job, form, schema, seals)


def _values(
    batches: Iterator[Any], job: Job, form: Form, schema: Any, seals: frozenset[int] | None
) -> Iterator[Any]:
    """Yield the values of the queries of a partition, as in `schema`."""
    inputs = inputs_of(batches, form)
    labels = inputs.pop("")
    job = with_training(job, inputs)
    (predictions,) = inputs.values()
    with (
        Workers(1) as workers,
        closing(run(job, HeldLabels(labels), {"": predictions}, workers)) as tallies,
    ):
        tally = next(tallies)
        check_seen(seals_of(job, [tally.state]), seals)
        found = per_query_table(tally, labels, predictions)()
    yield from found.rename_columns(schema.names).cast(schema).to_batches()


# ------------------------------------------------------------------ the second pass of gap


def count(
    batches: Iterator[Any], sent: bytes, side: Side, schema: Any, memory: int
) -> Iterator[Returned]:
    """Yield the counts of all metrics over the predictions of a partition.

    The name of the metric stands in the place of the system. `sent` is the merged state of all
    partitions, packed, which Spark sends to each executor once.
    """
    state: State = unpacked(sent)
    if _is_shuffled(state, side):
        one = inputs_of(batches, Form([side], schema))[side.system]
    else:
        tables = (pa.Table.from_batches([b]).rename_columns(schema.names) for b in batches)
        names = _names(state, side)
        read = (one for table in tables for one in side.read(table, names).to_batches())
        kind = side.read(schema.empty_table(), names).schema
        source = open_stream(side.name, kind, lambda asked: (b.select(asked) for b in read))
        one = Input(source, side.columns)
    with closing(one.source), Workers(1) as workers:
        found = reread_among(state, one, workers, memory, checksum=True)
    for name, among in found.items():
        yield Returned(partition(), name, among)


def _is_shuffled(state: State, side: Side) -> bool:
    """Whether the rows of a query have to be together, as some of its predictions do not count."""
    cut = any(limit < NO_CUTOFF for limit in limits_of(state).values())
    return not side.columns.wide and (cut or needs_items(state))


def _names(state: State, side: Side) -> list[str]:
    """The columns that are read in place: all of them if items do not count by their confidence."""
    return side.columns.names() if needs_items(state) else [str(side.columns.score)]


def counted(state: State, frame: Any, side: Side, partitions: int, memory: int) -> dict[str, Among]:
    """Return the counts of the second pass over the predictions of a system."""
    if _is_shuffled(state, side):
        rows = shuffled([frame], [side], partitions)
        schema = arrow_schema(rows)
    else:
        # Spark does not find a column of a name with backticks when it maps rows.
        made_of = side.rows.needed(side.source, _names(state, side))
        several = enumerate(made_of)
        rows = frame.select(*(column(frame, name).alias(f"c{place}") for place, name in several))
        partitions = tasks_of(rows) or partitions
        schema = arrow_schema(rows).empty_table().rename_columns(made_of).schema
    task = partial(count, sent=packed(state), side=side, schema=schema, memory=memory)
    found = {one.system: one.value for one in collected(rows, task, partitions)}
    check_seen(
        {(name, cast(Any, one).seen) for name, one in state.two_passes.items()},
        {(name, one.seen) for name, one in found.items()},
    )
    # All tasks have the same state, whose fingerprint takes as long as some of them count.
    return {name: replace(one, state=state.counted_among(name)) for name, one in found.items()}
