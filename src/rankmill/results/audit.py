"""What was counted, skipped, repeated, tied or missing: names and meanings of the counts."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from rankmill.errors import plural, spoken
from rankmill.semantics.choices import DEFAULT, WHOLE, Choices, Scope
from rankmill.semantics.presets import PRESETS


class AuditCount(NamedTuple):
    """What a count is called in prose, and what it is a share of.

    A share above `limit` is one that somebody should look at: by default none is, as it is a matter
    of the data.
    """

    title: str
    of: str = "predictions"
    limit: float = 1.0


COUNTS = {
    "queries_labelled": AuditCount("queries with labels"),
    "queries_predicted": AuditCount("queries with predictions", "queries_labelled"),
    "queries_in_both": AuditCount("queries with both", "queries_labelled"),
    "queries_only_labelled": AuditCount("queries without predictions", "queries_labelled", 0.01),
    "queries_only_predicted": AuditCount("queries without labels", "queries_predicted", 0.1),
    "empty_label_lists": AuditCount("empty lists of labels", "queries_labelled", 0.01),
    "repeated_labels": AuditCount("repeated labels", "labels", 0.01),
    "null_labels": AuditCount("null labels", "labels", 0.0),
    "nonpositive_gains": AuditCount("gains of 0 or less", "labels"),
    "repeated_items": AuditCount("repeated predictions", limit=0.0),
    "null_items": AuditCount("null predictions", limit=0.0),
    "items_beyond_depth": AuditCount("predictions beyond the depth"),
    "unjudged_items": AuditCount("predictions that are not judged"),
    "seen_items": AuditCount("predictions that their query had in training"),
    "unknown_items": AuditCount("predictions that are not in the catalogue"),
    "short_lists": AuditCount("lists shorter than the largest cutoff", "queries_in_both", 0.1),
    "tied_confidences": AuditCount("tied confidences", limit=0.05),
    "tied_ranks": AuditCount("ties within a query", limit=0.01),
    "comment_lines": AuditCount("comments in files of TREC's format"),
    "labels": AuditCount("labels"),
    "predictions": AuditCount("predictions"),
}
"""Name -> each count, in the order in which results show them; `meanings` says what it counts."""
FIELDS = tuple(COUNTS)

PADDED = "padded_lists"
"""A count that travels with those of `FIELDS` and becomes a note of the result."""

HEADLINE = frozenset({"queries_labelled", "queries_predicted", "queries_in_both"})
"""The counts that any input has; the others tell of something that a reader may not expect."""

TOTALS = frozenset({"labels", "predictions"})
"""What the other counts are shares of. Texts do not show them, as they are right in any input."""

_SCORE = {
    "skip": "left out of means",
    "zero": "they score 0",
    "one": "they score 1",
    "scored": "they score the value of their lists",
    "error": "an error",
}
_REPEATED_LABELS = {
    "set": "dropped, and the largest gain counts",
    "count": "R counts them, hits do not",
    "error": "an error",
}
_REPEATED_ITEMS = {
    "once": "wrong",
    "drop": "dropped, and later ones move up",
    "each": "hits again if the first is one",
    "error": "an error",
}


def meanings(semantics: Choices, scope: Scope = WHOLE) -> dict[str, str]:
    """Return what each count of `FIELDS` counts, and what these rules make of it."""
    in_gap = "what is judged of them is wrong in gap" if scope.judged_only else "wrong in gap"
    return {
        "queries_labelled": "queries with at least one label",
        "queries_predicted": "queries with at least one prediction",
        "queries_in_both": "queries with labels and predictions",
        "queries_only_labelled": f"labelled but never predicted: {_unpredicted(semantics)}",
        "queries_only_predicted": (
            f"predicted but without a label: {_unlabelled(semantics)}; {in_gap}"
        ),
        "empty_label_lists": (
            f"queries of the label input that were left without a label: {_no_relevant(semantics)}"
        ),
        "repeated_labels": (
            f"labels that their query had already: {_REPEATED_LABELS[semantics.repeated_labels]}"
        ),
        "null_labels": "null items and padding among the labels, dropped",
        "nonpositive_gains": "items judged with a gain of 0 or less, which makes them no labels",
        "repeated_items": (
            "predictions that repeat an earlier one of their list: "
            f"{_REPEATED_ITEMS[semantics.repeated_predictions]}"
        ),
        "null_items": "null items and padding among the predictions, dropped: later ones move up",
        "items_beyond_depth": "predictions beyond the depth, cut off",
        "unjudged_items": "predictions that are not judged, dropped: later ones move up",
        "seen_items": spoken(
            "predictions that their query had in training"
            + (", dropped: later ones move up" if scope.drop_seen else "; --drop-seen drops them")
        ),
        "unknown_items": "predictions that are not in the catalogue",
        "short_lists": "lists with fewer predictions than the largest cutoff",
        "tied_confidences": "predictions of equal confidence, one of them correct: ties in gap",
        "tied_ranks": "predictions of equal rank or confidence in a query, ranked by file order",
        "comment_lines": "lines of TREC's format that begin with #, skipped",
        "labels": "labels of all queries, without those that were dropped",
        "predictions": "predictions of all queries, without null items",
    }


def _unpredicted(semantics: Choices) -> str:
    score = _SCORE[semantics.unpredicted]
    in_total = semantics.gap_total in ("labelled_queries", "label_pairs")
    return f"{score}, but gap counts them" if score == _SCORE["skip"] and in_total else score


def _unlabelled(semantics: Choices) -> str:
    strange, empty = _SCORE[semantics.unlabelled], _SCORE[semantics.no_relevant]
    if semantics.unlabelled == "zero":
        strange += " (unlabelled=skip leaves them out, as the preset kaggle_hm does)"
        empty = strange if empty == _SCORE["zero"] else empty
    return strange if strange == empty else f"{strange}; if among the labels, {empty}"


def _no_relevant(semantics: Choices) -> str:
    score = _SCORE[semantics.no_relevant]
    if semantics.no_relevant == "skip" or semantics.unpredicted == "zero":
        return score
    return f"{score} if predicted, else left out"


def empty() -> dict[str, int]:
    """Return a fresh audit: every count of `FIELDS`, at 0."""
    return dict.fromkeys(FIELDS, 0)


def add(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    """Return the sum of two audits, count by count; a count that one of them lacks is 0 there.

    The sum has `PADDED`, too. Any other count that is not in `FIELDS` is a mistake of the caller
    and raises KeyError.
    """
    total = empty() | {PADDED: 0}
    for counts in (first, second):
        for name, count in counts.items():
            if count or name not in total:
                total[name] += int(count)
    return total


def notable(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the counts that are not 0 and may surprise, in the order of `FIELDS`."""
    usual = HEADLINE | TOTALS
    return {name: counts[name] for name in FIELDS if name not in usual and counts.get(name, 0)}


