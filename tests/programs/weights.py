"""Queries count by their traffic."""

from rankmill import Labels, evaluate

result = evaluate(Labels("labels.parquet", weight="visits"), "new.parquet", "map@12")
assert result.scope.weight == "visits"
