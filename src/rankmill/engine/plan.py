"""What an evaluation will read, as the footers of files have it: `rankmill evaluate --plan`."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from rankmill.engine.catalogue_inputs import beside, described_beside, opened
from rankmill.engine.job import open_job, parse_job, runs_of
from rankmill.metrics.defaults import DEFAULT_METRICS
from rankmill.package import stamp
from rankmill.semantics.scope import WHOLE, Scope
from rankmill.semantics.semantics import Counting
from rankmill.show.tables import Column, Facts, Part, Table, View, size_text
from rankmill.sources.input_options import MEMORY
from rankmill.sources.inputs.inputs import Input
from rankmill.sources.nouns import Catalogue, Labels


def plan(
    labels: Any,
    predictions: Any,
    metrics: str | Iterable[str] = DEFAULT_METRICS,
    *,
    semantics: Counting = "default",
    catalogue: Catalogue | None = None,
    memory: int = MEMORY,
) -> dict[str, Any]:
    """Show what `evaluate` with the same arguments would read, from the footers of files only.

    Parameters
    ----------
    labels, predictions, metrics, semantics, catalogue, memory
        As for `evaluate`.

    Returns
    -------
    dict
        "labels" and "predictions": source, files, rows, values, bytes (compressed, to read), shape,
        columns, unread (the columns that are not read, if any), rules (those that read each
        column), and so "train", "items" and "features", if given; "scope": `rel`, `depth`,
        `judged_only` and `weight`.

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
    whole = plan_runs(labels, {"": predictions}, metrics, semantics, catalogue, memory)
    return whole | {"predictions": whole["predictions"][""]}


def plan_runs(
    labels: Any,
    runs: Mapping[str, Any],
    metrics: str | Iterable[str] = DEFAULT_METRICS,
    semantics: Counting = "default",
    catalogue: Catalogue | None = None,
    memory: int = MEMORY,
) -> dict[str, Any]:
    """Do the same as `plan` for `evaluate_runs`; "predictions" is a dict by name of the system."""
    given, systems = Labels.of(labels), runs_of(runs)
    job = parse_job(metrics, given, semantics, catalogue, memory=memory)
    with open_job(job, given, systems) as (label_input, inputs):
        told: dict[str, Any] = {"labels": _described(label_input)}
        told["predictions"] = {name: _described(one) for name, one in inputs.items()}
        for name, opener in beside(catalogue, label_input, memory).items():
            with opened(name, opener, label_input) as one:
                told[name] = described_beside(name, one) | _sizes(one)
        return {**told, "scope": job.scope.to_dict()}


def _described(one: Input) -> dict[str, Any]:
    return one.described() | _sizes(one) | {"rules": one.source.findings.rules()}


def _sizes(one: Input) -> dict[str, Any]:
    names = filter(None, [*one.columns.names(), *one.columns.facts])
    sizes = one.source.sizes(list(dict.fromkeys(names)))
    return {
        "values": sizes[one.columns.item][0],
        "bytes": sum(size for _, size in sizes.values()),
    }


def plan_view(plan: Mapping[str, Any]) -> View:
    """Return what is shown of what `plan_runs` returned."""
    runs = plan["predictions"]
    if len(runs) == 1:
        runs = {"predictions": next(iter(runs.values()))}
    more = {name: plan[name] for name in ("train", "items", "features") if name in plan}
    inputs = {"labels": plan["labels"], **runs, **more}

    def rows(keys: Collection[str], between: str) -> list[list[Any]]:
        found = []
        for name, one in inputs.items():
            columns = (f"{role}={column}" for role, column in one["columns"].items() if column)
            found.append([name, *(one.get(key) for key in keys), between.join(columns)])
        return found

    shown = {name: Column(name, "count") for name in ("files", "rows", "values")}
    shown |= {"bytes": Column("to read", "size"), "shape": Column("shape")}
    told = "source", "shape", "files", "rows", "values", "bytes"
    table = Table([Column("input"), *shown.values(), Column("columns")], rows(shown, ", "))
    exact = Table([Column(name) for name in ("input", *told, "columns")], rows(told, " "))
    facts = {"to read": size_text(sum(one["bytes"] for one in inputs.values()))}
    scope = Scope(**plan["scope"])
    facts |= {"scope": str(scope)} if scope != WHOLE else {}
    screen: list[Part] = [table, "", Facts(facts.items())]
    return View(lambda: screen, lambda: [table], lambda: exact, lambda: {**stamp(), **plan})
