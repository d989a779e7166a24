"""Score parts of the users in several processes, and add them up exactly."""

import pyarrow.parquet as pq

import rankmill
from rankmill.parts import evaluate_part

labels, run = pq.read_table("labels.parquet"), pq.read_table("new.parquet")
halves = [(labels.slice(at, 100), run.slice(at, 100)) for at in (0, 100)]
one, other = (evaluate_part(*half, metrics=["map@12"]) for half in halves)
whole = rankmill.evaluate(labels, run, ["map@12"])
assert one.merge(other).result().metrics == whole.metrics
