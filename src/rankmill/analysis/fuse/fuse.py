"""fuse() joins the lists of several runs into one list for each query."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial, reduce
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from rankmill.analysis.fuse.fused_block import FusedBlock, fuse_block, joined_rows
from rankmill.analysis.fuse.fusion_view import Fused
from rankmill.analysis.fuse.hit_rates import HitRates, rates_of_block
from rankmill.analysis.fuse.input_runs import (
    InputRun,
    ReadAgainError,
    check_positions,
    side_by_side,
)
from rankmill.analysis.fuse.methods import METHODS, Fusion, fusion_of, name_in
from rankmill.analysis.fuse.optimum import best_of, grid_of, metric_of, training_block
from rankmill.analysis.fuse.trec_run import write_run
from rankmill.engine.job import runs_of
from rankmill.engine.progress import Progress, progress_of
from rankmill.engine.wide_rows import write_rows
from rankmill.errors import InputError, UsageError, positive
from rankmill.io.whole_files import check_target
from rankmill.sources.input_options import MEMORY
from rankmill.sources.inputs.any_source import reusable
from rankmill.sources.inputs.inputs import check_told, open_input, with_one_id_type
from rankmill.sources.nouns import Labels
from rankmill.sources.roles.comparable_ids import check_comparable
from rankmill.threads import Workers

Value = TypeVar("Value")
Gathered = TypeVar("Gathered")
TRAIN_LABELS = "the training labels"

WRITERS = {".parquet": write_rows, ".run": write_run, ".trec": write_run}
"""Suffix of an output -> what writes tables of rows of a schema, and tells how many it wrote."""


def fuse(
    runs: Mapping[str, Any] | Sequence[Any],
    path: str | Path | None = None,
    *,
    method: str = "rrf",
    norm: str | None = None,
    train_labels: Any = None,
    weights: Sequence[float] | None = None,
    k: int | None = None,
    parameter: float | None = None,
    top: int | None = None,
    optimise: str | None = None,
    tries: int = 1000,
    threads: int | None = None,
    memory: int = MEMORY,
    progress: Progress | bool | None = None,
) -> Fused:
    """Fuse the lists of several runs into one list per query.

    Each list gives its items a number, which depends on the rank or the normalized confidence,
    times the weight of the run. The method combines these numbers into one score per item, such as
    their sum. A list without the item adds nothing, other than in "bordafuse", "condorcet",
    "bayesfuse" and norm "borda", and so does a run without the query. Items are sorted by
    descending score, and equal scores by ascending id: integers as numbers, strings as bytes.
    ``rankmill docs fusing`` has the formulas.

    The order of the runs changes no bit, as numbers are added in ascending order. A repeat of an
    item within a list is left out before ranks are counted.

    Parameters
    ----------
    runs : mapping of str to input, or sequence of inputs
        Two or more `Predictions`, or what these hold, as for `evaluate`.
    path : str or path, optional
        The file to write, completely or not at all: wide Parquet if its name ends in .parquet, a
        run of TREC if it ends in .run or .trec. Without it a table is returned.
    method : str
        By rank: "rrf" (reciprocal rank fusion), "isr", "log-isr", "logn-isr", "bordafuse",
        "condorcet", "rbc". By confidence: "combsum", "combmnz", "combanz", "combmin", "combmax",
        "combmed", "combgmnz", "mixed", "wmnz". Trained: "mapfuse", "posfuse", "slidefuse",
        "probfuse", "bayesfuse" by rank, and "segfuse" by confidence.
    norm : str, optional
        How to normalize a confidence c in a list of n items. "min-max", the default, is
        ``(c - min) / (max - min)``, "min-max-inverted" ``(max - c) / (max - min)``, "sum"
        ``(c - min) / sum(c - min)``, "z-score" ``(c - mean) / sd`` with the standard deviation of
        the n confidences; all are 0 if all are equal. "max" is ``c / max``, "rank"
        ``1 - (rank - 1) / n``, "borda" the same with the items of all lists for n, and "none" c.
    train_labels : Labels, or what it holds, optional
        The labels of training queries, for trained methods and `optimise` alone; all runs are read
        twice then. Values over the training queries say nothing about the fused lists: evaluate on
        others.
    weights : sequence of float, optional
        A number for each run, 0 or more; by default 1.
    k : int, optional
        The constant of "rrf"; by default 60.
    parameter : float, optional
        The gamma of "combgmnz", the phi of "rbc", the sigma of "logn-isr" (by default 0.01), the
        segments of "probfuse" (25), the window of "slidefuse" (5 ranks before and after).
    top : int, optional
        Keep only so many items of each fused list.
    optimise : str, optional
        A metric. What is not given of `weights`, `k` and `parameter` is chosen by its value over
        the training queries, whose lists are held in memory. Weights are tenths that add up to 1.
    tries : int
        The largest number of settings to try for `optimise`; if the grid has more, so many are
        drawn from it, always the same.
    threads : int, optional
        The number of threads; by default the number of CPUs.
    memory : int
        A limit in bytes for the rows of all runs that are sorted, and another for those that are
        grouped; beyond it, temporary files are used. Runs that are sorted by query id, as `convert`
        writes them, are streamed.
    progress : bool or callable, optional
        True prints progress on standard error. A function is called with the number of rows done
        and their total.

    Returns
    -------
    Fused
        What was counted and chosen, and without `path` the lists as `Fused.table`.

    Raises
    ------
    InputError
        If an input is broken, has no confidences but needs them, or a score is not finite.
    UsageError
        If the options do not fit together, or the file cannot be written.

    Examples
    --------
    >>> one = {"q1": [("a", 0.9), ("b", 0.5), ("c", 0.1)]}
    >>> other = {"q1": [("b", 7.0), ("d", 3.0)]}
    >>> fuse([one, other]).table.to_pylist()[0]["items"]
    ['b', 'a', 'd', 'c']
    >>> fused = fuse([one, other], method="combsum", norm="min-max", weights=[1, 2], top=2)
    >>> fused.table.to_pylist()
    [{'query_id': 'q1', 'items': ['b', 'a'], 'scores': [2.5, 1.0]}]
    >>> fused = fuse(
    ...     [one, other], method="combsum", train_labels={"q1": ["d"]}, optimise="first_hit"
    ... )
    >>> fused.optimised["weights"]
    {'run 1': 0.5, 'run 2': 0.5}
    """
    memory, method = positive(memory, "memory"), name_in(METHODS, method)
    if isinstance(runs, Iterable) and not isinstance(runs, Mapping | str):
        runs = {f"run {i}": run for i, run in enumerate(runs, 1)}
    given = runs_of(runs)
    trained, tuned = train_labels is not None, optimise is not None
    learned = Labels.of(train_labels) if trained else None
    constants = [(k, parameter, weights)]
    if tuned:
        metric = metric_of(optimise, method, learned)
        constants = grid_of([*given], method, *constants[0], positive(tries, "tries"))
    fusions = [
        fusion_of(len(runs), method, norm, *one, top, trained and not tuned) for one in constants
    ]
    fusion, optimised = fusions[0], None
    if path is not None:
        check_path(path)
    sides: dict[str, Any] = {**given}
    if trained:
        sides[TRAIN_LABELS] = learned
    for one in sides.values():
        check_told(one)
    with ExitStack() as stack:
        inputs = []
        for name, one in sides.items():
            needed = fusion.needs_scores and name in given
            opened = open_input(one, need_score=needed, memory=memory)
            if trained:
                opened = replace(opened, source=reusable(opened.source, memory))
            inputs.append(opened)
            stack.callback(opened.source.close)
        inputs = with_one_id_type(inputs)
        check_positions(dict(zip(sides, inputs, strict=True)))
        for each in inputs[1:]:
            check_comparable(*((side.source, side.columns) for side in (inputs[0], each)))
        share = max(1, memory // len(inputs))
        read = [InputRun(name, one, inputs, share) for name, one in zip(runs, inputs, strict=False)]
        workers = stack.enter_context(Workers(threads))
        if trained:
            both = [InputRun(TRAIN_LABELS, inputs[-1], inputs, share, "labels"), *read]
            if tuned:
                blocks = _read(both, training_block, workers, list)
                schemas = both[0].rows.schema, _schema(read[0])
                fusion, optimised = best_of(fusions, [*given], blocks, schemas, metric, workers)
            else:
                fusion = fusion.trained(_rates(both, fusion, workers))
        fused = _fused(path, read, fusion, workers, progress_of(progress))
        return replace(fused, optimised=optimised)


def check_path(path: str | Path) -> None:
    """Raise UsageError unless a fused run can be written at `path`."""
    if Path(path).suffix.lower() not in WRITERS:
        raise UsageError(
            f"cannot write {path}: what is written is Parquet or a run of TREC; expected a name in "
            f"{', '.join(WRITERS)}"
        )
    check_target(path)


def _fused(
    path: str | Path | None,
    runs: Sequence[InputRun],
    fusion: Fusion,
    workers: Workers,
    progress: Progress | None,
) -> Fused:
    """Read, fuse and write."""
    counts: dict[str, int] = {}

    def write(blocks: Iterator[FusedBlock]) -> tuple[int, int, Any]:
        counts.update(queries_in_all=0, repeated_items=0)
        tables, schema = _counted(blocks, counts), _schema(runs[0])
        if path is not None:
            return *WRITERS[Path(path).suffix.lower()](path, tables, schema), None
        table = joined_rows(tables, schema)
        return len(table), pc.sum(pc.list_value_length(table.column(1))).as_py() or 0, table

    def fused(tables: Sequence[Any]) -> FusedBlock:
        return fuse_block(tables, fusion, _schema(runs[0]))

    queries, items, table = _read(runs, fused, workers, write, progress)
    read = {
        run.name: {**run.input.described(run.rows.rows), "queries": run.queries} for run in runs
    }
    told = None if path is None else str(path)
    how, many = (fusion.method, fusion.norm), (counts["queries_in_all"], counts["repeated_items"])
    return Fused(told, *how, queries, items, *many, read, fusion.trained_on, table)


def _rates(sides: Sequence[InputRun], fusion: Fusion, workers: Workers) -> HitRates:
    """Count how often runs are right; the first of `sides` are the labels."""
    work = partial(rates_of_block, segments=fusion.segments)
    rates = _read(sides, work, workers, lambda blocks: reduce(HitRates.merge, blocks))
    if not rates.queries:
        raise InputError(
            "no query of the training labels has a label: nothing can be learned from them"
        )
    if not rates.lists.any():
        raise InputError(
            "no run has a list of a query of the training labels: nothing can be learned from them"
        )
    return rates


def _read(
    sides: Sequence[InputRun],
    work: Callable[[Sequence[Any]], Value],
    workers: Workers,
    gather: Callable[[Iterator[Value]], Gathered],
    progress: Progress | None = None,
) -> Gathered:
    """Read all, and gather what blocks come to; begin again if a side is to be read otherwise."""
    while True:
        for one in sides:
            one.begin()
        try:
            with closing(_blocks(sides, work, workers, progress)) as blocks:
                return gather(blocks)
        except ReadAgainError:
            continue


def _schema(run: InputRun) -> Any:
    """The schema of the fused rows."""
    query, items = run.rows.schema.field(0), run.rows.schema.field(1)
    scores = pa.field("scores", pa.large_list(pa.float64()))
    return pa.schema([query, items, scores], run.rows.schema.metadata)


def _blocks(
    runs: Sequence[InputRun],
    work: Callable[[Sequence[Any]], Value],
    workers: Workers,
    progress: Progress | None,
) -> Generator[Value, None, None]:
    """Yield work(tables) of all ranges of query ids, ascending; there is a table for each run."""
    known = [run.input.source.rows for run in runs]
    total = None if None in known else sum(filter(None, known))

    def report() -> None:
        if progress is not None:
            progress(sum(run.rows.rows for run in runs), total)

    with ExitStack() as stack:
        readers = [stack.enter_context(closing(run.tables(workers, report))) for run in runs]
        yield from stack.enter_context(closing(workers.map(work, side_by_side(readers))))


def _counted(blocks: Iterator[FusedBlock], counts: dict[str, int]) -> Iterator[Any]:
    """Yield the rows of blocks, and count them."""
    for block in blocks:
        counts["queries_in_all"] += block.in_all
        counts["repeated_items"] += block.repeats
        yield block.rows
