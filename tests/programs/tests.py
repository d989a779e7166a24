"""A comparison for a paper: the randomization test with a seed, and the share of wrong findings."""

from rankmill import Tests, compare

runs = {"old": "old.parquet", "new": "new.parquet"}
tests = Tests(["randomization", "t"], correction="bh", seed=7)
found = compare("labels.parquet", runs, ["map@12", "hit@1"], tests=tests, confidence=0.9)
assert found.settings.seed == 7
