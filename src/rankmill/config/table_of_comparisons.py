"""Rows of options: rules, comparisons, and how lists are fused."""

from functools import partial

from rankmill.config.option import Option

_gate = partial(Option, on="gate spark", table="")
_compare = partial(Option, on="compare spark", table="")
_stability = partial(Option, on="stability", short="*")
_fuse = partial(Option, on="fuse", short="*")

RULES = (
    _gate(
        "--rule RULE",
        "Rules.rules",
        "A rule to keep; repeat for more. 'rankmill docs gate' has the grammar.",
        short="*",
        name="rules",
        kind="texts",
    ),
    Option(
        "--baseline INPUT",
        "baseline",
        "Predictions or an earlier run to compare with. A run is the .parquet or .arrow file "
        "of its --per-query, the JSON file of its result; or last, best, median:7, ago:28d of "
        "--history.",
        on="gate spark",
        short="*",
    ),
    _gate(
        "--undecided [warn|pass|fail]",
        "Rules.undecided",
        "What comes of a rule if data do not suffice. warn and pass exit with 0.",
        short="*",
        default="warn",
        choices=("warn", "pass", "fail"),
    ),
    _gate(
        "--min-overlap SHARE",
        "Rules.min_overlap",
        "The share of all queries that both sides need to be compared query by query. With less, "
        "the two values are compared as a whole.",
        kind="number",
        least=0,
        most=1,
        default=0.9,
    ),
    _gate(
        "--family-confidence C",
        "Rules.family_confidence",
        "Let all rules that have a confidence hold together with this one, such as 0.95.",
        kind="number",
    ),
    _gate(
        "--power",
        "",
        "Give no verdict: show what the rules would see. That is, for each rule, the smallest drop "
        "that it fails in 80% of nights on these data, its false alarms a year, and which nights "
        "of --history would have failed. Only -o is written.",
        on="gate",
    ),
)

COMPARISON = (
    Option(
        "--baseline NAME",
        "baseline",
        "The system to compare with, by path or name. By default it is the "
        "first of 'compare', and the second of 'report'.",
        on="compare report spark",
        short="*",
    ),
    _compare(
        "--all-pairs",
        "all_pairs",
        "Compare every two systems, not only each with the baseline. One table has all systems and "
        "metrics, and raised letters after a value name the systems that it is better than.",
        on="compare",
        frames=False,
    ),
    _compare(
        "--test TEST",
        "Tests.tests",
        "A test: t, randomization, bootstrap, bca, wilcoxon, sign or tukey. Repeat for more; the "
        "first decides.",
        short="*",
        name="tests",
        kind="texts",
        default=("t",),
    ),
    _compare(
        "--correction NAME",
        "Tests.correction",
        "How p-values are corrected over metrics and systems, or pairs of these: holm, "
        "bonferroni, bh or none.",
        default="holm",
    ),
    _compare(
        "--confidence LEVEL",
        "confidence Rules.confidence",
        "The confidence of intervals. The t-test of 'stability' has the level 1 - LEVEL.",
        on="compare stability spark",
        kind="number",
        default=0.95,
        short="stability",
    ),
    _compare(
        "--margin X",
        "margin",
        "Also test whether systems differ by less than X.",
        short="*",
        kind="number",
    ),
    Option(
        "--by COLUMN|FILE",
        "by",
        "Also show slices; repeat for more. Queries are cut by the values of a column "
        "of the labels; of all columns of a FILE (with a folder or a suffix in its name) with "
        "query ids; of label_count, list_length, label_popularity or unpredicted.",
        on="evaluate compare gate report spark",
        short="compare gate report",
        table="",
        kind="texts",
    ),
    Option(
        "--sum SUM",
        "sums",
        "Also show a weighted sum of metrics and slices; repeat for more. It is "
        "'NAME = 0.3*METRIC[COLUMN=VALUE] + 0.7*METRIC', where a part in [] is one slice of --by.",
        on="evaluate spark",
        table="",
        name="sums",
        kind="texts",
    ),
    _compare(
        "--worst-slices N",
        "worst_slices",
        "Also list the N slices in which each system lost most. They are of one or two of --by; p "
        "is corrected over all slices.",
        kind="integer",
        least=0,
        default=0,
    ),
    _compare(
        "--moved N",
        "moved",
        "Also list the N queries that gained and lost most. 'compare' shows the "
        "command that explains each (none with --drop-seen, which 'rankmill explain' does not "
        "have).",
        on="compare gate spark",
        kind="integer",
        least=0,
        default=0,
        short="compare",
    ),
    _compare(
        "--cluster COLUMN",
        "cluster",
        "Take errors and tests of clusters of queries. Queries with the same value in this column "
        "of the labels or of a file of --by, such as the sessions of a user, are not independent.",
        on="compare gate",
        frames=False,
    ),
    _compare(
        "--adjust COLUMN|FILE",
        "adjust",
        "Narrow intervals by a number that was known of each query before. It may be its value "
        "last month: a column of the labels, or a FILE with query ids and the numbers.",
        on="compare gate",
        frames=False,
    ),
    _compare(
        "--replicates N",
        "Tests.replicates",
        "The random replicates of randomization, bootstrap, bca and tukey.",
        kind="integer",
        least=1,
        default=10_000,
    ),
    _compare(
        "--seed N",
        "Tests.seed seed",
        "The seed of random numbers: of replicates, and of the halves of 'stability'.",
        on="compare stability spark",
        kind="integer",
        least=0,
        default=0,
    ),
    _stability(
        "--cutoffs LIST",
        "cutoffs",
        "The cutoffs of each metric.",
        kind="integers",
        default="1,2,3,5,10,20,50",
    ),
    _stability(
        "--power P",
        "power",
        "The probability that the queries needed show a difference.",
        kind="number",
        default=0.8,
    ),
    _stability(
        "--splits N",
        "splits",
        "How often the queries are halved at random.",
        kind="integer",
        least=1,
        default=100,
    ),
)

