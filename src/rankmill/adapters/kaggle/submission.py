"""Score and check submissions of a competition, as a metric notebook of Kaggle does."""

import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow.compute as pc

from rankmill.adapters.kaggle.submission_check import (
    PROBLEMS,
    SCORED,
    UNMATCHED,
    Cells,
    Problem,
    SubmissionCheck,
    by_id,
    column_problems,
    id_problems,
    item_cells,
    list_problems,
    numbers_in,
    read_cells,
    split_cells,
)
from rankmill.columns.buffers import numbers_of
from rankmill.engine.evaluate import evaluate
from rankmill.errors import InputError, UsageError
from rankmill.metrics.aggregate import needs_of
from rankmill.metrics.base import Metric
from rankmill.metrics.registry import parse
from rankmill.semantics.presets import PRESETS, preset_named
from rankmill.semantics.semantics import Counting, Semantics
from rankmill.sources.inputs.inputs import open_input
from rankmill.sources.nouns import Labels, Predictions

__all__ = ["ParticipantVisibleError", "check", "score"]

try:
    from kaggle_metric_utilities import ParticipantVisibleError
except ImportError:

    class ParticipantVisibleError(InputError):  # type: ignore[no-redef]
        """A submission is wrong. The message is safe to show: it contains no labels."""


# The formula of benhamner/Metrics: a query without labels scores 0.
LISTS: dict[str, Any] = {"repeated_labels": "count", "no_relevant": "zero"}
# The columns of a solution that Kaggle takes away before a metric sees it.
USAGE = "Usage"
OTHERS = (
    "rows of ids that the solution does not have do not count here, and a competition may not know "
    "these ids: check against the sample submission, too"
)
SAMPLE = (
    "no score: each row of the solution has the same items, as in a sample, which has no answers"
)
# So many rows of one list are a sample, whatever its length.
MANY = 10
SWAPPED = "the solution has a full list in each row, as submissions do: did you swap both files?"


def score(
    solution: Any,
    submission: Any,
    row_id_column_name: str,
    metric: str | None = None,
    *,
    item: str | None = None,
    confidence: str | None = None,
    semantics: Counting | None = None,
) -> float:
    """Score a submission, as Kaggle calls the function of this name of a metric notebook.

    A cell holds the items of its id, separated by spaces, best first. For gap and other metrics of
    confidences, each item is followed by its confidence. With `confidence`, a row holds one item.
    MAP@k is that of benhamner/Metrics: an id without a label scores 0, a repeated prediction is
    wrong, and predictions after k do not count. gap counts as for `evaluate`.

    Parameters
    ----------
    solution, submission : DataFrame or path
        With the same columns: ids and items. Ids and items are compared as text. The solution may
        also be transactions, with one row per item and other columns; the submission names its own.
    row_id_column_name : str
        The column of ids.
    metric : str, optional
        One metric, such as "map@12" or "gap"; by default that of a preset of a competition, else
        "map@5".
    item : str, optional
        The column of items; by default the only other column of the solution.
    confidence : str, optional
        The column of confidences of a submission with one item per row; an id may have several
        rows.
    semantics : str, Semantics or mapping, optional
        How to count instead, as for `evaluate`, such as "kaggle_hm". Where these leave ids out
        that are not among the labels, a submission may have such ids.

    Raises
    ------
    ParticipantVisibleError
        If the submission is wrong. The message quotes only the submission and names of columns.
        It is Kaggle's class of this name where that can be imported.
    InputError
        If the solution is wrong, also if its ids lost leading zeros that the submission has.
    UsageError
        If the metric does not exist.

    Warns
    -----
    RuntimeWarning
        If items cannot match those of the solution, as one side lost leading zeros or items have
        commas or brackets, which the score counts as wrong.

    Examples
    --------
    >>> from rankmill.kaggle import score
    >>> import pandas as pd
    >>> solution = pd.DataFrame({"id": [1, 2], "predictions": ["a b", "c"]})
    >>> submission = pd.DataFrame({"id": [2, 1], "predictions": ["x", "a x b"]})
    >>> score(solution, submission, "id", metric="map@3")
    0.41666666666666663
    """
    asked = _one_metric(metric, semantics)
    told = row_id_column_name, asked, item, confidence, semantics
    found, labels, predictions = _read(solution, submission, *told)
    _check_solution(found)
    fatal = [one for one in found.problems if one.problem not in SCORED]
    if fatal:
        raise ParticipantVisibleError(found.public(fatal))
    wrong = [one for one in found.problems if one.problem in UNMATCHED]
    if wrong:
        warnings.warn(f"counts as wrong: {found.public(wrong)}", RuntimeWarning, stacklevel=2)
    return _value(labels, predictions, asked, semantics)


def _value(labels: Any, predictions: Any, asked: Metric, semantics: Counting | None) -> float:
    """Return the metric of tables of a row an id."""
    if semantics is None:
        semantics = "default" if _is_of_scores(asked) else LISTS
    # A competition knows no words for missing items.
    sides = (
        Labels(labels, exact_ids=True),
        Predictions(predictions, in_order=True, exact_ids=True),
    )
    value = evaluate(*sides, asked.text, semantics=semantics, per_query=False)[asked.text]
    if value is None:
        raise InputError(
            f"the solution has no label, and {asked.text} has no value: check that it is the "
            "solution"
        )
    return float(value)


