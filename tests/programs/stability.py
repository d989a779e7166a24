"""Does the ranking of my systems hold at other cutoffs and over other users?"""

import rankmill

runs = {"old": "old.parquet", "new": "new.parquet"}
found = rankmill.stability("labels.parquet", runs, ["map", "ndcg"], cutoffs=[1, 3, 12], splits=20)
print(found)
