"""Evaluating in parts, as on a cluster: a state for each, files of them, and the second pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import narrowest
from rankmill.engine.cuts import job_of
from rankmill.engine.finish import reread_among
from rankmill.engine.first_pass import Progress, progress_of, run
from rankmill.engine.held_labels import HeldLabels
from rankmill.engine.job import Job, open_job, parse_job
from rankmill.engine.origin import OriginRecorder
from rankmill.engine.state import State
from rankmill.errors import InputError, UsageError, positive
from rankmill.io.stores.urls import shown
from rankmill.io.whole_files import suffix_of
from rankmill.metrics.aggregate import aggregate_of
from rankmill.metrics.defaults import DEFAULT_METRICS
from rankmill.metrics.exposure import GIVE_ITEMS
from rankmill.metrics.gap.gap_counts import Among
from rankmill.metrics.records import state_rows
from rankmill.metrics.sums import TermProducts
from rankmill.semantics.semantics import Counting
from rankmill.sources.files.files import File, blamed, find_files, native
from rankmill.sources.inputs.inputs import check_told, open_input
from rankmill.sources.meaning.looks import reading_again
from rankmill.sources.nouns import (
    Catalogue,
    Labels,
    LabelsLike,
    Predictions,
    PredictionsLike,
    SlicesLike,
)
from rankmill.sources.roles.shares import Sample, Share, divided
from rankmill.sources.roles.source import MEMORY
from rankmill.threads import Workers


def evaluate_part(
    labels: LabelsLike,
    predictions: PredictionsLike,
    metrics: str | Iterable[str] = DEFAULT_METRICS,
    *,
    semantics: Counting = "default",
    by: SlicesLike = (),
    sums: str | Iterable[str] = (),
    catalogue: Catalogue | None = None,
    part: str | None = None,
    threads: int | None = None,
    memory: int = MEMORY,
    progress: Progress | bool | None = None,
) -> State:
    """Return the state of a part: some queries with all their labels and all their predictions.

    Parameters
    ----------
    labels, predictions, metrics, semantics, by, sums, catalogue, threads, memory, progress
        As for `evaluate`, but both sides may have no rows. `by` is not "label_popularity", which
        needs all labels, and metrics that need a second pass, such as gap, have no slices.
    part : str, optional
        "3/8" is the third of eight parts of the queries, by a hash of their ids: both inputs are
        read whole, and only the rows of this part are evaluated. By default both inputs are the
        part.

    Returns
    -------
    State
        Merge it with the states of the other parts. For gap, call `second_pass` with the merged
        state and all predictions.

    Raises
    ------
    InputError, UsageError
        As `evaluate`. A UsageError is also raised if the ties of gap need all predictions at once.

    Examples
    --------
    >>> from rankmill.parts import evaluate_part
    >>> import rankmill
    >>> lists = rankmill.arrays.Ragged.from_lists
    >>> metrics = ["map", "first_hit"]
    >>> states = [
    ...     evaluate_part(lists([[1, 2]]), lists([[1, 5]]), metrics),
    ...     evaluate_part(lists([[3]]), lists([[4, 3]]), metrics),
    ... ]
    >>> states[0].merge(states[1]).result().metrics
    {'map': 0.5, 'first_hit': 0.75}
    """
    given = Labels.of(labels)
    recorder = OriginRecorder(None if part is None else Share.read(part))
    more: Any = {"memory": memory, "part": True, "recorder": recorder}
    job = job_of(metrics, given, semantics, catalogue, by, sums, **more)
    runs = {"": Predictions.of(predictions)}
    state = part_states(job, given, runs, threads, progress, catalogue)[""]
    return replace(state, origin=recorder.origin)


@reading_again
def part_states(
    job: Job,
    labels: Labels,
    runs: Mapping[str, Predictions],
    threads: int | None = None,
    progress: Progress | bool | None = None,
    catalogue: Catalogue | None = None,
) -> dict[str, State]:
    """Do the same as `evaluate_part` for several systems; the labels are read once."""
    check_in_parts(job, several=len(runs) > 1)
    facts = {} if job.cuts is None else job.cuts.facts
    job, told = replace(job, keep_values=False), progress_of(progress)
    with (
        open_job(job, labels, runs, facts) as (label_input, inputs),
        Workers(threads, job.waiting) as workers,
    ):
        held = HeldLabels(label_input)
        with closing(run(job, held, inputs, workers, told, catalogue)) as tallies:
            return {name: next(tallies).state for name in inputs}


def check_in_parts(job: Job, *, several: bool = False) -> None:
    """Raise UsageError if a job cannot be done in parts; `several` is whether systems are many."""
    if several and job.own_catalogue:
        raise UsageError(
            f"{', '.join(job.own_catalogue)} of several systems needs one catalogue, and no part "
            f"has the items of all: {GIVE_ITEMS}"
        )
    if job.holds_rows:
        raise UsageError(f"{job.holds_rows} needs all predictions at once: use evaluate")
    if job.cuts is None:
        return
    if "label_popularity" in job.cuts.derived:
        raise UsageError("label_popularity needs the labels of all queries: use evaluate")
    twice = [metric.text for metric in job.metrics if aggregate_of(metric).passes > 1]
    if twice:
        raise UsageError(
            f"{', '.join(twice)} has no slices in parts or on Spark, as the second pass does not "
            "know the slices of predictions: rankmill.evaluate has them; or ask for "
            f"{twice[0]} without by"
        )


def second_pass(
    state: State,
    predictions: PredictionsLike,
    *,
    part: str | None = None,
    threads: int | None = None,
    memory: int = MEMORY,
) -> dict[str, Among]:
    """Count some of the confidences in a second pass, among those of all correct predictions.

    Parameters
    ----------
    state : State
        The merged state of all parts.
    predictions, threads, memory
        As for `evaluate`.
    part : str, optional
        As for `evaluate_part`.

    Returns
    -------
    dict of str to Among
        The counts for each metric that needs them. `State.result` takes those of all parts. Their
        `to_row` makes a row, which `State.read_counts` reads.
    """
    memory, given = positive(memory, "memory"), Predictions.of(predictions)
    share = None if part is None else Share.read(part)
    check_told(given, state.semantics)
    one = open_input(
        given, need_score=True, semantics=state.semantics, may_be_empty=True, memory=memory
    )
    with closing(one.source), Workers(threads) as workers:
        source = divided(one.source, one.columns.query, share, Sample())
        one = one if share is None else replace(one, source=source)
        among = reread_among(state, one, workers, memory, checksum=True)
    counted = among.items()
    return {name: replace(one, state=state.counted_among(name)) for name, one in counted}


# ------------------------------------------------------------------ states in files

SUFFIXES = ".arrow", ".feather", ".parquet"


class MergedFiles(NamedTuple):
    """What files add up to: the state, and the counts of each metric of a second pass."""

    state: State
    among: dict[str, Among]

    @property
    def waiting(self) -> list[str]:
        """The metrics that need a second pass, of which no file has counts."""
        return [name for name in self.state.two_passes if name not in self.among]


def check_state_name(path: str) -> None:
    """Raise UsageError unless a file of this name can hold a state."""
    if suffix_of(path) not in SUFFIXES:
        raise UsageError(
            f"cannot write a state to {shown(path)}: its suffix has to be one of "
            f"{', '.join(SUFFIXES)}"
        )


def check_asked(state: State, given: Mapping[str, Any]) -> None:
    """Raise UsageError if arguments of `evaluate_part` ask for something else than a state."""
    asked = parse_job(
        given.get("metrics", DEFAULT_METRICS),
        Labels.of(given["labels"]),
        given.get("semantics", "default"),
        given.get("catalogue"),
        given.get("sums", ()),
    )
    for what, one, other in (
        ("metrics", state.names, tuple(metric.text for metric in asked.metrics)),
        ("semantics", state.semantics, asked.semantics),
        ("gain function", state.gain_function, asked.gain_function),
        ("scope", state.scope, asked.scope),
    ):
        if one != other:
            raise UsageError(
                f"the merged state is of other {what} than this command: {_said(one)} and "
                f"{_said(other)}; expected the options of the first pass"
            )


def _said(asked: Any) -> str:
    return ", ".join(asked) if isinstance(asked, tuple) else str(asked)


def table_of_state(state: State) -> pa.Table:
    """Return the row of a state as a table, to be written to a file."""
    return _table([state.to_row()])


def table_of_counts(counts: Mapping[str, Among], part: str | None) -> pa.Table:
    """Return a row for the counts of each metric; `part` is the part that they are of."""
    beside = {"part": part or ""}
    return _table([_resealed(one.to_row(), metric=name, **beside) for name, one in counts.items()])


def merge_files(paths: Sequence[str]) -> MergedFiles:
    """Merge the states in some files, and the counts of the second pass in others.

    Errors are of files that hold neither, or of two that do not fit together: these name both.
    """
    states: list[tuple[str, State]] = []
    found: State | None = None
    counted: list[tuple[str, str, str, Among]] = []
    for file in find_files(paths):
        for row in _rows(file):
            try:
                if "at" in row:
                    metric, part = (state_rows.text(row, name) for name in ("metric", "part"))
                    state_rows.check_seal(row, names=row.keys() - {state_rows.SEAL})
                    plain = {name: row[name] for name in row.keys() - {"metric", "part"}}
                    counted.append((file.name, metric, part, Among.from_row(_resealed(plain))))
                    continue
                state = State.from_row(row)
            except UsageError as error:
                raise UsageError(f"{file.name}: {error}") from None
            found = _merged(found, state, states, file.name)
    if found is None:
        raise UsageError(
            f"{', '.join(paths[:3])}: none of these files holds a state; expected those of "
            "'rankmill evaluate --state', and the merged state if there are counts of a second pass"
        )
    for name, metric, *_ in counted:
        if metric not in found.two_passes:
            raise UsageError(
                f"{name}: it holds a second pass of {metric}, which the state does not have: "
                f"{', '.join(found.names)}"
            )
    return MergedFiles(found, _merged_counts(counted))


def _merged(found: State | None, state: State, before: list[tuple[str, State]], name: str) -> State:
    """Return a state with one more; `before` are those that it is of, without what they add up."""
    head = replace(state, aggregates={}, slices={}, moments=TermProducts())
    try:
        both = state if found is None else found.merge(state)
    except UsageError as error:
        for other, one in before:
            try:
                one.merge(head)
            except UsageError as reason:
                raise UsageError(f"{other} and {name}: {reason}") from None
        raise UsageError(f"{name}, and those before: {error}") from None
    before.append((name, head))
    return both


def _merged_counts(counted: Sequence[tuple[str, str, str, Among]]) -> dict[str, Among]:
    found: dict[str, tuple[str, Among]] = {}
    parts: dict[tuple[str, Share], str] = {}
    for name, metric, part, one in counted:
        if part:
            at = metric, Share.read(part)
            if at in parts:
                raise UsageError(
                    f"{parts[at]} and {name}: both hold the second pass of part {part}: give each "
                    "part once"
                )
            parts[at] = name
        first, before = found.get(metric, (name, None))
        try:
            found[metric] = first, one if before is None else before.merge(one)
        except UsageError as error:
            raise UsageError(f"{first} and {name}: {error}") from None
    shares = {share for _, share in parts}
    for of in {share.of for share in shares}:
        missing = [f"{n}/{of}" for n in range(1, of + 1) if Share(n, of) not in shares]
        if missing:
            raise UsageError(
                f"the second pass of part {', '.join(missing[:10])} is missing: make it "
                "like that of the other parts, and merge all"
            )
    return {metric: among for metric, (_, among) in found.items()}


def _resealed(row: Mapping[str, Any], **more: str) -> dict[str, Any]:
    plain = {name: value for name, value in row.items() if name != state_rows.SEAL}
    return state_rows.sealed({**plain, **more})


def _table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return rows as a table whose numbers take as few bytes as they can."""
    columns: dict[str, list[Any]] = {name: [row[name] for row in rows] for name in rows[0]}
    return pa.table({name: pa.array(_narrow(one)) for name, one in columns.items()})


def _narrow(values: list[Any]) -> list[Any]:
    if not all(isinstance(one, np.ndarray) for one in values):
        return values
    kind = narrowest(np.concatenate([np.empty(0, values[0].dtype), *values]))
    return [one.astype(kind) for one in values]


def _rows(file: File) -> list[dict[str, Any]]:
    """Return the rows of a file; lists of numbers as arrays."""
    import pyarrow.parquet as pq

    identity = file.identity()
    with blamed(file, identity, "its state"), native(file) as opened:
        of_arrow = opened.read_at(6, 0) == b"ARROW1"
        table = pa.ipc.open_file(opened).read_all() if of_arrow else pq.read_table(opened)
        table.validate(full=True)
    if not {"format", state_rows.SEAL} <= {*table.column_names}:
        raise InputError(
            f"{file.name} holds no state; expected a file of 'rankmill evaluate --state'"
        )
    return [
        {name: _plain(table.column(name)[at]) for name in table.column_names}
        for at in range(len(table))
    ]


def _plain(cell: Any) -> Any:
    kind = cell.type
    if pa.types.is_list(kind) and pa.types.is_primitive(kind.value_type) and cell.is_valid:
        return cell.values.to_numpy(zero_copy_only=False)
    return cell.as_py()
