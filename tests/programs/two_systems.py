"""Which system is better, and is it real."""

import rankmill

runs = {"old": "old.parquet", "new": "new.parquet"}
found = rankmill.compare("labels.parquet", runs, ["map@12"], tests=["t", "randomization"])
new = found.differences["map@12"]["new"]
print(new.verdict, new.won, new.tied, new.lost)
