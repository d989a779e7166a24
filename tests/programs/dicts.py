"""Score the dicts of pytrec_eval."""

import rankmill

qrels = {"q1": {"d1": 2, "d2": 0}, "q2": {"d3": 1}}
run = {"q1": {"d2": 0.5, "d1": 0.75}, "q2": {"d4": 1.5, "d3": 1.25}}
assert rankmill.evaluate(qrels, run, ["map", "ndcg@10"])["map"] == 0.75
