"""The audit in words: what looks wrong first."""

from collections.abc import Mapping

from rankmill.nightly.report.section import Finding
from rankmill.results import audit
from rankmill.semantics.choices import Choices
from rankmill.semantics.scope import Scope
from rankmill.show.scales import count, percent

SUSPECT = "look"
# What each count is a share of, and the share above which somebody should look: by default none,
# as it is a matter of the data.
_OF: dict[str, tuple[str, float]] = {
    "queries_only_labelled": ("queries_labelled", 0.01),
    "queries_only_predicted": ("queries_predicted", 0.1),
    "empty_label_lists": ("queries_labelled", 0.01),
    "repeated_labels": ("labels", 0.01),
    "null_labels": ("labels", 0.0),
    "nonpositive_gains": ("labels", 1.0),
    "repeated_items": ("predictions", 0.0),
    "null_items": ("predictions", 0.0),
    "items_beyond_depth": ("predictions", 1.0),
    "unjudged_items": ("predictions", 1.0),
    "seen_items": ("predictions", 1.0),
    "unknown_items": ("predictions", 1.0),
    "short_lists": ("queries_in_both", 0.1),
    "tied_confidences": ("predictions", 0.05),
    "tied_ranks": ("predictions", 0.01),
    "doubtful_rows": ("predictions", 0.0),
}
_TITLES = {
    "queries_only_labelled": "queries without predictions",
    "queries_only_predicted": "queries without labels",
    "empty_label_lists": "empty lists of labels",
    "repeated_labels": "repeated labels",
    "null_labels": "null labels",
    "nonpositive_gains": "gains of 0 or less",
    "repeated_items": "repeated predictions",
    "null_items": "null predictions",
    "items_beyond_depth": "predictions beyond the depth",
    "unjudged_items": "predictions that are not judged",
    "seen_items": "predictions that their query had in training",
    "unknown_items": "predictions that are not in the catalogue",
    "short_lists": "lists shorter than the largest cutoff",
    "tied_confidences": "tied confidences",
    "tied_ranks": "ties within a query",
    "doubtful_rows": "rows that do not fit how their file is read",
    "comment_lines": "comments in files of TREC's format",
}


def findings(counts: Mapping[str, int], semantics: Choices, scope: Scope) -> list[Finding]:
    """Return what is notable, what looks wrong first, and the larger share first."""
    meanings = audit.meanings(semantics, scope)
    found = []
    for key, number in audit.notable(counts).items():
        of, limit = _OF.get(key, ("predictions", 1.0))
        whole = counts.get(of, 0)
        share = number / whole if whole else 1.0
        told = f"{percent(share)} of {count(whole)} {of.replace('_', ' ')}" if whole else ""
        suspect = share > limit
        one = Finding(
            SUSPECT if suspect else "noted",
            "warn" if suspect else "even",
            f"{count(number)} {_TITLES.get(key, key.replace('_', ' '))}",
            told and f"({told})",
            meanings[key],
        )
        found.append((not suspect, -share, one))
    return [one for *_, one in sorted(found, key=lambda each: each[:2])]


def audit_title(found: list[Finding]) -> str:
    """Say whether anything looks wrong."""
    suspect = [str(one.title) for one in found if one.word == SUSPECT]
    if not suspect:
        return "Nothing looks wrong in the inputs"
    more = f", and {len(suspect) - 1} more" if len(suspect) > 1 else ""
    return f"Look at the inputs: {suspect[0]}{more}"
