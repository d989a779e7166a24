"""Stop a bad model before it is shipped, and remember the night."""

from rankmill import History, Rules, gate

rules = Rules(["map@12 >= 0.2", "map@12 drop <= 5% confidence 0.95"], undecided="fail")
verdict = gate("labels.parquet", "new.parquet", rules, baseline="old.parquet")
History("runs").record(verdict, tags={"model": "v2"})
assert verdict, verdict
