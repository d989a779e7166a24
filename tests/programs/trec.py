"""Count as trec_eval does: -l 2 -M 100 -J."""

from rankmill import Semantics, evaluate

official = Semantics("trec_eval", rel=2, depth=100, judged_only=True)
print(evaluate("qrels.txt", "bm25.run", ["map", "ndcg@10", "p@5"], semantics=official))
