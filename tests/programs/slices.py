"""Who loses by the change: slices of users, and those that moved most."""

import rankmill

runs = {"old": "old.parquet", "new": "new.parquet"}
by = ["country", "users.csv", "label_count"]
found = rankmill.compare("labels.parquet", runs, "map@12", by=by, moved=2)
assert {one.by for one in found.slices} >= {("country",), ("age",), ("label_count",)}
