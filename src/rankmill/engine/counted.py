"""Which queries count in a mean, and as what where they have no label."""

from typing import NamedTuple

import numpy as np

from rankmill.columns.ids import id_text
from rankmill.engine.tally import Tally
from rankmill.errors import InputError
from rankmill.semantics.choices import Semantics


class Counted(NamedTuple):
    """The queries that count.

    Attributes
    ----------
    queries, ones : int
        How many there are, and how many of them score 1 because they have no label.
    among_labels : bool
        Which of the labels' queries they are.
    strangers : bool
        Whether those with predictions that are not among the labels count as well.
    no_relevant, unlabelled : float
        What a query without a label scores, among the labels and not.
    """

    queries: int
    ones: int
    among_labels: np.ndarray
    strangers: bool
    no_relevant: float
    unlabelled: float


def counts_without_labels(semantics: Semantics) -> bool:
    """Whether a query without a label may count, so that there is a mean without any label."""
    return any(one in ("zero", "one") for one in (semantics.no_relevant, semantics.unlabelled))


def counts_may_differ(semantics: Semantics) -> bool:
    """Whether it is up to the predictions which queries count: those that they hold."""
    return semantics.unpredicted != "zero" or semantics.unlabelled in ("zero", "one")


def counted_queries(tally: Tally, source: str) -> Counted:
    """The queries that count under the semantics of a run; `source` names its predictions.

    Raises
    ------
    InputError
        If a query has no predictions or no label, and that is an error.
    """
    semantics = tally.plan.semantics
    labelled, asked = tally.has_labels, tally.asked
    for field, wrong, what, todo in (
        ("unpredicted", labelled & ~asked, "has labels but no predictions", "predict it"),
        ("no_relevant", ~labelled & asked, "is left without a label", "drop it"),
    ):
        if getattr(semantics, field) == "error" and wrong.any():
            query = id_text(tally.index.queries, int(wrong.argmax()))
            more = int(wrong.sum()) - 1
            raise InputError(
                f"{source}: query {query} {what}{f', as {more:,} more' if more else ''}, but "
                f"{field} is 'error': {todo}, or choose 'zero' or 'skip'"
            )
    counts = labelled & asked
    empty = ~labelled & asked
    ones = 0
    if semantics.no_relevant in ("zero", "one"):
        counts |= empty
        ones += int(empty.sum()) if semantics.no_relevant == "one" else 0
    strangers = semantics.unlabelled in ("zero", "one")
    unlabelled = tally.counts["unlabelled"] if strangers else 0
    ones += unlabelled if semantics.unlabelled == "one" else 0
    return Counted(
        queries=int(counts.sum()) + unlabelled,
        ones=ones,
        among_labels=counts,
        strangers=strangers,
        no_relevant=float(semantics.no_relevant == "one"),
        unlabelled=float(semantics.unlabelled == "one"),
    )
