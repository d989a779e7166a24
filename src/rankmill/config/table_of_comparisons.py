"""Rows of options: rules and comparisons."""

from functools import partial

from rankmill.config.option import Option

_gate = partial(Option, on="gate spark", table="")
_top = partial(Option, table="")
_compare = partial(Option, on="compare spark", table="")

RULES = (
    _gate(
        "--rule RULE",
        "A rule that must hold; repeat for more. See 'rankmill docs gate' for the grammar.",
        "Rules.rules",
        short="*",
        name="rules",
        kind="texts",
    ),
    Option(
        "--baseline INPUT",
        "Predictions or an earlier run to compare with. For an earlier run, give the .parquet "
        "or .arrow file of its --per-query, or last, median:7 or ago:28d to take it from "
        "--history.",
        "baseline",
        on="gate spark",
        short="*",
    ),
    _gate(
        "--undecided [warn|fail]",
        "What to do if the data cannot decide a rule. warn exits with 0.",
        "Rules.undecided",
        short="*",
        default="warn",
        choices=("warn", "fail"),
    ),
    _gate(
        "--family-confidence C",
        "The confidence, such as 0.95, with which all rules that have a confidence hold together.",
        "Rules.family_confidence",
        kind="number",
    ),
    _gate(
        "--power",
        "Show what the rules can detect, without a verdict. For each rule, this is the "
        "smallest drop that makes it fail in 80% of nights on this data, and its false alarms "
        "per year. Only -o is written.",
        on="gate",
    ),
)

COMPARISON = (
    Option(
        "--baseline NAME",
        "The system to compare with, by path or name. By default, it is the first one in "
        "'compare' and the second one in 'report'.",
        "baseline",
        on="compare report spark",
        short="*",
    ),
    _compare(
        "--all-pairs",
        "Compare every pair of systems, not only each with the baseline. One table has all "
        "systems and metrics; raised letters after a value name the systems that it is better "
        "than.",
        "all_pairs",
        on="compare",
        frames=False,
    ),
    _compare(
        "--test TEST",
        "A test: t, randomization or wilcoxon. Repeat for more; the first one decides.",
        "Tests.tests",
        short="*",
        name="tests",
        kind="texts",
        default=("t",),
    ),
    _compare(
        "--correction NAME",
        "How to correct p-values for several metrics and systems, or pairs of systems: holm, "
        "bh or none.",
        "Tests.correction",
        default="holm",
    ),
    _compare(
        "--confidence LEVEL",
        "The confidence level of intervals.",
        "confidence Rules.confidence",
        kind="number",
        default=0.95,
    ),
    _compare(
        "--cutoffs LIST",
        "Compute each metric at these cutoffs, such as 1,5,10, instead of its own, and show how "
        "the ranking of systems changes over them.",
        "cutoffs",
        on="compare",
        frames=False,
    ),
    _compare(
        "--margin X",
        "Also test whether systems differ by less than X.",
        "margin",
        short="*",
        kind="number",
    ),
    _top(
        "--by COLUMN|FILE",
        "Also show slices of queries; repeat for more. Slice by a column of the labels; by "
        "all columns of a FILE with query ids, whose name must have a folder or a suffix, or by "
        "those after a colon, as in users.parquet:country,age:4,signup:month, which makes 4 groups "
        "of age; or by label_count, list_length, label_popularity, activity (in training) or "
        "unpredicted.",
        "by",
        on="evaluate compare gate report spark init",
        short="compare gate report init",
        kind="texts",
    ),
    _top(
        "--sum SUM",
        "Also show a weighted sum of metrics and slices; repeat for more. Write it as 'NAME = "
        "0.3*METRIC[COLUMN=VALUE] + 0.7*METRIC', where [COLUMN=VALUE] is a slice of --by.",
        "sums",
        on="evaluate spark",
        name="sums",
        kind="texts",
    ),
    _compare(
        "--moved N",
        "Also list the N queries that gained and lost most. With a minus sign, as in --moved -5, "
        "list only those that lost most. 'compare' also prints a command for each query that shows "
        "both lists side by side, except with --drop-seen, which 'rankmill explain' does not "
        "support.",
        "moved",
        on="compare gate spark",
        kind="integer",
        default=0,
        short="compare",
    ),
    _compare(
        "--cluster COLUMN",
        "Compute errors and tests over clusters of queries. Queries with the same value in "
        "this column of the labels or of a --by file, such as the sessions of a user, are not "
        "independent.",
        "cluster",
        on="compare gate",
        frames=False,
    ),
    _compare(
        "--adjust COLUMN|FILE",
        "Narrow the intervals by a number that was known for each query beforehand, such as "
        "its value last month. Give a column of the labels, or a FILE with query ids and "
        "numbers.",
        "adjust",
        on="compare gate",
        frames=False,
    ),
    _compare(
        "--seed N",
        "The seed of the random replicates.",
        "Tests.seed",
        kind="integer",
        least=0,
        default=0,
    ),
)
