"""Semantics, as a user says them: a preset, choices that differ from it, and what counts at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, fields, replace
from functools import cache, cached_property
from numbers import Real
from typing import Any, TypeAlias

from rankmill.errors import UsageError
from rankmill.records import record
from rankmill.semantics.choices import CHOICES, Choices
from rankmill.semantics.presets import preset


@record(frozen=True, repr=False)
class Semantics:
    """How to count where evaluators differ: a preset, and changes to it.

    The fields from `ap_divisor` on are the questions on which evaluators differ. A field that is
    not given has the choice of the preset; without a preset, it has the first choice below.
    ``rankmill presets`` prints what each preset chooses.

    Parameters
    ----------
    preset : str
        The name of a preset such as "trec_eval"; ``rankmill presets`` prints all of them.
    rel : float, optional
        The lowest gain that counts as relevant, for every metric that has the parameter ``rel`` and
        no value for it in its name; trec_eval's -l. "map" becomes "map(rel=2)" in the result, which
        has it as "map" too. ndcg, dcg, judged and gap do not have the parameter.
    depth : int, optional
        How many predictions of each query count, the first ones in the order of the semantics, for
        all metrics. It is trec_eval's -M.
    judged_only : bool
        Whether to drop predictions that are not judged; later predictions move up. It is
        trec_eval's -J. An item is judged if it is among the labels with a gain of 0 or more. They
        are dropped after the cut at `depth`.
    gain_function : {"linear", "exp"} or a map such as "1=3,2=7"
        What a label of gain g is worth in ndcg, dcg and related metrics: g, 2**g - 1, or what a map
        says for every gain above 0, as trec_eval's ndcg.1=3,2=7. `rel` is in units of the gain
        itself.
    ap_divisor : {"min_k_labels", "labels", "min_labels_predictions", "hits"}
        The divisor of the sum of precisions in AP: min(k, R), R, min(R, n, k), or the number of
        hits within k. R is the number of labels, n the number of predictions.
    repeated_predictions : {"once", "drop", "each", "error"}
        The treatment of a prediction that repeats an earlier one of its list: it keeps its rank and
        is wrong; it is dropped and the later predictions move up; it is a hit again if it is a
        label; or it is an error.
    repeated_labels : {"set", "count", "error"}
        The treatment of a repeated label: R counts it once, R counts every repeat, or it is an
        error. The ideal DCG uses the same number of labels.
    order : str
        The order of a query's predictions. "given" keeps the order of the input. All other choices
        sort by descending confidence and differ in equal confidences: they stay in the given order
        ("confidence"), are sorted by item id as text, byte by byte ("item_descending",
        "item_ascending"), have their hits last ("worst") or first ("best"), or give the expected
        value over all their orders ("expected"). With "item_descending_float32", confidences are
        equal that are the same float32. Predictions without confidences stay as given.
    gap_ties : str
        The treatment of equal confidences in gap: the "expected", "worst" or "best" value over all
        their orders, the order "given", the order of query and item ids ("ids"), or one shared
        "threshold" with one precision. "given" and "ids" hold all predictions in memory.
    gap_total : {"labelled_queries", "label_pairs", "predicted_label_pairs", "hits"}
        The divisor of gap: the number of queries with a label, of all labels, of the labels of
        queries with predictions, or of correct predictions. With every choice, the predictions of
        queries without a label are wrong predictions in the list of gap.
    unpredicted : {"zero", "skip", "error"}
        The treatment of a query with labels but no predictions: it has the worst value of each
        metric's range, which is 0 in most; it is left out; or it is an error.
    unlabelled : {"skip", "zero", "one", "error"}
        The treatment of a query with predictions that is not among the labels: it is left out,
        scores 0, scores 1, or is an error.
    no_relevant : {"skip", "zero", "one", "scored", "error"}
        The treatment of a query that is among the labels but has no item of positive gain. If such
        a query has no predictions, it is left out without an error unless `unpredicted` is "zero".
        With "scored", every metric has the value of the list: 0 if it counts hits, while num_ret,
        utility and num_nonrel_judged_ret count its predictions.
    precision_divisor : {"k", "min_k_predictions"}
        The divisor of the hits in precision@k, which f1 uses too.
    recall_divisor : {"labels", "min_k_labels"}
        The divisor of the hits in recall@k, which f1 uses too.
    recall_rounding : {"up", "nearest"}
        How many of R labels must be found for recall x in iprec and iprec_avg: x R + 0.9, cut to a
        whole number, or x R, rounded half up.
    ideal_dcg : {"labels", "k"}
        The ideal DCG in ndcg@k: the best DCG of the query's labels, or that of k labels of gain 1.
    nan_confidence : {"error", "last"}
        The treatment of a confidence that is NaN or null: an error, or as minus infinity.

    Raises
    ------
    UsageError
        If there is no such preset, or a field does not have the given choice.

    Examples
    --------
    >>> import rankmill
    >>> rankmill.Semantics("trec_eval", rel=2)
    Semantics('trec_eval', rel=2)
    >>> rankmill.Semantics(ap_divisor="labels").choices.differences()
    {'ap_divisor': 'labels'}
    """

    preset: str = "default"
    _: KW_ONLY
    rel: float | None = None
    depth: int | None = None
    judged_only: bool = False
    gain_function: str = "linear"
    ap_divisor: str | None = None
    repeated_predictions: str | None = None
    repeated_labels: str | None = None
    order: str | None = None
    gap_ties: str | None = None
    gap_total: str | None = None
    unpredicted: str | None = None
    unlabelled: str | None = None
    no_relevant: str | None = None
    precision_divisor: str | None = None
    recall_divisor: str | None = None
    recall_rounding: str | None = None
    ideal_dcg: str | None = None
    nan_confidence: str | None = None

    def __post_init__(self) -> None:
        _ = self.choices  # so that what is wrong is told where it is written
        if isinstance(self.rel, bool) or not isinstance(self.rel, Real | None):
            raise UsageError(f"rel is {self.rel!r}; expected a number, such as 2")
        if not isinstance(self.judged_only, bool):
            raise UsageError(f"judged_only is {self.judged_only!r}; expected True or False")

    def __repr__(self) -> str:
        return noun_text(self)

    @cached_property
    def choices(self) -> Choices:
        """The choice for every question."""
        given = {name: getattr(self, name) for name in CHOICES}
        changed = {name: choice for name, choice in given.items() if choice is not None}
        return replace(preset(self.preset).semantics, **changed)

    def under(self, choices: Choices) -> Semantics:
        """Return the same with other choices, all of which are given."""
        told: dict[str, Any] = choices.to_dict()
        return replace(self, preset="default", **told)

    @classmethod
    def of(cls, given: Counting) -> Semantics:
        """Return a `Semantics`, also from the name of a preset or a mapping of fields.

        Raises
        ------
        UsageError
            If it is none of these, or a preset, field or choice is unknown.
        """
        if isinstance(given, Semantics):
            return given
        if isinstance(given, str):
            return _of_preset(given)
        told = given.to_dict() if isinstance(given, Choices) else given
        if not isinstance(told, Mapping):
            raise UsageError(
                f"semantics is {given!r}; expected the name of a preset, a Semantics, or a mapping "
                "of its fields"
            )
        known = {one.name for one in fields(cls)}
        for name in told:
            if name not in known:
                there = ", ".join(sorted(CHOICES))
                raise UsageError(f"semantics has no field {name!r}, only {there}")
        return cls(**told)


@cache
def _of_preset(name: str) -> Semantics:
    """Return what a preset says; a training loop asks for the same at each step."""
    return Semantics(name)


Counting: TypeAlias = str | Semantics | Choices | Mapping[str, Any]
"""What functions take as semantics, see `Semantics.of`."""


def noun_text(noun: Any) -> str:
    """Return what a noun of the face is made of, without what is as by default."""
    told = []
    for one in fields(noun):
        value = getattr(noun, one.name)
        if type(value) is not type(one.default) or value != one.default:
            told.append(f"{one.name}={_short(value)}" if one.kw_only else _short(value))
    return f"{type(noun).__name__}({', '.join(told)})"


def _short(value: Any) -> str:
    is_plain = isinstance(value, str | int | float | list | tuple | None)
    text = repr(value) if is_plain else ""
    return text if 0 < len(text) <= 80 else f"<{type(value).__name__}>"
