"""What a run had beside labels and predictions: values over other things do not compare."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from rankmill.engine.job import BESIDE, Job
from rankmill.errors import UsageError
from rankmill.metrics.aggregate import aggregate_of, needs_of
from rankmill.metrics.registry import parse

# Which inputs there were, and the column of the groups of items.
KEYS = "beside", "item_group"


def beside_of(inputs: Mapping[str, Any]) -> dict[str, str]:
    """Return what the inputs of a result, or a run, say of it, for its rules; {} without any."""
    group = inputs.get("items", {}).get("columns", {}).get("group")
    return _told([name for name in BESIDE if name in inputs], group)


def beside_of_job(job: Job) -> dict[str, str]:
    """Return the same of a job."""
    return _told(job.beside, job.group)


def _told(names: Sequence[str], group: str | None) -> dict[str, str]:
    found = {"beside": ", ".join(names)} if names else {}
    return found | ({} if group is None else {"item_group": group})


@cache
def looks_at(metric: str) -> bool:
    """Return whether what is beside labels and predictions changes what a metric is."""
    try:
        asked = parse(metric)
        whole = getattr(aggregate_of(asked), "whole", False)
    except UsageError:  # of a version that has other metrics
        return True
    return whole or any(need.given for need in needs_of(asked))


def heeded(rules: str, metric: str) -> str:
    """Return the rules of a run, as `rules_text` writes them, that a metric heeds."""
    return rules if looks_at(metric) else _without(rules)


@cache  # of thousands of runs, nearly all count the same
def _without(rules: str) -> str:
    told = json.loads(rules)
    return json.dumps({name: one for name, one in told.items() if name not in KEYS}, sort_keys=True)
