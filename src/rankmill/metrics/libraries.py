"""The metrics of other libraries, by the names that these export: what to type here, or why not.

What stands behind a semicolon is what else to choose.
"""

_RATINGS = "it is the error of predicted ratings, not a metric of ranked lists"
_AMONG = "it knows only the labels among the predictions"
_EXTENDED = "it keeps a value for each user, as the table of queries does: type {}"
_OF_GROUPS = "it compares groups of users or ratings: use --by"
_PARITY = "it is the spread over groups of items; exposure_parity and recall_parity are ratios"

COMPUTED: dict[str, dict[str, str]] = {
    "trec_eval": {"ndcg_p": "ndcg_jk"},  # in its source, and none of its programs
    "ir_measures": {
        **dict.fromkeys(("AP", "MAP"), "map"),
        **dict.fromkeys(("RR", "MRR"), "first_hit"),
        **dict.fromkeys(("P", "Precision"), "precision@10"),
        **dict.fromkeys(("R", "Recall"), "recall@10"),
        **dict.fromkeys(("Rprec", "RPrec"), "rprec"),
        **dict.fromkeys(("nDCG", "NDCG"), "ndcg@10"),
        **dict.fromkeys(("Bpref", "BPref"), "bpref"),
        **dict.fromkeys(("alpha_DCG", "α_DCG"), "alpha_dcg@10"),
        **dict.fromkeys(("alpha_nDCG", "α_nDCG"), "alpha_ndcg@10"),
        **dict.fromkeys(("AP_IA", "MAP_IA"), "map_ia"),
        **{
            "Success": "hit@10",
            "Compat": "compat; scores above 0",
            "SDCG": "sdcg(max=3)@10",
            "INSQ": "insq(max=3)",
        },
        **{"NumRet": "num_ret:sum", "NumRel": "num_rel:sum", "NumRelRet": "num_rel_ret:sum"},
        **{"SetP": "set_p", "SetR": "set_recall", "SetF": "set_f", "SetAP": "set_map"},
        **{"SetRelP": "set_relative_p", "IPrec": "iprec@0.1", "RBP": "rbp(p=0.8)", "ERR": "err@10"},
        **{"BPM": "bpm(max=3)@10", "INST": "inst(max=3)", "Judged": "judged@10", "infAP": "infap"},
        **{"NERR8": "nerr8(max=3)@10", "NERR9": "nerr9(max=3)@10", "NERR10": "nerr10(max=3)"},
        **{"NERR11": "nerr11(max=3)", "ERR_IA": "err_ia@10", "nERR_IA": "nerr_ia@10"},
        **{"NRBP": "nrbp", "nNRBP": "nnrbp", "P_IA": "p_ia@10", "StRecall": "subtopic_recall@10"},
    },
    "ranx": {
        **{"hit_rate": "hit@10", "precision": "precision@10", "recall": "recall@10", "f1": "f1@10"},
        **{"r-precision": "rprec", "mrr": "first_hit", "map": "map", "dcg": "dcg@10"},
        **{"ndcg": "ndcg@10", "bpref": "bpref", "hits": "num_rel_ret"},
        "rbp": "rbp(rel=1,p=0.95); gains of 1, by which it multiplies",
        **{"dcg_burges": "dcg(gain=exp)@10", "ndcg_burges": "ndcg(gain=exp)@10"},
    },
    "rectools": {
        **{"Precision": "precision@10", "Recall": "recall@10", "F1Beta": "fbeta@10"},
        **{"HitRate": "hit@10", "MRR": "first_hit@10"},
        "MAP": "map@10; --semantics ap_divisor=labels",
        "NDCG": "ndcg@10; --binary --semantics ideal_dcg=k",
        **{"CatalogCoverage": "coverage@10", "MeanInvUserFreq": "novelty@10"},
        **{"AvgRecPopularity": "popularity@10", "Serendipity": "serendipity@10"},
        **{"CoveredUsers": "user_coverage", "MCC": "mcc(items=1000)@10"},
    },
    "recbole": {
        **{"Hit": "hit@10", "MRR": "first_hit@10", "MAP": "map@10", "Recall": "recall@10"},
        **{"NDCG": "ndcg@10; --binary", "Precision": "precision@10", "GAUC": "gauc(by=hits)"},
        **{"AUC": "roc_auc", "LogLoss": "log_loss", "AveragePopularity": "popularity@10"},
        "ItemCoverage": "coverage@10; one more item, for padding",
        "GiniIndex": "gini(of=N)@10; one more item, for padding",
    },
    "replay": {
        **{"Coverage": "coverage@10", "HitRate": "hit@10", "MAP": "map@10", "MRR": "first_hit@10"},
        **{"NDCG": "ndcg@10; --binary", "Precision": "precision@10", "Recall": "recall@10"},
        **{"RocAuc": "auc@10", "Median": "map@10:median"},
    },
    "lenskit": {
        **{"ListLength": "num_ret", "TestItemCount": "num_rel", "RBP": "rbp(p=0.85)"},
        **{"Hit": "hit@10", "RecipRank": "first_hit", "ListGini": "gini(of=N)@10"},
        **{"NDCG": "ndcg_jk@10", "DCG": "dcg_jk@10"},
        "Precision": "precision@10; --semantics precision_divisor=min_k_predictions",
        "Recall": "recall@10; --semantics recall_divisor=min_k_labels",
        "rank_biased_overlap": "rbo(p=0.85)@10; lists of at least 10 items",
    },
    "elliot": {
        **{"nDCGRendle2020": "ndcg@10; --binary", "Precision": "precision@10", "HR": "hit@10"},
        **{"Recall": "recall@10", "MRR": "first_hit@10", "F1": "f1@10", "DSC": "fbeta@10"},
        **{"NumRetrieved": "num_ret; --depth 10", "EFD": "efd@10", "EPC": "epc@10"},
        **{"SEntropy": "entropy@10; lists of at least 10 items", "ARP": "popularity@10"},
    },
    "cornac": {
        **{"NDCG": "ndcg@10; --binary", "MRR": "first_hit", "HitRatio": "hit@10", "MAP": "map"},
        **{"Precision": "precision@10", "Recall": "recall@10", "FMeasure": "f1@10", "AUC": "auc"},
        "PHR": "hit@10",  # HitRatio before cornac 3
    },
    "torchmetrics": {
        **{"RetrievalMAP": "map", "RetrievalMRR": "first_hit", "RetrievalHitRate": "hit@10"},
        **{
            "RetrievalPrecision": "precision@10",
            "RetrievalPrecisionRecallCurve": "precision@1..10",
        },
        "RetrievalFallOut": "fallout@10; --semantics no_relevant=scored, where its "
        "empty_target_action is 'neg'",
        "RetrievalAUROC": "pair_accuracy@10; different scores",
    },
}
REFUSED: dict[str, dict[str, str]] = {
    "ir_measures": {
        "NumQ": "every result has its number of queries, as queries",
        "Accuracy": "it is the mean of auc over the queries with a hit: type auc, which is 0 for "
        "the others",
    },
    "rectools": {
        "Accuracy": "it is (N - k - R + 2 hits) / N over a catalogue of N items, nearly 1 for any "
        "list: type mcc(items=1000)@10",
        "PartialAUC": "it is the auc up to the k-th miss, with all unlisted items ranked last; "
        "type auc@10",
        "PAP": "it is the auc of the best min(k, R) labels among the best k misses, with all "
        "unlisted items ranked last; type auc@10",
        "IntraListDiversity": "the user supplies its distance; ild takes groups, and ild_cosine "
        "vectors",
        "Intersection": "it compares the lists of two models, as compare does with "
        "precision@10:baseline",
        "SufficientReco": "it is the mean of min(1, n / k); user_coverage@10 counts full lists",
        "UnrepeatedReco": "repeats are counted by the audit, as repeated_items",
    },
    "recbole": {
        **dict.fromkeys(("MAE", "RMSE"), _RATINGS),
        "ShannonEntropy": "it is entropy@10 in nats, over the number of distinct items shown",
        "TailPercentage": "its tail is a tenth of all items, with ties cut by id; tail_share "
        "and aplt cut where popularity changes",
    },
    "replay": {
        "CategoricalDiversity": "it is the number of distinct groups among the first k, over k; "
        "ild takes the distances between all pairs",
        "Novelty": "it is the share of the first k that the query did not have in training; the "
        "audit counts them over all lists, as seen_items",
        "Surprisal": "it is novelty@10 over log2 of the number of queries in training",
        "Unexpectedness": "it compares with the lists of another model, as compare does with "
        "precision@10:baseline",
        "NCISPrecision": "it weights each prediction by its score over that of another model, "
        "capped; precision@10 weights all the same",
        "ConfidenceInterval": "every mean has a standard error, and compare has intervals",
    },
    "lenskit": {
        **dict.fromkeys(("MAE", "RMSE"), _RATINGS),
        "MeanPopRank": "it is the mean quantile of popularity; type popularity@10",
        "ExposureGini": "it is the gini of exposures with rank-biased weights; type gini(of=N)@10",
        "least_item_promoted": "it compares a list with the same list before reranking",
        "entropy": "it is the entropy of the categories of a list; entropy@10 is that of all items",
        "rank_biased_entropy": "it is the entropy of the categories of a list, with weights "
        "that fall by rank",
    },
    "elliot": {
        **dict.fromkeys(("MAE", "MSE", "RMSE"), _RATINGS),
        "nDCG": "its gains are 2^(rating - threshold + 1) - 1: give these as gains for ndcg@10",
        "MAP": "it is the mean of precision@1 to precision@k; map@10 takes precision at hits",
        "MAR": "it is the mean of recall@1 to recall@k; type recall@1..10",
        "AUC": "it averages over the hits of all users the share of the catalogue that they "
        "precede; type gauc(by=hits) with full lists",
        **dict.fromkeys(
            ("GAUC", "LAUC"),
            "it ranks all unlisted items last, as misses; type gauc or auc",
        ),
        "ItemCoverage": "it is a number of items; coverage@10 is their share",
        **dict.fromkeys(
            ("UserCoverage", "UserCoverageAtN"),
            "it is a number of users; user_coverage@10 is their share",
        ),
        "Gini": "it is 1 - gini@10: type gini@10, where lower is better",
        **dict.fromkeys(
            ("APLT", "ACLT"),
            "its long tail may start among items of equal popularity, which aplt@10 and aclt@10 "
            "keep together",
        ),
        "SRecall": "it is the share of the groups of labels that a list has; type recall_parity@10",
        **{
            f"Extended{name}": _EXTENDED.format(here)
            for name, here in (("F1", "f1@10"), ("EFD", "efd@10"), ("EPC", "epc@10"))
        },
        **dict.fromkeys(
            ("PopRSP", "PopREO", "ExtendedPopRSP", "ExtendedPopREO", "RSP", "REO"), _PARITY
        ),
        **dict.fromkeys(
            ("UserMADrating", "ItemMADrating", "UserMADranking", "ItemMADranking"), _OF_GROUPS
        ),
        **dict.fromkeys(
            ("BiasDisparityBR", "BiasDisparityBS", "BiasDisparityBD"),
            "it compares what groups of users like with what they get; miscalibration does so for "
            "each list",
        ),
    },
    "cornac": {
        **dict.fromkeys(("MAE", "RMSE", "MSE"), _RATINGS),
        "NCRR": "it is the sum of 1 / rank over the hits, divided by that of the best list; "
        "ndcg@10 has another discount",
    },
    "torchmetrics": {
        **dict.fromkeys(
            ("RetrievalNormalizedDCG", "RetrievalRPrecision", "RetrievalRecall"), _AMONG
        ),
        "RetrievalRecallAtFixedPrecision": "it is the largest recall at a cutoff of some "
        "precision: type precision@1..100 and recall@1..100",
    },
    "trec_eval": {
        **dict.fromkeys(
            (
                *("prefs_simp", "prefs_pair", "prefs_avgjg", "prefs_avgjg_Rnonrel"),
                *("prefs_simp_imp", "prefs_pair_imp", "prefs_avgjg_imp", "prefs_simp_ret"),
                *("prefs_pair_ret", "prefs_avgjg_ret", "prefs_avgjg_Rnonrel_ret"),
                *("prefs_num_prefs_poss", "prefs_num_prefs_ful", "prefs_num_prefs_ful_ret"),
            ),
            "it counts preferences, which only trec_eval reads: pair_accuracy takes those of "
            "judged predictions",
        ),
        **dict.fromkeys(
            ("map_avgjg", "P_avgjg", "Rprec_mult_avgjg"),
            "it is the mean over the judges of a query: evaluate the labels of each judge, and "
            "take the mean",
        ),
    },
}


def refused_elsewhere(name: str) -> str:
    """Why a name of these libraries is not a metric here, "" if none is called so."""
    found = [
        (library, why)
        for library, names in REFUSED.items()
        for one, why in names.items()
        if one.lower() == name.lower()
    ]
    return "; ".join(f"in {library}, {why}" for library, why in dict(found).items())


def computed_elsewhere(name: str) -> dict[str, list[str]]:
    """What to type for a name of these libraries -> the libraries."""
    found: dict[str, list[str]] = {}
    for library, names in COMPUTED.items():
        for one, here in names.items():
            if one.lower() == name.lower():
                found.setdefault(here.replace(";", " with"), []).append(library)
    return found
