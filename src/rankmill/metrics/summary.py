"""What the values of a metric come to, other than their mean: "gm", "median", "p10", "sum"."""

import re

from rankmill.errors import UsageError
from rankmill.semantics.metric_names import number_text

SUMMARIES = {
    "mean": "the arithmetic mean, as without a summary",
    "gm": "the geometric mean, with values below 0.00001 as 0.00001, as trec_eval's gm_map has it",
    "median": "the middle value, or the mean of both",
    "p10": "a percentile from p0 to p100, between two values on the line through them",
    "sum": "the sum",
    "micro": "the micro-average, such as all hits over all labels: what queries count, over what "
    "that is divided by, both summed first (Manning, Raghavan and Schütze, 2008, chapter 13)",
    "above=0.5": "the share of queries with a value above a number",
}

# Names of trec_eval and ir_measures that are a metric with another summary than the mean.
SUMMARISED = {
    **dict.fromkeys(("gm_map", "gmap"), ("map", "gm", "geometric mean")),
    "gm_bpref": ("bpref", "gm", "geometric mean"),
    "gauc": ("gauc", "micro", "micro-average"),
    "numret": ("num_ret", "sum", "sum"),
    "numrel": ("num_rel", "sum", "sum"),
    "numrelret": ("num_rel_ret", "sum", "sum"),
}


def read_summary(text: str, metric: str) -> str:
    """Return a summary in canonical form, "" for the mean; `metric` is the name it stands in.

    UsageError if there is no such summary.

    Examples
    --------
    >>> read_summary("Above=.50", "map:above=.50"), read_summary("mean", "map:mean")
    ('above=0.5', '')
    """
    name = text.strip().lower()
    if name in ("gm", "median", "sum"):
        return name
    if name in ("micro", "pooled"):
        return "micro"
    if name == "mean":
        return ""
    found = re.fullmatch(r"(p|above=)([0-9]{1,9}(?:[.][0-9]{1,9})?|[.][0-9]{1,9})", name)
    if found and (found[1] != "p" or float(found[2]) <= 100):
        return found[1] + number_text(float(found[2]))
    if name == "baseline":
        raise UsageError(
            f"{metric!r} compares the lists of two systems: use compare, on one machine"
        )
    there = "; ".join(f"{one}, {what}" for one, what in SUMMARIES.items())
    raise UsageError(f"{metric!r} has no summary {text!r}: there are {there}")
