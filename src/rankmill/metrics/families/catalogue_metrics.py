"""Metrics over a catalogue of items, which tell what all lists together show."""

from functools import partial

from rankmill.metrics.base import Metric, MetricSpec, Parameter
from rankmill.semantics.choices import Choices

SHANI = "Shani and Gunawardana, Evaluating Recommendation Systems, Recommender Systems Handbook, "
SHANI += "2011"
GE = "Ge, Delgado-Battenfeld and Jannach, Beyond Accuracy: Evaluating Recommender Systems by "
GE += "Coverage and Serendipity, RecSys 2010"
SINGH = "Singh and Joachims, Fairness of Exposure in Rankings, KDD 2018"
VARGAS = "Vargas and Castells, Rank and Relevance in Novelty and Diversity Metrics for "
VARGAS += "Recommender Systems, RecSys 2011, without discounts"
ZHOU = "Zhou et al., Solving the Apparent Diversity-Accuracy Dilemma of Recommender Systems, "
ZHOU += "PNAS 2010"
ABDOLLAHPOURI = "Abdollahpouri, Burke and Mobasher, Managing Popularity Bias in Recommender "
ABDOLLAHPOURI += "Systems with Personalized Re-ranking, FLAIRS 2019"
HEAD = Parameter("head", "the share of interactions that more popular items have", 0.8, 0, 1)
A = Parameter("a", "how much more rare items count", 0.55, low=0, high=10)
B = Parameter("b", "what is added to the number of queries that had an item", 1.5, low=0, high=1e6)
# The number is what is taken off N.
OF = Parameter("of", "what divides the sum", 1, words=(("N-1", 1), ("N", 0)), low=-1, high=2)


def fixed_lists(metric: Metric, semantics: Choices) -> str:
    """Refuse the orders of ties that leave open which items a list shows within a cutoff."""
    if semantics.order in ("expected", "worst", "best") and metric.k is not None:
        return (
            f"depends on which of equal confidences are among the first {metric.k}: choose another "
            f"order than {semantics.order!r}, such as item_descending"
        )
    return ""


def fixed_ranks(metric: Metric, semantics: Choices) -> str:
    """Refuse the orders of ties that leave open at which rank, and which, an item is."""
    if semantics.order in ("expected", "worst", "best"):
        return (
            "depends on the order of equal confidences: choose another order than "
            f"{semantics.order!r}, such as item_descending"
        )
    return ""


shown = partial(MetricSpec, kernel=None, range="0 to 1", undefined=fixed_lists)
ranked = partial(MetricSpec, kernel=None, range="0 to 1", undefined=fixed_ranks)

