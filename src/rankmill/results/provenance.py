"""What was read, and by what rules it was counted, in words."""

from collections.abc import Mapping
from typing import Any

from rankmill.errors import plural
from rankmill.semantics.choices import DEFAULT, Choices
from rankmill.semantics.presets import PRESETS
from rankmill.semantics.scope import WHOLE, Scope

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