def check(
    solution: Any,
    submission: Any,
    row_id_column_name: str | None = None,
    metric: str | None = None,
    *,
    item: str | None = None,
    confidence: str | None = None,
    semantics: Counting | None = None,
) -> SubmissionCheck:
    """Check a submission strictly, and list each problem with its row and what to do.

    Parameters are those of `score`; `solution` may be the sample submission. Without
    `row_id_column_name` the first column of the solution holds ids. With `semantics`, such as the
    preset of a competition, a submission that is not rejected is scored too, but not against a
    sample.

    Raises
    ------
    InputError
        If the solution is wrong.
    UsageError
        If the metric or a file does not exist.

    Examples
    --------
    >>> from rankmill.kaggle import check
    >>> import pandas as pd
    >>> solution = pd.DataFrame({"id": ["007", "008"], "predictions": ["a", "b"]})
    >>> submission = pd.DataFrame({"id": [7, 9], "predictions": ["a a", "b"]})
    >>> for one in check(solution, submission).problems:
    ...     print(one.problem, one.row, one.found, one.expected)
    id changed 0 ('7',) ('007',)
    id unknown 1 ('9',) ()
    row missing None () ('008',)
    repeated prediction 0 ('a',) ()
    """
    asked = _one_metric(metric, semantics)
    told = row_id_column_name, asked, item, confidence, semantics
    found, labels, predictions = _read(solution, submission, *told)
    doubt = "" if labels is None else _doubt(found, labels["items"])
    if doubt == SAMPLE and _skips_unknown(semantics):  # a sample has all ids
        found = _read(solution, submission, *told[:-1], None)[0]
    if doubt and not (doubt == SAMPLE and (predictions is None or semantics is None)):
        return replace(found, note=doubt)
    others = OTHERS if _skips_unknown(semantics) and not doubt else ""
    if predictions is None or semantics is None:
        return replace(found, note=others)
    value = _value(labels, predictions, asked, semantics)
    return replace(found, metric=asked.text, score=value, note=others)


def _doubt(found: SubmissionCheck, lists: Any) -> str:
    """Why lists of the same length may be no solution.

    The labels of two queries and more are never the same list of just as many items as the cutoff,
    nor are those of many queries the same list of any length.
    """
    lists, k = lists.combine_chunks(), found.cutoff
    lengths = numbers_of(pc.list_value_length(lists))
    if len(lengths) < 2 or not lengths[0] or (lengths != lengths[0]).any():
        return ""
    full = k is not None and 1 < k == lengths[0]
    items = numbers_of(pc.dictionary_encode(lists.flatten()).indices)
    same = (items.reshape(-1, lengths[0]) == items[: lengths[0]]).all()
    if same and (full or len(lengths) >= MANY):
        return SAMPLE
    if not full:
        return ""
    problems = [one.problem for one in found.problems]
    missing = problems.count("row missing")
    swapped = "column missing" in problems or missing == len(lists) - found.rows > 0
    return SWAPPED if swapped else ""


def _skips_unknown(semantics: Counting | None) -> bool:
    """Whether ids that are not among the labels may be in a submission."""
    return semantics is not None and Semantics.of(semantics).choices.unlabelled == "skip"


def _check_solution(found: SubmissionCheck) -> None:
    """Raise InputError if the solution lost zeros of ids; warn if of items, as no error may show.

    Participants see neither. An error about items would show them which ones are labels.
    """
    ids = [one for one in found.problems if one.problem == "id changed in solution"]
    if ids:
        one = ids[0]
        raise InputError(
            f"the solution, not the submission, lost leading zeros or got .0 in {len(ids)} ids: it "
            f"has {one.expected[0]!r}, and the submission {one.found[0]!r}: {one.remedy}"
        )
    items = [one for one in found.problems if one.problem == "item changed in solution"]
    if items:
        warnings.warn(
            f"the solution lost leading zeros or got .0 in items of {len(items)} rows: it has "
            f"{items[0].expected[0]!r}, and the submission {items[0].found[0]!r}, which counts as "
            f"wrong: {items[0].remedy}",
            RuntimeWarning,
            stacklevel=3,
        )


def _one_metric(text: str | None, semantics: Counting | None) -> Metric:
    named = preset_named(semantics)
    text = text or (PRESETS[named].own_metric if named else "") or "map@5"
    metric = parse(text)
    if metric.k is None and not _is_of_scores(metric):
        raise UsageError(f"{text} has no cutoff; expected one, such as {metric.name}@5")
    return metric


def _is_of_scores(metric: Metric) -> bool:
    return any(need.of_scores for need in needs_of(metric))


