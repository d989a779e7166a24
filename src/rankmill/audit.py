"""What was counted, skipped, repeated, tied or missing: names and meanings of the counts."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["FIELDS", "HEADLINE", "add", "empty", "notable"]

FIELDS: dict[str, str] = {
    "queries_labelled": "queries with at least one label",
    "queries_predicted": "queries with at least one prediction",
    "queries_in_both": "queries with labels and predictions",
    "queries_only_labelled": "labelled but never predicted: by default they score 0",
    "queries_only_predicted": "predicted but without a label: by default left out; wrong in gap",
    "empty_label_lists": "queries of the label input that were left without a label",
    "repeated_labels": "labels dropped because their query had them already",
    "null_labels": "null items among the labels, dropped",
    "nonpositive_gains": "labels dropped because their gain is 0 or less",
    "repeated_items": "predictions that repeat an earlier one of their list: by default wrong",
    "null_items": "null items among the predictions, dropped: those behind move up",
    "short_lists": "lists with fewer predictions than the largest cutoff",
    "tied_confidences": "predictions of equal confidence, one of them correct: ties in gap",
    "tied_ranks": "predictions of equal rank or confidence in a query, ranked by file order",
}
"""Name of each count -> what it counts, in the order in which results show them."""

HEADLINE = frozenset({"queries_labelled", "queries_predicted", "queries_in_both"})
"""The counts that any input has; the others tell of something that a reader may not expect."""


def empty() -> dict[str, int]:
    """Return a fresh audit: every count of `FIELDS`, at 0."""
    return dict.fromkeys(FIELDS, 0)


def add(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    """Return the sum of two audits, count by count; a count that one of them lacks is 0 there.

    A count that is not in `FIELDS` is a mistake of the caller and raises KeyError.
    """
    total = empty()
    for counts in (first, second):
        for name, count in counts.items():
            total[name] += int(count)
    return total


def notable(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the counts that are not 0 and not in `HEADLINE`, in the order of `FIELDS`."""
    return {name: counts[name] for name in FIELDS if name not in HEADLINE and counts.get(name, 0)}
