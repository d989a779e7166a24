"""Score many systems; the labels are read once."""

from rankmill import Predictions, evaluate_runs

dense = Predictions("dense.csv", query="topic", item="passage", score="cosine")
results = evaluate_runs("qrels.txt", {"bm25": "bm25.run", "dense": dense}, ["map", "ndcg@10"])
print(results)
assert list(results) == ["bm25", "dense"]
