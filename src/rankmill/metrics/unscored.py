"""Metrics for which 0 is no bad value, so that a query without predictions cannot score 0."""

from collections.abc import Callable

from rankmill.metrics.base import Metric
from rankmill.semantics.choices import Semantics

# What a list lacks, by the field of semantics that says what it scores.
_ALL = ("unpredicted", "unlabelled", "no_relevant")


def is_no_zero(
    why: str, fields: tuple[str, ...] = ("unpredicted",)
) -> Callable[[Metric, Semantics], str]:
    """Return an `undefined` that refuses 0 for queries that have no value of their own."""

    def undefined(metric: Metric, semantics: Semantics) -> str:
        scored = [name for name in fields if getattr(semantics, name) in ("zero", "one")]
        if not scored:
            return ""
        chosen = ", ".join(f"{name} {getattr(semantics, name)!r}" for name in scored)
        skipped = ", ".join(f"{name}='skip'" for name in scored)
        return f"has no value under {chosen}, as {why}: choose {skipped}, or 'error'"

    return undefined


lower_is_better = is_no_zero("0 would be the best of all values", _ALL)


def one_order(metric: Metric, semantics: Semantics) -> str:
    """Refuse the orders of ties whose lowest and highest value is not that of hits at an end."""
    if semantics.order in ("worst", "best"):
        return (
            f"has no known {semantics.order} order of equal confidences: choose another order, "
            "such as item_descending"
        )
    return ""
