"""Fuse a lexical and a dense run whose files are of different kinds, and score the fused one."""

from rankmill import Predictions, evaluate, fuse

dense = Predictions("dense.csv", query="topic", item="passage", score="cosine")
fused = fuse({"bm25": "bm25.run", "dense": dense}, method="combsum", weights=[1, 2], top=100)
print(evaluate("qrels.txt", fused, ["ndcg@10"]))
