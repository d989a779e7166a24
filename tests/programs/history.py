"""Look back: the trend of a metric, and a gate against the last good run."""

from rankmill import History, evaluate, gate

history = History("runs")
for night in ("old.parquet", "new.parquet"):
    history.record(evaluate("labels.parquet", night, "map@12"))
assert len(history.trend("map@12").points) == 2
assert gate("labels.parquet", "new.parquet", "map@12 drop <= 20%", baseline="last", history="runs")
