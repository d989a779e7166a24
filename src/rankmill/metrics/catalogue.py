"""Metrics over a catalogue of items, which tell what all lists together show."""

from rankmill.metrics.base import Metric, MetricSpec
from rankmill.semantics.choices import Semantics

SHANI = "Shani and Gunawardana, Evaluating Recommendation Systems, Recommender Systems Handbook, "
SHANI += "2011"
GE = "Ge, Delgado-Battenfeld and Jannach, Beyond Accuracy: Evaluating Recommender Systems by "
GE += "Coverage and Serendipity, RecSys 2010"


def fixed_lists(metric: Metric, semantics: Semantics) -> str:
    """Refuse the orders of ties that leave open which items a list shows within a cutoff."""
    if semantics.order in ("expected", "worst", "best") and metric.k is not None:
        return (
            f"depends on which of equal confidences are among the first {metric.k}: choose another "
            f"order than {semantics.order!r}, such as item_descending"
        )
    return ""


METRICS = (
    MetricSpec(
        name="coverage",
        kernel=None,
        definition="share of the catalogue that any list shows within k; the catalogue is the "
        "items of --items, else of --train, else all labels and predictions",
        range="0 to 1",
        source=GE,
        aliases=("catalog_coverage", "CatalogCoverage"),
        undefined=fixed_lists,
        aggregate="exposed.Coverage",
    ),
    MetricSpec(
        name="coverage_of_labels",
        kernel=None,
        definition="share of the distinct labels that any list hits within k",
        range="0 to 1",
        source="Ge et al., RecSys 2010, as weighted by what is relevant",
        undefined=fixed_lists,
        aggregate="exposed.LabelCoverage",
    ),
    MetricSpec(
        name="user_coverage",
        kernel="enough_predictions",
        expected="enough_predictions",
        definition="1 if a query has k predictions, else 0; without a cutoff, if it has one",
        range="0 or 1",
        source=SHANI,
        aliases=("UserCoverage",),
        counts_empty=True,
    ),
    MetricSpec(
        name="gini",
        kernel=None,
        definition="sum of (2 j - N - 1) p(j) over the N items of the catalogue by rising p, "
        "/ (N - 1), of the share p of all places within k that an item takes",
        range="0 if all items are shown equally often, to 1",
        source=SHANI,
        aliases=("GiniIndex",),
        undefined=fixed_lists,
        aggregate="exposed.Gini",
    ),
    MetricSpec(
        name="entropy",
        kernel=None,
        definition="sum of -p log2(p) over the items, of the share p of all places within k that "
        "an item takes, in bits",
        range="0 to log2 of the number of items",
        source=SHANI,
        aliases=("ShannonEntropy",),
        undefined=fixed_lists,
        aggregate="exposed.Entropy",
    ),
    MetricSpec(
        name="hhi",
        kernel=None,
        definition="sum of p^2 over the items, of the share p of all places within k that an item "
        "takes: the chance that two places show the same item",
        range="1 / number of items, to 1",
        source="Hirschman, The Paternity of an Index, American Economic Review, 1964",
        aliases=("herfindahl",),
        undefined=fixed_lists,
        aggregate="exposed.Concentration",
    ),
    MetricSpec(
        name="personalization",
        kernel=None,
        definition="1 - the mean over all pairs of lists of the items that both show within k, / k",
        range="0 if all lists show the same, to 1",
        source="Zhou et al., Solving the Apparent Diversity-Accuracy Dilemma of Recommender "
        "Systems, PNAS 2010",
        cutoff="required",
        aliases=("inter_list_diversity",),
        undefined=fixed_lists,
        aggregate="exposed.Personalization",
    ),
)
