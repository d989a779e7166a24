"""A comparison for a paper: bootstrap intervals with a seed, corrected by Bonferroni."""

from rankmill import Tests, compare

runs = {"old": "old.parquet", "new": "new.parquet"}
tests = Tests(["bca", "t"], correction="bonferroni", replicates=500, seed=7)
found = compare("labels.parquet", runs, ["map@12", "hit@1"], tests=tests, confidence=0.9)
assert found.settings.replicates == 500
