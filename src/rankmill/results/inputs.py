"""Saying what was read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# The most columns that the text of an input names as not read.
MOST_LISTED = 10


def described(details: Mapping[str, object]) -> str:
    """Return what is known of an input, its source first, as a line of text."""
    rows, columns = details.get("rows"), details.get("columns")
    notes = [str(details[key]) for key in ("format", "shape") if key in details]
    notes = [note for note in notes if note != "parquet"]
    if isinstance(rows, int):
        notes.append(f"{rows:,} rows")
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
