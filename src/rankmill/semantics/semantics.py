"""Semantics, as a user says them: a preset, choices that differ from it, and what counts at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import cached_property
from typing import Any, TypeAlias

from rankmill.errors import UsageError
from rankmill.semantics.choices import CHOICES, Choices
from rankmill.semantics.presets import preset


@dataclass(frozen=True, repr=False)
class Semantics:
    """How to count where evaluators differ: a preset, and what is to be otherwise than there.

    Parameters
    ----------
    preset : str
        The name of a preset such as "trec_eval"; ``rankmill presets`` prints all of them.
    rel : float, optional
        The least gain that counts as relevant, for every metric that has the parameter ``rel`` and
        no value for it in its name; trec_eval's -l. "map" becomes "map(rel=2)" in the result, which
        has it as "map" too. ndcg, dcg, judged and gap do not have the parameter.
    depth : int, optional
        Only so many predictions of each query count, the first ones in the order of the semantics,
        for all metrics; trec_eval's -M.
    judged_only : bool
        Whether predictions that are not judged are dropped, so that those behind move up;
        trec_eval's -J. An item is judged if it is among the labels with a gain of 0 or more. They
        are dropped after the cut at `depth`.
    gain_function : {"linear", "exp"} or a map such as "1=3,2=7"
        What a label of gain g is worth in ndcg, dcg and their like: g, 2**g - 1, or what a map says
        for every gain above 0, as trec_eval's ndcg.1=3,2=7. `rel` is in units of the gain itself.
    ap_divisor, repeated_predictions, repeated_labels, order, gap_ties, gap_total, unpredicted, \
unlabelled, no_relevant, precision_divisor, recall_divisor, recall_rounding, ideal_dcg, \
nan_confidence : str, optional
        The choice for each question on which evaluators differ; by default that of the preset.
        ``rankmill docs counting`` has all choices and what they mean.

    Raises
    ------
    UsageError
        If there is no such preset, or a field does not have the given choice.

    Examples
    --------
    >>> Semantics("trec_eval", rel=2)
    Semantics('trec_eval', rel=2)
    >>> Semantics(ap_divisor="labels").choices.differences()
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

    def __repr__(self) -> str:
        return noun_text(self, positional=int(self.preset != "default"))

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
        """Return what is given as semantics: the name of a preset, or a mapping of fields, too.

        Raises
        ------
        UsageError
            If it is none of these, or a preset, field or choice is unknown.
        """
        if isinstance(given, Semantics):
            return given
        if isinstance(given, str):
            return cls(given)
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


Counting: TypeAlias = str | Semantics | Choices | Mapping[str, Any]
"""What functions take as semantics, see `Semantics.of`."""


def noun_text(noun: Any, positional: int = 1) -> str:
    """Return what a noun of the face is made of, without what is as by default."""
    told = [_short(getattr(noun, one.name)) for one in fields(noun)[:positional]]
    for one in fields(noun)[positional:]:
        value = getattr(noun, one.name)
        if type(value) is not type(one.default) or value != one.default:
            told.append(f"{one.name}={_short(value)}")
    return f"{type(noun).__name__}({', '.join(told)})"


def _short(value: Any) -> str:
    is_plain = isinstance(value, str | int | float | list | tuple | None)
    text = repr(value) if is_plain else ""
    return text if 0 < len(text) <= 80 else f"<{type(value).__name__}>"
