"""What metrics are called in the evaluators that presets are of, and which of them they lack."""

import re
from collections.abc import Iterable

from rankmill.metrics.base import Metric
from rankmill.metrics.libraries import COMPUTED, REFUSED
from rankmill.metrics.registry import REGISTRY, parse_all
from rankmill.semantics.choices import DEFAULT, Choices
from rankmill.semantics.presets import PRESETS, names_table

# The libraries of the table of names. Those with a preset have the metrics of the preset, whose
# values are equal, and those below, which they define alike.
LIBRARIES = (
    *("trec_eval", "trec_eval-10", "ir_measures", "ranx", "rectools", "replay", "sklearn"),
    *("torchmetrics", "recommenders"),
)
_NAMES = {
    "ir_measures": names_table(
        "map: AP, AP@k; first_hit: RR, RR@k; precision: P@k; recall: R@k; hit: Success@k; rprec: "
        "Rprec; ndcg: nDCG, nDCG@k; num_ret: NumRet; num_rel: NumRel; num_rel_ret: NumRelRet; "
        "set_p: SetP; set_f: SetF; set_map: SetAP; set_relative_p: SetRelP; iprec: IPrec@x; rbp: "
        "RBP(p=p); err: ERR@k; bpm: BPM@k; inst: INST; insq: INSQ; judged: Judged@k; bpref: Bpref; "
        "infap: infAP; alpha_ndcg: alpha_nDCG@k; err_ia: ERR_IA@k; subtopic_recall: StRecall@k; "
        "alpha_dcg: alpha_DCG@k; nerr_ia: nERR_IA@k; nrbp: NRBP; nnrbp: nNRBP; p_ia: P_IA@k; "
        "map_ia: AP_IA; compat: Compat; sdcg: SDCG(max_rel=g)@k; nerr8: NERR8(max_rel=g)@k; nerr9: "
        "NERR9(max_rel=g)@k; nerr10: NERR10(max_rel=g); nerr11: NERR11(max_rel=g)"
    ),
    "ranx": names_table("bpref: bpref; rbp: rbp.p"),
    "rectools": names_table(
        "coverage: CatalogCoverage(k, normalize=True); user_coverage: CoveredUsers; "
        "popularity: AvgRecPopularity(k); novelty: MeanInvUserFreq(k); "
        "serendipity: Serendipity(k); fbeta: F1Beta(k, beta=b); mcc: MCC(k=k)"
    ),
    "replay": {"coverage": "Coverage(k)"},
    "sklearn": names_table(
        "lrap: label_ranking_average_precision_score; auc: roc_auc_score; "
        "auprc: auc(precision_recall_curve); auprc_step: average_precision_score; "
        "brier: brier_score_loss; log_loss: log_loss"
    ),
    "torchmetrics": names_table(
        "recall_at_precision: BinaryRecallAtFixedPrecision(x); "
        "precision_at_recall: BinaryPrecisionAtFixedRecall(x); ece: BinaryCalibrationError(bins); "
        "fallout: RetrievalFallOut(top_k=k); pair_accuracy: RetrievalAUROC(top_k=k)"
    ),
    "recommenders": names_table("coverage: catalog_coverage; entropy: distributional_coverage"),
}
_CUT = re.compile(r"[@(]k\b")


def names_elsewhere() -> dict[str, dict[str, str]]:
    """Metric -> library -> what the library calls it; "" where it has no such metric.

    Metrics that no library has are left out.
    """
    found = {}
    for name in REGISTRY:
        there = {library: ", ".join(_names_of(library, name)) for library in LIBRARIES}
        if any(there.values()):
            found[name] = there
    return found


def exported_names(asked: Iterable[str], refused: bool) -> list[list[str]]:
    """The names that each library exports for some metrics: library, names, and what to type here.

    Those that are not computed come too if `refused` ones are asked for, with why at the end.
    """
    some = set(asked)
    rows: dict[tuple[str, str, str], list[str]] = {}
    for library in {**COMPUTED, **REFUSED}:
        for there, here in COMPUTED.get(library, {}).items():
            if parse_all(here.partition(";")[0])[0].name in some:
                rows.setdefault((library, here.replace(";", " with"), ""), []).append(there)
        for there, why in REFUSED.get(library, {}).items() if refused else ():
            rows.setdefault((library, "", why), []).append(there)
    return [[library, ", ".join(names), *told] for (library, *told), names in rows.items()]


def _names_of(library: str, name: str) -> list[str]:
    of_preset = PRESETS[library].metrics if library in PRESETS else {}
    names = [there for metric, there in of_preset.items() if metric.partition("@")[0] == name]
    more = _NAMES.get(library, {}).get(name)
    return [*names, *([more] if more else [])]


def name_there(name: str, metric: Metric) -> str:
    """What a metric is called by whom a preset is of, "" if it is not there."""
    metrics = PRESETS[name].metrics if name in PRESETS else {}
    suffix = "@x" if metric.spec.at else "" if metric.k is None else "@k"
    there = metrics.get(f"{metric.name}@{metric.k}") or metrics.get(metric.name + suffix)
    if there or name not in PRESETS:
        return there or ""
    more = re.split(r", (?![^()]*\))", _NAMES.get(name, {}).get(metric.name, ""))
    return next((one for one in more if bool(_CUT.search(one)) == (metric.k is not None)), "")


def notes_on(metrics: Iterable[Metric], semantics: Choices) -> list[str]:
    """Return a note that names the metrics that the evaluator with these semantics does not have.

    There is none for the default: several presets have its semantics, and it is no other evaluator.
    """
    if semantics == DEFAULT:
        return []
    asked = list(metrics)
    notes = []
    for name, one in PRESETS.items():
        if one.semantics == semantics:
            missing = [metric.text for metric in asked if not name_there(name, metric)]
            if missing:
                notes.append(
                    f"{name} has no {', '.join(missing)} as defined here; counted under its rules"
                )
    return notes