def rows(
    audits: Sequence[Mapping[str, int]],
    semantics: Choices,
    scope: Scope = WHOLE,
    usual: Collection[str] = HEADLINE,
) -> list[tuple[str, list[int], str]]:
    """Return what audits count, side by side: name, the count of each audit, and meaning.

    They are the `usual` counts, and those that are notable in one of the audits.
    """
    shown = {*usual}.union(*map(notable, audits))
    return [
        (name, [one.get(name, 0) for one in audits], meaning)
        for name, meaning in meanings(semantics, scope).items()
        if name in shown
    ]


# ------------------------------------------------------------------ how it was counted

# The most columns that the text of an input names as not read.
MOST_LISTED = 10


def rules_of(semantics: Choices, scope: Scope) -> dict[str, str]:
    """Return what differs from the default in the rules of counting, as facts."""
    facts = {"semantics": semantics_text(semantics)} if semantics != DEFAULT else {}
    return facts | ({"scope": str(scope)} if scope != WHOLE else {})


def semantics_text(semantics: Choices) -> str:
    """Return the names that semantics have, and how they differ from the default, as a line."""
    names = [name for name, one in PRESETS.items() if one.semantics == semantics]
    choices = ", ".join(f"{field} {choice}" for field, choice in semantics.differences().items())
    return ": ".join(filter(None, [", ".join(names), choices]))


def described(details: Mapping[str, object]) -> str:
    """Return what is known of an input, its source first, as a line of text."""
    rows, columns = details.get("rows"), details.get("columns")
    notes = [str(details[key]) for key in ("format", "shape") if key in details]
    notes = [note for note in notes if note != "parquet"]
    if isinstance(rows, int):
        notes.append(plural(rows, "row"))
    if isinstance(columns, dict) and columns:
        notes.append(", ".join(f"{role} = {name}" for role, name in columns.items() if name))
    unread = details.get("unread")
    if isinstance(unread, list):
        more = len(unread) - MOST_LISTED
        shown = [*unread[:MOST_LISTED], *([f"and {more} more"] if more > 0 else [])]
        notes.append(f"not read: {', '.join(one or repr(one) for one in shown)}")
    return f"{details.get('source', '')} ({'; '.join(notes)})"


def beside(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was read beside labels and predictions, such as a training set."""
    return {
        name: one
        for name, one in inputs.items()
        if name not in ("labels", "predictions", "systems")
    }


def facts_of(inputs: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the inputs of several systems as facts: the labels, each system, and the others."""
    named = {"labels": inputs.get("labels", {}), **inputs.get("systems", {})}
    return [(name, described(one)) for name, one in [*named.items(), *beside(inputs).items()]]
