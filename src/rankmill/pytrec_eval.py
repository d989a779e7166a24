"""A replacement for pytrec_eval with the same names: a program only changes its import.

``import pytrec_eval`` becomes ``from rankmill import pytrec_eval``. Values to the last bit, their
order and errors are those of pytrec_eval-terrier 0.5.11; where that ends the process, as it does on
duplicate cutoffs, a UsageError is raised.
"""

from rankmill.adapters.trec.trec_eval import (
    RelevanceEvaluator,
    compute_aggregated_measure,
    parse_qrel,
    parse_run,
    supported_measures,
    supported_nicknames,
)

__all__ = [
    "RelevanceEvaluator",
    "compute_aggregated_measure",
    "parse_qrel",
    "parse_run",
    "supported_measures",
    "supported_nicknames",
]
