"""A result beside the oracle's."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import oracle

CLOSE = {"rel": 1e-12, "abs": 1e-15}
# A standard error is the root of a sum of squared differences; it is 0 if all values are equal.
CLOSE_ERROR = {"rel": 1e-12, "abs": 1e-12}
# Ratios of counts: one division, so that they are equal to the last bit.
RATIOS = {"first_hit", "precision", "recall", "hit", "rprec", "judged"}


def assert_agrees(
    result: Any, expected: oracle.Evaluation, exact: bool = True, per_query: bool = True
) -> None:
    """Compare all of a result with the oracle's; ratios are exact but with expected orders."""
    assert list(result.metrics) == list(expected.metrics)
    assert result.queries == expected.queries
    for name, value in expected.metrics.items():
        wanted = None if value is None else pytest.approx(value, **CLOSE)
        assert result.metrics[name] == wanted, name
    for name, error in expected.standard_errors.items():
        wanted = None if error is None else pytest.approx(error, **CLOSE_ERROR)
        assert result.standard_errors[name] == wanted, name
    assert set(result.bounds) == set(expected.bounds)
    for name, bounds in expected.bounds.items():
        assert result.bounds[name] == pytest.approx(bounds, **CLOSE), name
        assert bounds[0] - 1e-12 <= result.metrics[name] <= bounds[1] + 1e-12
    if expected.audit:  # not of a scope
        assert result.audit == expected.audit
    if not per_query:
        return
    table = result.per_query
    queries = table.column(0).to_pylist()
    assert [name for name in table.column_names[1:] if name != "weight"] == list(expected.per_query)
    for name, values in expected.per_query.items():
        assert table.schema.field(name).type == pa.float64()
        assert queries == list(values)
        found, wanted = table[name].to_pylist(), list(values.values())
        same = exact and oracle.parse(name)[0] in RATIOS
        assert found == (wanted if same else pytest.approx(wanted, **CLOSE)), name
