"""Why do trec_eval and Spark disagree on the same dump?"""

import rankmill

presets = ["trec_eval", "spark"]
found = rankmill.explain_evaluators("labels.parquet", "new.parquet", "map@12", presets)
print(found)
assert "spark" in found.wholes
