"""What an evaluation on Spark will move and hold, by what Spark knows before it reads a row."""

from collections.abc import Iterable, Mapping
from typing import Any

from rankmill.engine.job import parse_job, runs_of
from rankmill.engine.plan_view import inputs_of, view_of_plan
from rankmill.metrics.defaults import DEFAULT_METRICS
from rankmill.semantics.semantics import Counting
from rankmill.show.tables import Column, View, size_text
from rankmill.sources.input_options import MEMORY
from rankmill.sources.nouns import Catalogue, Labels
from rankmill.spark.broadcast import AT_ONCE
from rankmill.spark.exchange.spark_request import SparkRequest, request_of
from rankmill.spark.placement import Placing, placing_of
from rankmill.spark.workers import ADDRESSES, PYTHON_MEMORY

# The bytes of Python, numba, pyarrow and the compiled kernels in a task.
A_TASK = 320 << 20
# A task holds its rows at most so many times: sorted, as they come or joined, and their order. Only
# where one query has them all are they so many.
TIMES_HELD = 4
# Rows in memory take at most about so many times the bytes of their files.
UNPACKED = 4
# The bytes of a confidence of a correct prediction on the driver, and of a label.
A_CONFIDENCE = 16
A_LABEL = 8


def plan(
    labels: Any,
    predictions: Any,
    metrics: str | Iterable[str] = DEFAULT_METRICS,
    *,
    semantics: Counting = "default",
    catalogue: Catalogue | None = None,
    partitions: int | None = None,
    per_query: bool = False,
    memory: int = MEMORY,
) -> dict[str, Any]:
    """Show what `evaluate` with the same arguments would move and hold.

    No job is run, but to look at the first rows where text has to be understood.

    Sizes are those of files, as Spark's statistics have them, and None where it knows none. Rows in
    memory are taken to need at most four times as much.

    - A task needs 300 MB and four times its rows in memory: those of a partition, or all labels
      and 64 MB of predictions.
    - The driver needs twice the labels in memory if they go to all tasks, and for each gap 16 bytes
      for each label, the most that can be correct.
    - The items and features of a catalogue come on top of both.

    Parameters
    ----------
    labels, predictions, metrics, semantics, catalogue, partitions, per_query, memory
        As for `evaluate`.

    Returns
    -------
    dict
        "labels" and "predictions": source, shape, columns, and bytes, which are read. Predictions
        also have "placing" ("broadcast", "in place" or "shuffle"), why it is so, "shuffled", the
        bytes that move by query, and "tasks", which is None where Spark decides them from the
        predictions. "task_memory" and "driver_memory" are the most that is needed, and
        "python_memory" the least that spark.executor.pyspark.memory may be where it is set, to
        "python_limit": it limits addresses, of which libraries reserve 1 GB for each core of an
        executor. "scope" is `rel`, `depth`, `judged_only` and `weight`.

    Raises
    ------
    InputError, UsageError
        As `evaluate`, if columns and types are enough to find the error.
    """
    whole = plan_runs(
        labels,
        {"": predictions},
        metrics,
        semantics=semantics,
        catalogue=catalogue,
        partitions=partitions,
        per_query=per_query,
        memory=memory,
    )
    return whole | {"predictions": whole["predictions"][""]}


