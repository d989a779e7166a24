"""Metrics of how far a list agrees with the best one, or with another: compat, rbo, kendall_tau."""

from functools import partial

from rankmill.metrics.base import Divisor, MetricSpec, Parameter
from rankmill.metrics.no_value import one_order

P = Parameter("p", "how much each depth counts relative to the one before", 0.95, low=0, high=1)
OVERLAP = (
    "the sum over depths d, up to the length of the longer of labels and list, of "
    "p^(d - 1) times the share "
)
OVERLAP += "of the first d items that are among the first d labels (by descending gain; labels of "
OVERLAP += "equal gain in the order of the list)"
row = partial(MetricSpec, range="0 to 1", undefined=one_order)

METRICS = (
    row(
        name="compat",
        kernel="overlap_with_labels",
        definition=f"compatibility: {OVERLAP}, divided by the same sum for the list of all labels",
        source="Clarke, Vtyurina and Smucker, Assessing Top-k Preferences, TOIS 2021",
        divisor=Divisor("overlap_of_best", "the same sum for the list of all labels"),
        parameters=(P,),
    ),
    row(
        name="rbo",
        kernel="overlap_with_labels",
        definition=f"rank-biased overlap: {OVERLAP}, divided by the sum of p^(d - 1); to compare "
        "two lists, give one as labels, with its scores as gains",
        source="Webber, Moffat and Zobel, A Similarity Measure for Indefinite Rankings, TOIS 2010, "
        "of finite lists",
        divisor=Divisor("sum_of_weights", "the sum of p^(d - 1)"),
        parameters=(P,),
    ),
    row(
        name="kendall_tau",
        kernel="rank_correlation",
        definition="of the pairs of hits within k with gains of different worth, (those with the "
        "one worth more first - the others) / all; 0 without such a pair; to compare two lists, "
        "give one as labels, as for rbo",
        range="-1 to 1",
        source="Kendall, A New Measure of Rank Correlation, Biometrika 1938",
        aliases=("tau",),
        counts_empty=True,
        aggregate="aggregates.mean.SignedMean",
    ),
)