FUSIONS = (
    *("rrf", "combsum", "combmnz", "combanz", "combmin", "combmax", "combmed", "combgmnz"),
    *("mixed", "wmnz", "isr", "log-isr", "logn-isr", "bordafuse", "condorcet", "rbc"),
    *("mapfuse", "posfuse", "slidefuse", "probfuse", "segfuse", "bayesfuse"),
)
FUSING = (
    _fuse(
        "--method NAME",
        "method",
        "How lists are fused; by default rrf. By rank: rrf, isr, log-isr, logn-isr, bordafuse, "
        "condorcet, rbc. By normalised confidence: combsum, combmnz, combanz, combmin, combmax, "
        "combmed, combgmnz, mixed, wmnz. Trained: mapfuse, posfuse, slidefuse, probfuse, segfuse, "
        "bayesfuse. 'rankmill docs fusing' has the formulas.",
        default="rrf",
        # As in analysis/fuse/methods.py, which loads NumPy. A test holds them equal.
        choices=FUSIONS,
    ),
    _fuse(
        "--norm NAME",
        "norm",
        "How confidences are normalised; by default min-max. Others are min-max-inverted, max, "
        "sum, z-score, rank, borda and none. Methods by rank have none.",
        choices=("min-max", "min-max-inverted", "max", "sum", "z-score", "rank", "borda", "none"),
    ),
    _fuse(
        "--train-labels FILE|DIR",
        "train_labels",
        "Labels of training queries. Trained methods and --optimise take them.",
        kind="input",
    ),
    _fuse(
        "--optimise METRIC",
        "optimise",
        "Choose weights by a metric. It is that over the training queries, and chooses --k and "
        "--parameter too; what is given stays.",
    ),
    _fuse(
        "--tries N",
        "tries",
        "The largest number of settings to try for --optimise; by default 1000.",
        kind="integer",
        least=1,
        default=1000,
        short="",
    ),
    _fuse(
        "--weights NUMBERS",
        "weights",
        "A weight for each run, as 2,1; by default all are 1.",
    ),
    _fuse("--k K", "k", "The k of rrf; by default 60.", kind="integer", least=1),
    _fuse(
        "--parameter NUMBER",
        "parameter",
        "A number that the method takes, such as phi of rbc. Others are gamma of combgmnz, sigma "
        "of logn-isr, segments of probfuse, and window of slidefuse.",
        kind="number",
    ),
    _fuse(
        "--top N",
        "top",
        "Keep the first N items of each fused list; by default all.",
        kind="integer",
        least=1,
    ),
)