def plan_runs(
    labels: Any,
    runs: Mapping[str, Any],
    metrics: str | Iterable[str] = DEFAULT_METRICS,
    *,
    semantics: Counting = "default",
    catalogue: Catalogue | None = None,
    partitions: int | None = None,
    per_query: bool = False,
    memory: int = MEMORY,
) -> dict[str, Any]:
    """Do the same as `plan` for `evaluate_runs`; "predictions" is a dict by name of the system."""
    given = Labels.of(labels)
    how: Any = {"memory": memory, "keep_values": per_query, "part": True}
    job = parse_job(metrics, given, semantics, catalogue, **how)
    request = request_of(given, runs_of(runs), job, partitions, catalogue=catalogue)
    placings = [placing_of(request, number) for number in request.systems]
    shuffled = [n for n, one in enumerate(placings, 1) if one.how == "shuffle"]
    predictions = {}
    for number, (name, one) in enumerate(zip(request.names, placings, strict=True), 1):
        # Systems that are shuffled share the labels, and what queries had; the first counts them.
        moved = [0, number, *request.training] if [number] == shuffled[:1] else [number]
        predictions[name] = _described(request, number) | {
            "placing": one.how,
            "why": one.why,
            "tasks": one.tasks,
            "shuffled": _bytes(request, moved) if one.how == "shuffle" else 0,
        }
    tasks = [_task_memory(request, n, one, shuffled) for n, one in enumerate(placings, 1)]
    task = None if None in tasks else max(one or 0 for one in tasks)
    settings = given.data.sparkSession.conf
    cores = int(settings.get("spark.executor.cores", "1"))
    return {
        "labels": _described(request, 0),
        "predictions": predictions,
        "task_memory": task,
        "python_memory": None if task is None else cores * (ADDRESSES + task - A_TASK),
        "python_limit": settings.get(PYTHON_MEMORY, None),
        "driver_memory": _driver_memory(request, placings),
        "scope": request.job.scope.to_dict(),
    }


def _described(request: SparkRequest, number: int) -> dict[str, Any]:
    described = request.inputs[number].described() | {"bytes": request.sizes[number]}
    return {key: value for key, value in described.items() if key not in ("files", "rows")}


def _bytes(request: SparkRequest, numbers: Iterable[int]) -> int | None:
    """Return the bytes of several sides; None if those of one are not known."""
    sizes = [request.sizes[number] for number in numbers]
    return None if None in sizes else sum(size or 0 for size in sizes)


def _task_memory(
    request: SparkRequest, number: int, placing: Placing, shuffled: list[int]
) -> int | None:
    if placing.how == "broadcast":
        if not request.sides[number].columns.wide:  # a partition, whose size Spark decides
            return None
        return A_TASK + TIMES_HELD * (UNPACKED * (request.sizes[0] or 0) + AT_ONCE)
    size = _bytes(
        request, [0, *([*shuffled, *request.training] if placing.how == "shuffle" else [number])]
    )
    if size is None or placing.tasks is None:
        return None
    return A_TASK + TIMES_HELD * UNPACKED * (size // placing.tasks)


def _driver_memory(request: SparkRequest, placings: Iterable[Placing]) -> int | None:
    """Return the bytes that labels and confidences take on the driver, besides Spark's own."""
    sent = any(one.how == "broadcast" for one in placings)
    if not sent and not request.job.pooled:
        return 0
    size = request.sizes[0]
    if size is None:
        return None
    labels = UNPACKED * size
    return 2 * labels * sent + len(request.job.pooled) * A_CONFIDENCE * (labels // A_LABEL)


def cluster_plan_view(plan: Mapping[str, Any]) -> View:
    """Return what is shown of what `plan_runs` returned: `rankmill spark evaluate --plan`."""
    inputs = inputs_of(plan)
    facts = {
        "memory of a task": _most(plan["task_memory"]),
        "memory of the driver": _most(plan["driver_memory"]),
    }
    if plan["python_limit"] is not None:
        least = plan["python_memory"]
        told = "a size is unknown" if least is None else f"needs {size_text(least)}"
        facts[PYTHON_MEMORY] = f"is {plan['python_limit']}, {told}"
    why = {
        f"{name}: {one['placing']}": f"because {one['why']}"
        for name, one in inputs.items()
        if "placing" in one
    }
    shown = {"bytes": Column("to read", "size"), "shape": Column("shape")}
    shown |= {"placing": Column("placing"), "shuffled": Column("shuffled", "size")}
    shown |= {"tasks": Column("tasks", "count")}
    exact = "source", "shape", "bytes", "placing", "why", "shuffled", "tasks"
    return view_of_plan(plan, inputs, shown, exact, facts, why)


def _most(size: int | None) -> str:
    return "unknown, because a size is unknown" if size is None else f"at most {size_text(size)}"
