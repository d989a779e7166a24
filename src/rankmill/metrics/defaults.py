"""The metrics that are computed if none is asked for; apart, as the help of commands names them."""

DEFAULT_METRICS = ("map@10", "first_hit@10", "recall@10", "ndcg@10")
