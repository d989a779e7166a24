"""What both programs called trec_eval have, 9.0.8 and 10: their measures and options."""

TREC_EVAL = {
    "map": "map",
    "map@k": "map_cut_k",
    "first_hit": "recip_rank",
    "precision@k": "P_k",
    "recall@k": "recall_k",
    "recall": "set_recall",
    "hit@k": "success_k",
    "rprec": "Rprec",
    "ndcg": "ndcg",
    "ndcg@k": "ndcg_cut_k",
    "bpref": "bpref",
    "infap": "infAP",
    "relative_p@k": "relative_P_k",
    "num_ret": "num_ret",
    "num_rel": "num_rel",
    "num_rel_ret": "num_rel_ret",
    "num_nonrel_judged_ret": "num_nonrel_judged_ret",
    "utility": "utility",
    "set_p": "set_P",
    "set_f": "set_F",
    "set_map": "set_map",
    "set_relative_p": "set_relative_P",
    "iprec@x": "iprec_at_recall_x",
    "iprec_avg": "11pt_avg",
    "rprec_mult@x": "Rprec_mult_x",
    "bing": "binG",
    "g": "G",
    "ndcg_rel": "ndcg_rel",
    "rndcg": "Rndcg",
}
TREC_SKIPPED = ("runid", "num_q")
TREC_OPTIONS = (
    "-c is unpredicted='zero', -l 2 is --rel 2, -M 100 is --depth 100, and -J is --judged-only. "
    "Its totals of num_ret and similar metrics are num_ret:sum here; that of num_rel under -c "
    "counts all gains above 0, whatever -l. Where -J leaves a list empty, its iprec_at_recall is "
    "not a number. utility and num_nonrel_judged_ret are refused here for such a list, and with "
    "-c for a query without predictions."
)
