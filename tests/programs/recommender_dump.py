"""Score a nightly dump of recommendations, and keep the table of each user."""

import rankmill

result = rankmill.evaluate("labels.parquet", "new.parquet", ["map@12", "recall@12", "gap"])
print(result)
assert result["map@12"] > 0.5
assert result.per_query.num_rows == result.queries
