"""Scope, and every question on which evaluators differ, with the choices for each question."""

from __future__ import annotations

from typing import Any

from rankmill.errors import UsageError
from rankmill.records import record

CHOICES: dict[str, dict[str, str]] = {
    "ap_divisor": {
        "min_k_labels": "divided by min(k, R), which is R without a cutoff",
        "labels": "divided by R",
        "min_labels_predictions": "divided by min(R, n, k)",
        "hits": "divided by the hits found within k",
    },
    "repeated_predictions": {
        "once": "a repeat keeps its rank and is wrong",
        "drop": "a repeat is dropped, and later predictions move up",
        "each": "a repeat of a label is a hit each time",
        "error": "a repeat is an error",
    },
    "repeated_labels": {
        "set": "labels are a set",
        "count": "R counts a label as often as it is given",
        "error": "a repeated label is an error",
    },
    "order": {
        "given": "a list as it is; long rows by rank, else by confidence, else as read",
        "confidence": "by falling confidence, equal ones as given",
        "item_descending": "by falling confidence, equal ones by item id as text, descending",
        "item_ascending": "by falling confidence, equal ones by item id as text, ascending",
        "item_descending_float32": "as item_descending, with confidences rounded to float32",
        "worst": "by falling confidence, of equal ones hits last",
        "best": "by falling confidence, of equal ones hits first",
        "expected": "by falling confidence, the expected value over all orders of equal ones",
    },
    "gap_ties": {
        "expected": "the expected value over all orders of equal confidences",
        "worst": "of equal confidences hits last",
        "best": "of equal confidences hits first",
        "given": "equal confidences as given, query by query",
        "ids": "equal confidences by query id, then by item id, both ascending",
        "threshold": "equal confidences share one threshold and its precision",
    },
    "gap_total": {
        "labelled_queries": "divided by the queries with a label",
        "label_pairs": "divided by the labels of all queries",
        "predicted_label_pairs": "divided by the labels of the queries with predictions",
        "hits": "divided by the correct predictions",
    },
    "unpredicted": {
        "zero": "a query with labels and no predictions scores 0",
        "skip": "a query with labels and no predictions is left out",
        "error": "a query with labels and no predictions is an error",
    },
    "unlabelled": {
        "skip": "a query that is not among the labels is left out",
        "zero": "a query that is not among the labels scores 0",
        "one": "a query that is not among the labels scores 1",
        "error": "a query that is not among the labels is an error",
    },
    "no_relevant": {
        "skip": "a query among the labels that is left without one is left out",
        "zero": "a query among the labels that is left without one scores 0",
        "one": "a query among the labels that is left without one scores 1",
        "scored": "a query among the labels that is left without one has the value of its list: "
        "0 in metrics that count hits, but num_ret and similar metrics count predictions",
        "error": "a query among the labels that is left without one is an error",
    },
    "precision_divisor": {
        "k": "divided by k",
        "min_k_predictions": "divided by min(k, n)",
    },
    "recall_divisor": {
        "labels": "divided by R",
        "min_k_labels": "divided by min(k, R)",
    },
    "recall_rounding": {
        "up": "recall x of R labels is reached with x R + 0.9 of them, cut to a whole number",
        "nearest": "recall x of R labels is reached with x R of them, rounded half up",
    },
    "ideal_dcg": {
        "labels": "the labels, k at most",
        "k": "k labels of gain 1, however many there are; without a cutoff the labels",
    },
    "nan_confidence": {
        "error": "a confidence that is NaN or missing is an error",
        "last": "a confidence that is NaN or missing counts as minus infinity",
    },
}
"""Field of `Choices` -> choice -> meaning of the choice. The first choice is the default."""

_UNKNOWN_ORDERS = ("worst", "best", "expected")


