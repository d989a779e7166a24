"""Options of a gate together: overlap, weights, clusters, a covariate, slices and the history."""

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest

import rankmill
from rankmill import gate, gate_power, record

N = 300
RULE = "map@2 drop <= 5% confidence 0.95"
SLICED = "map@2[land=*] drop <= 5%"
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
LABELS = pa.table(
    {
        "user_id": range(N),
        "items": [[1]] * N,
        "land": ["it" if query < 100 else "de" for query in range(N)],
        "number": [float(query % 7) for query in range(N)],
    }
)
ALL = set(range(N))


def lists(right):
    """Return predictions whose first item is the label of the queries in `right`."""
    return pa.table({"user_id": range(N), "items": [[1] if q in right else [9] for q in range(N)]})


def some(seed, rate=0.6):
    return {*np.flatnonzero(np.random.default_rng(seed).random(N) < rate).tolist()}


def values(right, **options):
    found = rankmill.evaluate(LABELS, lists(right), ["map@2"], per_query=True, **options)
    return found.per_query


def test_power_of_rules_that_are_not_paired_is_that_of_all_queries():
    before = values(some(1)).slice(0, 150).replace_schema_metadata(None)
    whole, italy = gate_power(
        LABELS, lists(some(2)), [RULE, "map@2[land=it] drop <= 5%"], baseline=before
    ).rules
    assert 0.1 < whole.smallest < 0.4
    paired = gate_power(LABELS, lists(some(2)), RULE, baseline=values(some(1))).rules[0]
    assert paired.smallest < whole.smallest
    assert italy.smallest > whole.smallest
