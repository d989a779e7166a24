"""Why has this user such a value?"""

import rankmill

trace = rankmill.explain("labels.parquet", "new.parquet", "map@12", 17)
print(trace)
values = rankmill.evaluate("labels.parquet", "new.parquet", "map@12").per_query
assert trace.value == values["map@12"][17].as_py()