@record(frozen=True)
class Choices:
    """How rankmill counts where evaluators differ. Each field answers one question.

    `CHOICES` holds the choices of each field and their meaning; `Semantics`, which users write,
    describes each field. UsageError if a field does not have the given choice.

    Examples
    --------
    >>> Choices(ap_divisor="labels").differences()
    {'ap_divisor': 'labels'}
    """

    ap_divisor: str = "min_k_labels"
    repeated_predictions: str = "once"
    repeated_labels: str = "set"
    order: str = "given"
    gap_ties: str = "expected"
    gap_total: str = "labelled_queries"
    unpredicted: str = "zero"
    unlabelled: str = "skip"
    no_relevant: str = "skip"
    precision_divisor: str = "k"
    recall_divisor: str = "labels"
    recall_rounding: str = "up"
    ideal_dcg: str = "labels"
    nan_confidence: str = "error"

    def __post_init__(self) -> None:
        for field, choice in vars(self).items():
            if not isinstance(choice, str) or choice not in CHOICES[field]:
                raise UsageError(
                    f"semantics: {field} cannot be {choice!r}; it is one of "
                    f"{', '.join(CHOICES[field])}"
                )

    @property
    def ties_open(self) -> bool:
        """Whether the treatment of equal confidences depends on the hits among them."""
        return self.order in _UNKNOWN_ORDERS

    @property
    def counts_without_labels(self) -> bool:
        """Whether a query without a label may count; if so, a mean may exist without any label."""
        return self.scores_no_relevant or self.unlabelled in ("zero", "one")

    @property
    def scores_no_relevant(self) -> bool:
        """Whether a query among the labels that is left without one counts."""
        return self.no_relevant in ("zero", "one", "scored")

    @property
    def counts_by_predictions(self) -> bool:
        """Whether the set of queries that count depends on the predictions."""
        return self.unpredicted != "zero" or self.unlabelled in ("zero", "one")

    def differences(self, other: Choices | None = None) -> dict[str, str]:
        """The fields that differ from `other`, or else from the default, with their choices."""
        base = vars(other or Choices())
        return {field: choice for field, choice in vars(self).items() if choice != base[field]}

    def to_dict(self) -> dict[str, str]:
        """All fields with their choices."""
        return dict(vars(self))


DEFAULT = Choices()


# ------------------------------------------------------------------ scope: what counts at all


@record(frozen=True)
class Scope:
    """Which labels and predictions count, and how much, for all metrics of a job.

    The first three are trec_eval's -l, -M and -J.
    """

    # The least gain that counts as relevant, for the metrics that have this parameter; None for any
    # above 0. The names of these metrics include it.
    rel: float | None = None
    # Only so many predictions of each query count, the first ones in the order of the semantics.
    depth: int | None = None
    # Whether to drop predictions that are not judged; later predictions move up. An item is judged
    # if it is among the labels of the query with a gain of 0 or more, as in trec_eval. Those beyond
    # `depth` are cut off before.
    judged_only: bool = False
    # The column of the labels with the weight of each query; None if all count the same.
    weight: str | None = None
    # Whether predictions that their query had in training are dropped, before all else.
    drop_seen: bool = False

    @property
    def drops(self) -> bool:
        """Whether some predictions may not count."""
        return self.depth is not None or self.judged_only

    def to_dict(self) -> dict[str, Any]:
        """All fields with their values; the weight and whether seen items are dropped if so."""
        fields = dict(vars(self))
        if self.weight is None:
            del fields["weight"]
        if not self.drop_seen:
            del fields["drop_seen"]
        return fields

    def __str__(self) -> str:
        """The fields that are not as by default, in a line; "" if all are."""
        said = [
            "" if self.rel is None else f"relevant from gain {self.rel:g}",
            "" if self.depth is None else f"the first {self.depth:,} predictions of each query",
            "judged predictions only" if self.judged_only else "",
            "without items seen in training" if self.drop_seen else "",
            "" if self.weight is None else f"queries weighted by {self.weight}",
        ]
        return ", ".join(filter(None, said))


WHOLE = Scope()