METRICS = (
    shown(
        name="coverage",
        definition="share of the catalogue that any list shows within k; the catalogue is the "
        "items of --items, else of --train, else of --features, else all labels and predictions "
        "of all systems",
        source=GE,
        aliases=("catalog_coverage",),
        aggregate="exposure.Coverage",
    ),
    ranked(
        name="coverage_of_labels",
        definition="share of the distinct labels that any list hits within k",
        source="Ge et al., RecSys 2010, as weighted by what is relevant",
        aggregate="exposure.LabelCoverage",
    ),
    MetricSpec(
        name="user_coverage",
        kernel="enough_predictions",
        definition="1 if a query has k predictions, else 0; without a cutoff, if it has one",
        range="0 or 1",
        source=SHANI,
        counts_empty=True,
    ),
    shown(
        name="gini",
        definition="sum of (2 j - N - 1) p(j) over the N items of the catalogue by rising p, "
        "divided by (N - 1), of the share p of all places within k that an item takes",
        range="0 if all items are shown equally often, to 1",
        better="neither",
        source=SHANI,
        parameters=(OF,),
        aggregate="exposure.Gini",
    ),
    shown(
        name="entropy",
        definition="sum of -p log2(p) over the items, of the share p of all places within k that "
        "an item takes, in bits",
        range="0 to log2 of the number of items",
        better="neither",
        source=SHANI,
        aggregate="exposure.Entropy",
    ),
    shown(
        name="hhi",
        definition="sum of p^2 over the items, of the share p of all places within k that an item "
        "takes: the chance that two places show the same item",
        range="1 / number of items, to 1",
        better="neither",
        source="Hirschman, The Paternity of an Index, American Economic Review, 1964",
        aliases=("herfindahl",),
        aggregate="exposure.Concentration",
    ),
    shown(
        name="personalization",
        definition="1 - the mean over all pairs of lists of the items that both show within k, "
        "divided by k",
        range="0 if all lists show the same, to 1",
        source=ZHOU,
        cutoff="required",
        aliases=("inter_list_diversity",),
        aggregate="exposure.Personalization",
    ),
    shown(
        name="popularity",
        definition="mean over the lists of the mean over the items within k of how many queries "
        "had the item in training",
        range="0 and up",
        better="neither",
        source="Abdollahpouri et al., Managing Popularity Bias in Recommender Systems with "
        "Personalized Re-ranking, FLAIRS 2019",
        aliases=("AvgRecPopularity", "arp"),
        aggregate="aggregates.list_means.Popularity",
    ),
    shown(
        name="popularity_lift",
        definition="popularity within k / the mean over the queries of training of the mean "
        "popularity of their items, - 1",
        range="-1 and up; 0 as popular as what queries had",
        better="neither",
        source="Abdollahpouri et al., The Unfairness of Popularity Bias in Recommendation, "
        "RMSE 2019",
        aggregate="aggregates.list_means.PopularityLift",
    ),
    shown(
        name="novelty",
        definition="mean over the lists of the mean over the items within k of -log2(p), of the "
        "share p of queries that had the item in training; an item that no query had "
        "counts as if one had it",
        range="0 and up",
        source=ZHOU,
        aliases=("MeanInvUserFreq", "miuf"),
        aggregate="aggregates.list_means.Novelty",
    ),
    ranked(
        name="serendipity",
        definition="mean over the lists of the mean over the items within k of max(0, P(rank) - "
        "P(popularity rank)) for hits, 0 for others; P(r) is (N + 1 - r) / N with N items in the "
        "catalogue, 0 for an item that no query had in training",
        source="RecTools: Serendipity",
        aggregate="aggregates.list_means.Serendipity",
    ),
    shown(
        name="aplt",
        definition="mean over the lists of the share of the items within k in the long tail: less "
        "popular in training than the items that together have the share head of all interactions",
        better="neither",
        source=f"{ABDOLLAHPOURI}; Elliot: APLT",
        parameters=(HEAD,),
        aggregate="aggregates.list_means.LongTailShare",
    ),
    shown(
        name="aclt",
        definition="mean over the lists of the number of items within k in the long tail, as for "
        "aplt",
        range="0 and up",
        better="neither",
        source=f"{ABDOLLAHPOURI}; Elliot: ACLT",
        parameters=(HEAD,),
        aggregate="aggregates.list_means.LongTailCount",
    ),
    *(
        ranked(
            name=name,
            definition=f"{meaning}: mean over the lists of queries with labels of the sum over the "
            f"hits within k of {worth} / log2(rank + 1), divided by the sum of "
            "1 / log2(rank + 1) over the predictions within k; a hit that is not in training "
            f"{absent}",
            range=limits,
            source="Vargas and Castells, Rank and Relevance in Novelty and Diversity Metrics for "
            f"Recommender Systems, RecSys 2011; Elliot: {name.upper()}",
            aggregate=f"aggregates.list_means.{place}",
        )
        for name, meaning, worth, limits, place, absent in (
            (
                "epc",
                "expected popularity complement",
                "(1 - the share of queries that had the item in training)",
                "0 to 1",
                "ExpectedComplement",
                "is worth 1",
            ),
            (
                "efd",
                "expected free discovery",
                "-log2 of the share of the interactions of training that are with the item",
                "0 and up",
                "ExpectedDiscovery",
                "is worth as much as the rarest that is",
            ),
        )
    ),
    *(
        ranked(
            name=name,
            aliases=aliases,
            definition=f"propensity-scored {what}: sum over the hits within k of {worth}, over all "
            "queries, divided by the same sum for the labels that are worth most; w is "
            "1 + (ln N - 1) (b + 1)^a "
            "(f + b)^-a of an item that f of the N queries of training had",
            source="Jain, Prabhu and Varma, Extreme Multi-label Loss Functions, KDD 2016, as "
            "pyxclib computes it",
            cutoff="required",
            parameters=(A, B),
            aggregate=f"aggregates.propensity.{place}",
        )
        for name, aliases, what, worth, place in (
            ("psp", ("psprecision",), "precision", "w", "ScoredPrecision"),
            (
                "psndcg",
                ("ps_ndcg",),
                "ndcg",
                "w / log2(rank + 1) / the dcg of min(k, R) hits",
                "ScoredGain",
            ),
        )
    ),
    *(
        shown(
            name=f"{group}_share",
            definition=f"share of all places within k taken by the {group}: {meaning}",
            better="neither",
            source="Abdollahpouri et al., User-Centered Evaluation of Popularity Bias in "
            "Recommender Systems, UMAP 2021",
            aggregate=f"aggregates.list_means.{group.title()}Share",
        )
        for group, meaning in (
            ("head", "the most popular items, with 20% of the interactions of training"),
            ("middle", "the items between head and tail"),
            ("tail", "the least popular items, with 20% of the interactions of training"),
        )
    ),
    ranked(
        name="exposure_parity",
        definition="the exposure of the groups of --item-group over the number of their items, "
        "the smallest / the largest; a place has the exposure 1 / log2(rank + 1), and "
        "an item with several groups shares it among them",
        range="0 to 1 if all groups are shown alike",
        source=f"{SINGH}: demographic parity",
        aggregate="aggregates.parity.ExposureParity",
    ),
    ranked(
        name="treatment_parity",
        definition="the exposure of the groups of --item-group, as for exposure_parity, over the "
        "number of their labels, a measure of merit; the smallest / the largest",
        range="0 to 1 if labels of all groups are worth the same exposure",
        source=f"{SINGH}: disparate treatment ratio",
        aliases=("disparate_treatment_ratio", "dtr"),
        aggregate="aggregates.parity.Treatment",
    ),
    ranked(
        name="impact_parity",
        definition="the exposure of the hits of the groups of --item-group, as for "
        "exposure_parity, over the number of their labels; the smallest / the largest",
        range="0 to 1 if labels of all groups are found alike",
        source=f"{SINGH}: disparate impact ratio",
        aliases=("disparate_impact_ratio", "dir"),
        aggregate="aggregates.parity.Impact",
    ),
    ranked(
        name="recall_parity",
        definition="the share of the labels of the groups of --item-group that are hit within k, "
        "over all queries; the smallest / the largest",
        range="0 to 1 if the labels of all groups are found alike",
        source="Hardt, Price and Srebro, Equality of Opportunity in Supervised Learning, NIPS 2016",
        aggregate="aggregates.parity.Recall",
    ),
    shown(
        name="miscalibration",
        definition="mean over the lists of the Kullback-Leibler divergence of the shares p of the "
        "groups among what their query had in training from 0.99 q + 0.01 p, of their shares q "
        "within k, in nats; an item with several groups counts as a part in each",
        range="0 and up",
        better="lower",
        source="Steck, Calibrated Recommendations, RecSys 2018",
        aggregate="aggregates.distances.Miscalibration",
    ),
    shown(
        name="ild",
        definition="intra-list diversity: mean over the lists with two items or more of the mean "
        "over the pairs of items within k of their Jaccard distance: 1 - groups of both / groups "
        "of any of the two",
        source="Ziegler et al., Improving Recommendation Lists through Topic Diversification, "
        "WWW 2005",
        aliases=("intra_list_diversity",),
        aggregate="aggregates.distances.Diversity",
    ),
    shown(
        name="epd",
        definition="expected profile distance: mean over the lists of the mean over the pairs of "
        "an item within k and one that their query had in training of their Jaccard distance, of "
        "groups as for ild",
        source=VARGAS,
        aliases=("expected_profile_distance", "history_distance"),
        aggregate="aggregates.distances.ProfileDistance",
    ),
    shown(
        name="ild_cosine",
        definition="intra-list diversity: mean over the lists with two items or more of the mean "
        "over the pairs of items within k of 1 - the cosine of their vectors of --features",
        range="0 to 2",
        source="Ziegler et al., WWW 2005, with the cosine of Smyth and McClave, Similarity vs. "
        "Diversity, ICCBR 2001",
        aggregate="aggregates.distances.CosineDiversity",
    ),
    shown(
        name="epd_cosine",
        definition="expected profile distance: mean over the lists of the mean over the pairs of "
        "an item within k and one that their query had in training of 1 - the cosine of their "
        "vectors of --features",
        range="0 to 2",
        source=VARGAS,
        aliases=("history_distance_cosine",),
        aggregate="aggregates.distances.CosineProfileDistance",
    ),
)
