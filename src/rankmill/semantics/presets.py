"""The semantics of other evaluators, by name."""

import difflib
from collections.abc import Mapping
from dataclasses import replace

from rankmill.errors import UsageError
from rankmill.records import record
from rankmill.semantics.choices import Choices


def names_table(table: str) -> dict[str, str]:
    """Return a table such as "map@k: MAP(k); hit: HitRate", of names here and of names there."""
    return dict(pair.split(": ") for pair in table.split("; "))


TREC_EVAL = names_table(
    "map: map; map@k: map_cut_k; first_hit: recip_rank; precision@k: P_k; recall@k: recall_k; "
    "recall: set_recall; hit@k: success_k; rprec: Rprec; ndcg: ndcg; ndcg@k: ndcg_cut_k; "
    "bpref: bpref; infap: infAP; relative_p@k: relative_P_k; num_ret: num_ret; num_rel: num_rel; "
    "num_rel_ret: num_rel_ret; num_nonrel_judged_ret: num_nonrel_judged_ret; utility: utility; "
    "set_p: set_P; set_f: set_F; set_map: set_map; set_relative_p: set_relative_P; "
    "iprec@x: iprec_at_recall_x; iprec_avg: 11pt_avg; rprec_mult@x: Rprec_mult_x; bing: binG; "
    "g: G; ndcg_rel: ndcg_rel; rndcg: Rndcg"
)
TREC_SKIPPED = ("runid", "num_q")
TREC_OPTIONS = (
    "-c is unpredicted='zero', -l 2 is --rel 2, -M 100 is --depth 100, and -J is --judged-only. "
    "Its totals of num_ret and similar metrics are num_ret:sum here; that of num_rel under -c "
    "counts all gains above 0, whatever -l. Where -J leaves a list empty, its iprec_at_recall is "
    "not a number. utility and num_nonrel_judged_ret are refused here for such a list, and with "
    "-c for a query without predictions. It cuts gains to whole numbers; gains that this would "
    "change are refused here."
)


@record(frozen=True)
class Preset:
    """The semantics of another evaluator."""

    semantics: Choices  # the choices that make rankmill count as that evaluator does
    # Metric of rankmill (with @k if it has a cutoff) -> its name in that evaluator. The values of
    # these metrics are equal, except for the differences that `note` describes.
    metrics: dict[str, str]
    source: str  # the code or the page that was read or run to find the semantics
    note: str = ""  # the differences that the fields of `Choices` cannot express, and other remarks
    # Names in that evaluator's lists of measures that are no number of a query.
    skipped: tuple[str, ...] = ()
    whole_gains: bool = False  # it cuts gains to whole numbers
    lists: str = ""  # the column of lists in a submission, where the solution does not name it

    @property
    def own_metric(self) -> str:
        """The metric of a competition, which has one; "" for other evaluators."""
        fixed = not any("@k" in one for one in self.metrics) and len(self.metrics) < 3
        return next(iter(self.metrics), "") if fixed else ""

    @property
    def remark(self) -> str:
        """The note without what it says of the options of trec_eval."""
        return self.note.replace(TREC_OPTIONS, "").strip()

    @property
    def evaluator(self) -> str:
        """The evaluator in a few words: the source up to its first comma."""
        return self.source.partition(",")[0]


OF_TREC_EVAL = Choices(
    ap_divisor="labels",
    repeated_predictions="error",
    repeated_labels="error",
    order="item_descending_float32",
    unpredicted="skip",
    no_relevant="scored",
)

