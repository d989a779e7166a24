"""The metrics: one table, and the parser of names such as "map@12"."""

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from rankmill.errors import UsageError
from rankmill.semantics.choices import Semantics

# A cutoff beyond every list stands for none.
NO_CUTOFF = 1 << 62
# The largest cutoff whose ideal list may be longer than the labels.
LARGEST_IDEAL = 1_000_000
DEFAULT_METRICS = ("map@10", "first_hit@10", "recall@10", "ndcg@10")


@dataclass(frozen=True)
class MetricSpec:
    """A row of the registry.

    ``kernel`` names the function of ``rankmill.kernels.metrics`` (and of its twin ``expected``)
    that counts for each query; it is None for a metric over all predictions in one list.
    ``divisor`` names what that is divided by, in ``rankmill.metrics.values``. ``cutoff`` says
    whether the name takes an ``@k``. ``aggregate`` is the class (``module.Class`` of this folder)
    that adds it up over queries.
    """

    name: str
    kernel: str | None
    definition: str
    range: str
    source: str
    divisor: str | None = None
    cutoff: Literal["required", "optional", "none"] = "optional"
    aliases: tuple[str, ...] = ()
    aggregate: str = "mean.Mean"


@dataclass(frozen=True)
class Metric:
    """A metric as asked for: a name of the registry, a cutoff or None, and the text it was."""

    name: str
    k: int | None
    text: str

    @property
    def spec(self) -> MetricSpec:
        """The metric's row of the registry."""
        return REGISTRY[self.name]

    @property
    def limit(self) -> int:
        """The cutoff, or a rank beyond every list."""
        return NO_CUTOFF if self.k is None else min(self.k, NO_CUTOFF)


VOORHEES = "Voorhees and Harman, TREC: Experiment and Evaluation in Information Retrieval, 2005"
MANNING = "Manning, Raghavan and Schütze, Introduction to Information Retrieval, 2008, chapter 8"
JARVELIN = "Järvelin and Kekäläinen, Cumulated Gain-Based Evaluation of IR Techniques, TOIS 2002"

REGISTRY: dict[str, MetricSpec] = {
    spec.name: spec
    for spec in (
        MetricSpec(
            "map",
            "sum_precisions",
            "sum of P(i) rel(i) over the first k, / min(k, R); without a cutoff / R",
            "0 to 1",
            VOORHEES,
            "average_precision",
        ),
        MetricSpec(
            "first_hit",
            "first_hit",
            "1 / rank of the first hit within k, else 0",
            "0 to 1",
            "Voorhees, The TREC-8 Question Answering Track Report, 1999",
            aliases=("mrr", "rr"),
        ),
        MetricSpec(
            "precision", "count_hits", "hits / k", "0 to 1", MANNING, "precision", "required"
        ),
        MetricSpec("recall", "count_hits", "hits within k / R", "0 to 1", MANNING, "recall"),
        MetricSpec(
            "hit",
            "any_hit",
            "1 if any of the first k is a hit, else 0",
            "0 or 1",
            "Deshpande and Karypis, Item-Based Top-N Recommendation Algorithms, TOIS 2004",
        ),
        MetricSpec(
            "f1",
            "count_hits",
            "harmonic mean of precision@k and recall@k",
            "0 to 1",
            "van Rijsbergen, Information Retrieval, 1979, chapter 7",
            "f1",
            "required",
        ),
        MetricSpec(
            "rprec",
            "count_hits_of_labels",
            "hits in the first R / R",
            "0 to 1",
            MANNING,
            "recall",
            "none",
        ),
        MetricSpec(
            "ndcg",
            "dcg",
            "dcg@k / the dcg@k of the labels in descending order of gain",
            "0 to 1",
            JARVELIN,
            "ndcg",
        ),
        MetricSpec(
            "dcg",
            "dcg",
            "sum of gain / log2(rank + 1) over the hits within k",
            "0 and up",
            f"{JARVELIN}; discount and exponential gains: Burges et al., ICML 2005",
        ),
        MetricSpec(
            "gap",
            None,
            "sum of P(i) rel(i) over all predictions (each query's first k) by descending "
            "confidence, / queries with labels; expected over the orders of ties",
            "0 to 1 for one label a query",
            "Perronnin, Liu and Renders, A Family of Contextual Measures of Similarity between "
            "Distributions with Application to Image Retrieval, CVPR 2009",
            aggregate="gap.Gap",
        ),
    )
}

NAMES = {name: spec for spec in REGISTRY.values() for name in (spec.name, *spec.aliases)}


def parse(text: str) -> Metric:
    """The metric that a name such as "map@12" asks for.

    Raises
    ------
    UsageError
        If there is no such metric (the message lists those there are, and the nearest), or the
        cutoff is missing, not allowed, or not a positive integer.

    Examples
    --------
    >>> parse("mrr@5")
    Metric(name='first_hit', k=5, text='mrr@5')
    """
    if not isinstance(text, str):
        raise UsageError(f"a metric is {text!r}; expected a name such as 'map@12'")
    name, at, cutoff = text.strip().partition("@")
    spec = NAMES.get(name)
    if spec is None:
        near = difflib.get_close_matches(name.lower(), NAMES, 1)
        hint = f"did you mean {near[0]}{at}{cutoff}? " if near else ""
        raise UsageError(f"unknown metric {text!r}: {hint}There are {', '.join(NAMES)}")
    if not at:
        if spec.cutoff == "required":
            raise UsageError(f"{name} needs a cutoff, such as {name}@10")
        return Metric(spec.name, None, text.strip())
    if spec.cutoff == "none":
        raise UsageError(f"{name} takes no cutoff, but {text!r} was asked for: leave out @{cutoff}")
    if not re.fullmatch(r"[0-9]{1,100}", cutoff) or int(cutoff) < 1:
        raise UsageError(f"the cutoff of {text!r} is {cutoff!r}; expected a positive integer")
    return Metric(spec.name, int(cutoff), text.strip())


def parse_all(texts: str | Iterable[str]) -> list[Metric]:
    """The metrics asked for, each once, in order."""
    named = [texts] if isinstance(texts, str) else list(texts or [])
    metrics = {metric.text: metric for metric in map(parse, named)}
    if not metrics:
        raise UsageError(f"no metric was asked for; there are {', '.join(NAMES)}")
    return list(metrics.values())


def spellings(metrics: Iterable[Metric]) -> dict[str, str]:
    """All names of metrics that were asked for, each with the one it was asked for by."""
    return {
        name + ("" if metric.k is None else f"@{metric.k}"): metric.text
        for metric in metrics
        for name in (metric.spec.name, *metric.spec.aliases)
    }


def check_defined(metric: Metric, semantics: Semantics) -> None:
    """Raise UsageError if a metric has no value under these semantics."""
    if metric.name == "ndcg" and semantics.ideal_dcg == "k" and (metric.k or 0) > LARGEST_IDEAL:
        raise UsageError(
            f"{metric.text} would divide by the dcg of {metric.k:,} labels: choose a cutoff of at "
            f"most {LARGEST_IDEAL:,}, or ideal_dcg 'labels'"
        )
    if semantics.order != "expected":
        return
    if metric.name == "map" and semantics.ap_divisor == "hits":
        raise UsageError(
            f"{metric.text} over the hits found has no closed form of its expected value: choose "
            "another order or ap_divisor"
        )
    if not metric.spec.kernel and metric.k is not None:
        raise UsageError(
            f"{metric.text} depends on which of equal confidences are among the first {metric.k}: "
            "choose another order than 'expected'"
        )
