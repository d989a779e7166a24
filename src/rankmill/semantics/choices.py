"""Semantics: every question on which evaluators differ, with the answers that there are."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from rankmill.errors import UsageError

__all__ = ["CHOICES", "DEFAULT", "Semantics"]

CHOICES: dict[str, dict[str, str]] = {
    "ap_divisor": {
        "min_k_labels": "divided by min(k, R), or by R without a cutoff",
        "labels": "divided by R",
        "min_labels_predictions": "divided by min(R, n, k)",
        "hits": "divided by the hits found within k",
    },
    "repeated_predictions": {
        "once": "a repeat keeps its rank and is wrong",
        "drop": "a repeat is dropped, and those behind it move up",
        "each": "a repeat of a label is a hit each time",
        "error": "a repeat is an error",
    },
    "repeated_labels": {
        "set": "labels are a set",
        "count": "R counts a label as often as it stands there",
        "error": "a repeated label is an error",
    },
    "order": {
        "given": "a list as it is; long rows by rank, else by confidence, else as read",
        "confidence": "by falling confidence, equal ones as given",
        "item_descending": "by falling confidence, equal ones by item id as text, descending",
        "item_ascending": "by falling confidence, equal ones by item id as text, ascending",
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
    "ideal_dcg": {
        "labels": "the labels, k at most",
        "k": "k labels of gain 1, however many there are; without a cutoff the labels",
    },
    "nan_confidence": {
        "error": "a confidence that is NaN or missing is an error",
        "last": "a confidence that is NaN or missing counts as minus infinity",
    },
}
"""Field of `Semantics` -> its choices, the default first -> what each means."""

_UNKNOWN_ORDERS = ("worst", "best", "expected")


@dataclass(frozen=True)
class Semantics:
    """How to count where evaluators differ: a field a question, each with the choices of `CHOICES`.

    Parameters
    ----------
    ap_divisor : {"min_k_labels", "labels", "min_labels_predictions", "hits"}
        What the sum of precisions is divided by: min(k, R), R, min(R, n, k), or the number of hits
        within k. R labels, n predictions.
    repeated_predictions : {"once", "drop", "each", "error"}
        A prediction that stands in its list before: it keeps its rank and is wrong; is dropped and
        those behind it move up; is a hit again; is an error.
    repeated_labels : {"set", "count", "error"}
        Whether R counts a label once, as often as it stands there, or that is an error. The ideal
        DCG has as many places.
    order : str
        The order of a query's predictions: as "given", or by falling confidence with equal ones in
        the order given ("confidence"), by item id as text, byte by byte ("item_descending",
        "item_ascending"), hits last ("worst"), hits first ("best"), or the "expected" value over
        all their orders. Predictions without confidences are taken as given.
    gap_ties : str
        Equal confidences in gap: "expected", "worst" or "best" value over all their orders, as
        "given", by query and item id ("ids"), or as one "threshold" with one precision. "given" and
        "ids" hold all predictions in memory.
    gap_total : {"labelled_queries", "label_pairs", "predicted_label_pairs", "hits"}
        What gap is divided by: queries with a label, all labels, those of queries with predictions,
        or the correct predictions. Predictions of queries without a label are wrong ones of its
        list in any case.
    unpredicted : {"zero", "skip", "error"}
        A query with labels and no predictions.
    unlabelled : {"skip", "zero", "one", "error"}
        A query with predictions that the labels do not hold.
    no_relevant : {"skip", "zero", "one", "error"}
        A query that the labels hold, but without an item of positive gain. Without predictions
        it is left out, and no error, unless `unpredicted` is "zero".
    precision_divisor : {"k", "min_k_predictions"}
        What precision@k divides its hits by; f1 follows.
    recall_divisor : {"labels", "min_k_labels"}
        What recall@k divides its hits by; f1 follows.
    ideal_dcg : {"labels", "k"}
        Whether ndcg@k divides by the best DCG of the query's labels, or of k labels of gain 1.
    nan_confidence : {"error", "last"}
        A confidence that is NaN or null.

    Raises
    ------
    UsageError
        If a field has no such choice; the message lists those it has.

    Examples
    --------
    >>> Semantics(ap_divisor="labels").differences()
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
    ideal_dcg: str = "labels"
    nan_confidence: str = "error"

    def __post_init__(self) -> None:
        for field, choice in asdict(self).items():
            if not isinstance(choice, str) or choice not in CHOICES[field]:
                raise UsageError(
                    f"semantics: {field} cannot be {choice!r}; it is one of "
                    f"{', '.join(CHOICES[field])}"
                )

    @property
    def ties_open(self) -> bool:
        """Whether the order of equal confidences is open until the hits are known."""
        return self.order in _UNKNOWN_ORDERS

    @property
    def counts_without_labels(self) -> bool:
        """Whether a query without a label may count, so that there is a mean without any label."""
        return any(one in ("zero", "one") for one in (self.no_relevant, self.unlabelled))

    @property
    def counts_by_predictions(self) -> bool:
        """Whether it is up to the predictions which queries count: those that they hold."""
        return self.unpredicted != "zero" or self.unlabelled in ("zero", "one")

    def differences(self, other: Semantics | None = None) -> dict[str, str]:
        """The fields that are not as in `other`, or as by default, and their choices here."""
        base = asdict(other or Semantics())
        return {field: choice for field, choice in asdict(self).items() if choice != base[field]}

    def to_dict(self) -> dict[str, str]:
        """All fields and their choices."""
        return asdict(self)


DEFAULT = Semantics()
