"""The walk down one list for metrics that are means over lists, such as novelty and ild."""

import numpy as np
import pyarrow as pa

from rankmill.analysis.explain.trace_view import Trace
from rankmill.analysis.explain.walk import items_to_hit
from rankmill.analysis.explain.walk_rows import repeats_of, table_of, tell_labels, tell_predictions
from rankmill.columns.ids import slice_ids
from rankmill.columns.ranked_lists import Lists
from rankmill.engine.job import Job
from rankmill.engine.score import match_block, whole_block
from rankmill.errors import plural
from rankmill.kernels.identity import Ids
from rankmill.matching.catalogue import Training
from rankmill.matching.index import LabelIndex
from rankmill.matching.order import arrange
from rankmill.matching.scope_filter import within
from rankmill.metrics.aggregate import list_walk_of
from rankmill.metrics.base import NO_CUTOFF, Metric
from rankmill.semantics.choices import CHOICES
from rankmill.sources.inputs.inputs import Input


def walk_listed(
    metric: Metric, lists: Lists, index: LabelIndex, predictions: Input, job: Job
) -> Trace:
    """The walk down the only list by what its items are, without its query and value."""
    arranged = arrange(lists, job.semantics)
    rows = index.find(arranged.queries)
    arranged, dropped = within(arranged, index.labels, rows, job.scope)
    found, _ = match_block(arranged, index, rows, job, NO_CUTOFF)
    scored, _ = whole_block(
        arranged, found, None, np.diff(arranged.offsets) > 0, (index, rows), job
    )
    walk, catalogue = list_walk_of(metric), job.catalogue
    assert walk is not None
    assert catalogue is not None
    walked = walk(scored, metric.limit, catalogue, *metric.arguments)
    columns = walked.columns | {"sum": walked.columns["term"].cumsum()}
    count = min(len(arranged.items.keys), metric.limit)
    if walked.of_items:
        table = table_of(
            slice_ids(arranged.items, 0, count),
            columns,
            np.empty(0),
            repeats_of(lists, index.labels, rows, job, count),
            predictions.id_types("item"),
        )
    else:
        table = pa.table({name: pa.array(one) for name, one in columns.items()})
    labels = items_to_hit(index.labels, metric, scored.hits)
    facts = {"labels": tell_labels(labels, int(scored.hits.label_counts[0]))}
    facts["predictions"] = tell_predictions(lists, arranged, dropped, count)
    if catalogue.training is not None:
        facts["training"] = _history(catalogue.training, arranged.queries)
    facts["catalogue"] = plural(len(catalogue), "item")
    if scored.order != "given":
        facts["order"] = f"{CHOICES['order'][scored.order]} (order {scored.order})"
    if walked.divisor is not None:
        facts["divisor"] = walked.meaning
    total = float(columns["sum"][-1]) if len(columns["sum"]) else 0.0
    return Trace(
        metric.text, None, None, total, walked.divisor, table, facts, job.semantics, job.scope
    )


def _history(training: Training, query: Ids) -> str:
    """What the query had in training, among how many queries."""
    labels, (row,) = training.index.labels, training.index.find(query)
    start, end = labels.offsets[row : row + 2] if row >= 0 else (0, 0)
    had = tell_labels(slice_ids(labels.items, int(start), int(end)), int(end - start))
    return f"{plural(training.queries, 'query')}; this one had {had}"