def _read(
    solution: Any,
    submission: Any,
    id: str | None,
    metric: Metric,
    item: str | None,
    confidence: str | None,
    semantics: Counting | None,
) -> tuple[SubmissionCheck, Any, Any]:
    """Return what is wrong with a submission, and both sides as tables of a row an id."""
    held = read_cells(solution, "labels")
    id, item = _columns_of(solution, list(held.columns), id, item, confidence)
    coded = pc.dictionary_encode(held.columns[id])
    if coded.null_count:
        raise InputError(
            f"{coded.null_count} rows of the solution have no id in {id!r}: fill them in, or drop "
            "the rows"
        )
    ids, codes = coded.dictionary, numbers_of(coded.indices)
    labels = by_id(codes, ids, split_cells(held.columns[item], False), None, False)
    try:
        cells = read_cells(submission, "predictions")
    except (InputError, UsageError) as error:
        if isinstance(submission, str | os.PathLike):
            theirs = os.path.exists(submission)
        else:
            theirs = isinstance(error, InputError) or hasattr(submission, "columns")
        if not theirs:
            raise
        why = re.sub(", or name its encoding, .*", "", str(error))  # it takes UTF-8 alone
        unread = Problem("not readable", found=(why,))
        return SubmissionCheck(0, (unread,)), None, None
    names = list(cells.columns)
    if confidence is None and len(ids) < len(codes) and item not in names and len(names) > 1:
        # A solution with one row per item, such as transactions, names no columns of a submission.
        id = id if id in names else names[0]
        named = preset_named(semantics)
        item = (named and PRESETS[named].lists) or [name for name in names if name != id][-1]
    wanted = [id, item] if confidence is None else [id, item, confidence]
    problems = column_problems(cells.columns, wanted)
    delimiter = held.delimiter or cells.usual
    if cells.delimiter and cells.delimiter != delimiter:
        problems.append(Problem("other delimiter", found=(cells.delimiter,), expected=(delimiter,)))
    predictions = None
    if not any(one.problem in ("column missing", "column renamed") for one in problems):
        items = pc.unique(labels["items"].combine_chunks().flatten())
        predictions = _add_rows(
            problems, cells, wanted, ids, items, metric, _skips_unknown(semantics)
        )
    kinds = list(PROBLEMS)
    problems.sort(key=lambda one: kinds.index(one.problem))
    found = SubmissionCheck(len(cells.rows), tuple(problems), cells.unit, metric.k)
    return found, labels, predictions


def _columns_of(
    solution: Any, names: list[str], id: str | None, item: str | None, confidence: str | None
) -> tuple[str, str]:
    """The columns of ids and items of a solution; raises InputError if it has none.

    Those of transactions, with one row per item, are found as those of labels are.
    """
    several = len({*names} - {confidence, USAGE}) > 2
    if several and None in (id, item) and {id, item} <= {None, *names}:
        labels = Labels(solution, query=id, item=item, binary=True, exact_ids=True)
        found = open_input(labels, noted=True)
        found.source.close()
        if not found.columns.wide:
            return found.columns.query, found.columns.item
    id = names[0] if id is None else id
    others = [name for name in names if name not in (id, confidence, USAGE)]
    known = item if item is not None or len(others) != 1 else others[0]
    if id not in names or known not in names:
        hint = f"; name a metric as metric={id!r}" if "@" in id else ""
        raise InputError(
            f"the solution has the columns {', '.join(map(repr, names))}; expected {id!r} for ids "
            f"and {'one other' if item is None else repr(item)} for items{hint}"
        )
    return id, str(known)


def _add_rows(
    problems: list[Problem],
    cells: Cells,
    names: Sequence[str],
    solution: Any,
    items_there: Any,
    metric: Metric,
    skips_unknown: bool,
) -> Any:
    """Add what is wrong with the rows of a submission; return the lists of the solution's ids."""
    ids, column = cells.columns[names[0]], item_cells(cells.columns[names[1]], items_there)
    long, of_scores = len(names) == 3, _is_of_scores(metric)
    strange = "id unknown" if skips_unknown else ""
    problems += (one for one in id_problems(cells, ids, solution, long) if one.problem != strange)
    if long:
        rows = np.flatnonzero(numbers_of(pc.is_valid(column).cast("uint8")))
        items = column.take(rows)
        listed = split_cells(column, False)._replace(
            rows=rows, items=items, scores=cells.columns[names[2]].take(rows)
        )
    else:
        listed = split_cells(column, of_scores)
    if not (of_scores and not long):  # an image without a landmark has none
        for i in np.flatnonzero(numbers_of(pc.is_null(column).cast("uint8"))).tolist():
            problems.append(Problem("no prediction", int(cells.rows[i]), ids[i].as_py()))
    scores = None if listed.scores is None else numbers_in(listed.scores)
    coded = pc.dictionary_encode(ids)
    own = numbers_of(pc.fill_null(coded.indices, len(coded.dictionary))).astype(np.int64)
    group = own[listed.rows] if long else listed.rows
    problems += list_problems(cells, ids, listed, group, scores, metric.k, items_there)
    if not {one.problem for one in problems} <= {*SCORED}:
        return None
    return by_id(own, coded.dictionary, listed, scores, long)