PRESETS: dict[str, Preset] = {
    "default": Preset(Choices(), {}, "rankmill"),
    "trec_eval": Preset(
        OF_TREC_EVAL,
        TREC_EVAL,
        "trec_eval 9.0.8, run, also by way of pytrec-eval-terrier 0.5.11",
        f"It holds scores as float32, and 10 as double. {TREC_OPTIONS}",
        skipped=TREC_SKIPPED,
        whole_gains=True,
    ),
    "trec_eval-10": Preset(
        replace(OF_TREC_EVAL, order="item_descending", recall_rounding="nearest"),
        TREC_EVAL | {"dcg": "dcg", "unj@k": "unj_k", "rbp_resid": "rbp_resid", "graded_rbp": "rbp"},
        "trec_eval 10.0-rc3, run",
        "Without -c it stops at a query of the qrels that the run does not have, which is left out "
        "here. With -c such a query has a document of its own making, which counts in utility and "
        "rbp_resid if these have parameters; here rbp_resid and unj are 1. With gains for levels, "
        f"its rbp divides by the largest that is named. {TREC_OPTIONS}",
        skipped=TREC_SKIPPED,
        whole_gains=True,
    ),
    "ml_metrics": Preset(
        Choices(repeated_labels="count", unlabelled="zero", no_relevant="zero"),
        {"map@k": "mapk"},
        "Kaggle's MAP@k: benhamner/Metrics, average_precision.py, as notebooks copy it",
        "Its release 0.1.4 gives 1 for a query without labels; the repository gives 0.",
    ),
    "kaggle_landmark": Preset(
        Choices(nan_confidence="last"),
        {"gap": "GAP"},
        "Google Landmark Recognition 2018, and the function that notebooks share for it",
        "That function sorts ties in no defined order, which counts here with its expected value; "
        "google_landmarks_v2 has the order that Google's code calls Kaggle's.",
    ),
    "kaggle_whale": Preset(
        Choices(),
        {"map@5": "MAP@5", "first_hit@5": "MAP@5"},
        "Humpback Whale Identification 2018, the evaluation page",
        "An image has one label, so that MAP@5 is 1 / rank of the first hit within 5.",
    ),
    "kaggle_hm": Preset(
        Choices(),
        {"map@12": "MAP@12"},
        "H&M Personalized Fashion Recommendations 2022, the evaluation page",
        "Customers without purchases do not count; those without a prediction score 0.",
        lists="prediction",
    ),
    "spark": Preset(
        Choices(
            repeated_predictions="each",
            unpredicted="skip",
            unlabelled="zero",
            no_relevant="zero",
        ),
        names_table(
            "map: meanAveragePrecision; map@k: meanAveragePrecisionAt(k); "
            "precision@k: precisionAt(k); recall@k: recallAt(k); ndcg@k: ndcgAt(k)"
        ),
        "pyspark 4.3.0, mllib.evaluation.RankingMetrics, run",
        "It sees pairs of lists: which queries are among them is up to the join before, here those "
        "with predictions. Its graded "
        "ndcg, from Scala only, takes the labels for the ideal in the order given.",
    ),
    "torchmetrics": Preset(
        Choices(
            ap_divisor="hits",
            repeated_predictions="each",
            order="confidence",
            gap_ties="threshold",
            gap_total="hits",
            unpredicted="skip",
            unlabelled="zero",
            no_relevant="zero",
        ),
        names_table(
            "map: RetrievalMAP; map@k: RetrievalMAP(top_k=k); first_hit: RetrievalMRR; "
            "first_hit@k: RetrievalMRR(top_k=k); precision@k: RetrievalPrecision(top_k=k); "
            "hit: RetrievalHitRate; hit@k: RetrievalHitRate(top_k=k); gap: BinaryAveragePrecision"
        ),
        "torchmetrics 1.9.0, run",
        "It computes in float32, takes rows with a score of 0 or less for wrong (but in the hit "
        "rate), and sorts ties in no defined order. Its recall, ndcg and R-precision know only the "
        "labels that are among the predictions.",
    ),
    "ranx": Preset(
        Choices(
            ap_divisor="labels",
            repeated_predictions="error",
            order="confidence",
            no_relevant="zero",
        ),
        names_table(
            "map: map; map@k: map@k; first_hit: mrr; first_hit@k: mrr@k; precision@k: precision@k; "
            "recall: recall; recall@k: recall@k; hit: hit_rate; hit@k: hit_rate@k; f1@k: f1@k; "
            "rprec: r-precision; ndcg: ndcg; ndcg@k: ndcg@k; dcg: dcg; dcg@k: dcg@k"
        ),
        "ranx 0.3.21, run with make_comparable=True",
        "It hashes items to 53 bits, cuts gains to whole numbers (gains that this would change are "
        "refused here), and orders ties of lists longer than 15 in no defined way.",
        whole_gains=True,
    ),
    "sklearn": Preset(
        Choices(
            ap_divisor="labels",
            repeated_predictions="error",
            order="expected",
            gap_ties="threshold",
            gap_total="hits",
            unpredicted="skip",
            unlabelled="zero",
            no_relevant="zero",
        ),
        names_table(
            "gap: average_precision_score; ndcg: ndcg_score; ndcg@k: ndcg_score(k=k); "
            "dcg: dcg_score; dcg@k: dcg_score(k=k)"
        ),
        "scikit-learn 1.9.1, run",
        "It takes matrices in which every label has a score: label_ranking_average_precision_score "
        "is map where none are tied, all labels are predicted, and each query has one. "
        "sklearn_ap is the mean of average_precision_score over queries.",
    ),
    "sklearn_ap": Preset(
        Choices(
            ap_divisor="hits",
            repeated_predictions="error",
            order="confidence",
            unpredicted="skip",
            unlabelled="zero",
            no_relevant="zero",
        ),
        {"map": "the mean of average_precision_score"},
        "scikit-learn 1.9.1 by query, average_precision_score of what was retrieved, run",
        "It sees only the labels that were retrieved and divides by these, so that it is higher "
        "than map. With the m other labels of a query appended below its n predictions, it is map "
        "with ap_divisor 'labels' plus m / (n + m). Equal scores count there with the precision "
        "behind the last of them.",
    ),
    "recommenders": Preset(
        Choices(
            repeated_predictions="each",
            repeated_labels="error",
            order="confidence",
            unpredicted="skip",
            nan_confidence="last",
        ),
        names_table(
            "map@k: map_at_k(k=k); precision@k: precision_at_k(k=k); recall@k: recall_at_k(k=k); "
            "ndcg@k: ndcg_at_k(k=k)"
        ),
        "recommenders 1.2.1, evaluation.python_evaluation, run",
        "Its map(k=k) is map@k with ap_divisor 'labels'. Repeated labels, which are hits as often "
        "as they are given there, are refused; ndcg_at_k counts users without predictions as 0 and "
        "repeats squared.",
    ),
    "rectools": Preset(
        Choices(
            ap_divisor="labels",
            repeated_predictions="each",
            repeated_labels="error",
            ideal_dcg="k",
        ),
        names_table(
            "map@k: MAP(k); first_hit@k: MRR(k); precision@k: Precision(k); recall@k: Recall(k); "
            "hit@k: HitRate(k); f1@k: F1Beta(k); ndcg@k: NDCG(k)"
        ),
        "rectools 0.19.0, run",
        "A repeated prediction of a label adds to R as well. Repeated labels, which are hits as "
        "often as they are given there, are refused. divide_by_k=True divides by k.",
    ),
    "replay": Preset(
        Choices(
            repeated_predictions="each",
            repeated_labels="count",
            order="item_descending",
            no_relevant="zero",
        ),
        names_table(
            "map@k: MAP(k); first_hit@k: MRR(k); precision@k: Precision(k); recall@k: Recall(k); "
            "hit@k: HitRate(k); ndcg@k: NDCG(k)"
        ),
        "replay-rec 0.22.0, run",
        "Precision and recall count a repeated prediction once, recall a repeated label once.",
    ),
    "implicit": Preset(
        Choices(repeated_predictions="each"),
        names_table("map@k: mean_average_precision_at_k(K=k); ndcg@k: ndcg_at_k(K=k)"),
        "implicit 0.7.3, run",
        "Its precision_at_k is one ratio over all users: hits / sum of min(k, R).",
    ),
    "lenskit": Preset(
        Choices(
            ap_divisor="min_labels_predictions",
            repeated_predictions="each",
            repeated_labels="count",
            unlabelled="zero",
            no_relevant="zero",
            precision_divisor="min_k_predictions",
            recall_divisor="min_k_labels",
        ),
        names_table(
            "map: AveragePrecision; map@k: AveragePrecision(k); first_hit: RecipRank; first_hit@k: "
            "RecipRank(k); precision@k: Precision(k); recall: Recall; recall@k: Recall(k); hit: "
            "Hit; hit@k: Hit(k); ndcg_jk: NDCG; ndcg_jk@k: NDCG(k); dcg_jk: DCG; dcg_jk@k: DCG(k)"
        ),
        "lenskit 2025.8.1, run",
        "A query without a list has no value there, with an empty list 0; it scores 0 here. Its "
        "AveragePrecision stops where there are no labels.",
    ),
    "isc2021": Preset(
        Choices(
            repeated_predictions="error",
            repeated_labels="count",
            gap_ties="worst",
            gap_total="label_pairs",
        ),
        {"gap": "micro-average precision"},
        "facebookresearch/isc2021, metrics.py",
    ),
    "vsc2022": Preset(
        Choices(
            repeated_predictions="error",
            repeated_labels="error",
            gap_ties="threshold",
            gap_total="label_pairs",
        ),
        {"gap": "micro-average precision"},
        "facebookresearch/vsc2022, metrics.py",
        "It refuses infinite scores.",
    ),
    "google_landmarks_v2": Preset(
        Choices(
            repeated_labels="count",
            gap_ties="ids",
            unlabelled="error",
            no_relevant="zero",
        ),
        names_table(
            "map@100: MeanAveragePrecision; map@k: MeanAveragePrecision(max_predictions=k); "
            "precision@k: MeanPrecisions; gap: GlobalAveragePrecision"
        ),
        "Google Landmarks v2: tensorflow/models, google_landmarks_dataset/metrics.py",
        "MAP stops at an image with predictions and no landmark, which scores 0 here.",
    ),
}


def preset(name: str) -> Preset:
    """The preset with the given name.

    UsageError if the name is unknown; the message lists all presets.
    """
    if not isinstance(name, str) or name not in PRESETS:
        meant = _meant(name)
        near = " or ".join(filter(None, [", ".join(meant[:-1]), *meant[-1:]]))
        hint = f"did you mean {near}? " if near else ""
        raise UsageError(
            f"unknown preset {name!r}: {hint}there are {', '.join(PRESETS)}; 'rankmill presets' "
            "describes them"
        )
    return PRESETS[name]


def _meant(name: object) -> list[str]:
    """Return the presets that have a word in their name or evaluator, else the nearest name."""
    word = str(name).lower()
    found = [one for one, its in PRESETS.items() if word in f"{one} {its.evaluator}".lower()]
    return found if len(word) > 2 and found else difflib.get_close_matches(word, PRESETS, 1)


def preset_named(given: object) -> str:
    """The preset that is named in what is given as semantics, though choices of it may be changed.

    "" if there is none.
    """
    name = given.get("preset") if isinstance(given, Mapping) else getattr(given, "preset", given)
    return name if isinstance(name, str) and name in PRESETS else ""
