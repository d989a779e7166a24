"""How a number of all predictions by confidence came about: its curve, as a trace."""

from contextlib import closing

import pyarrow as pa

from rankmill.analysis.explain.trace_view import Trace
from rankmill.engine.finish import finish
from rankmill.engine.first_pass import run
from rankmill.engine.held_labels import HeldLabels
from rankmill.engine.job import Job
from rankmill.engine.progress import Progress
from rankmill.engine.tally import Tally
from rankmill.results.curves import thinned
from rankmill.results.result import Result
from rankmill.semantics.choices import CHOICES
from rankmill.sources.inputs.inputs import Input
from rankmill.threads import Workers


def evaluated(
    job: Job, labels: Input, predictions: Input, workers: Workers, progress: Progress | None
) -> tuple[Tally, Result]:
    """Return what all predictions come to, with its state, and the result."""
    with closing(run(job, HeldLabels(labels), {"": predictions}, workers, progress)) as tallies:
        tally = next(tallies)
        return tally, finish(tally, labels, predictions, workers, 0)


def trace_curve(
    job: Job,
    labels: Input,
    predictions: Input,
    rows: int | None,
    workers: Workers,
    progress: Progress | None,
) -> Trace:
    """Return the curve of the only metric of a job, in `rows` rows at most."""
    (metric,), semantics = job.metrics, job.semantics
    _, result = evaluated(job, labels, predictions, workers, progress)
    table = result.curves[metric.text]()
    facts = {}
    if "gap_total" in metric.spec.fields:
        total = semantics.gap_total
        meaning = CHOICES["gap_total"][total].removeprefix("divided by ")
        facts["recall"] = f"of {meaning} (gap_total {total})"
    count = len(table["correct"])
    table = thinned(table, rows)
    if (kept := len(table["correct"])) < count:
        facts["rows"] = f"{kept:,} of {count:,}, by even steps of correct predictions"
    value = result.metrics[metric.text]
    columns = {name: pa.array(column) for name, column in table.items()}
    return Trace(
        metric.text, None, value, value or 0.0, None, pa.table(columns), facts, semantics, job.scope
    )
