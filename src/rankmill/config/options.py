"""The table of options by the groups that helps show; the rows of inputs stand beside it."""

from functools import cache, partial

from rankmill.config.option import FILE, SIDES, Option
from rankmill.config.table_of_inputs import COUNTING, INPUTS, METRICS
from rankmill.io.whole_files import NAMED
from rankmill.show.writers import FORMATS

# ------------------------------------------------------------------ rules and comparisons

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
        "of age; or by label_count, list_length, label_popularity (head, middle and tail hold a "
        "third of all labels each), activity (in training) or unpredicted.",
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
        "both lists side by side.",
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
    ),
    _compare(
        "--adjust COLUMN|FILE",
        "Narrow the intervals by a number that was known for each query beforehand, such as "
        "its value last month. Give a column of the labels, or a FILE with query ids and "
        "numbers.",
        "adjust",
        on="compare gate",
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


_LOCAL = "evaluate compare gate report explain explain-evaluators"
_WRITING = "evaluate merge compare gate spark explain explain-evaluators history check"
_RECORDING = "evaluate merge compare gate spark"
_top = partial(Option, table="")
_gate = partial(Option, on="gate spark", table="")
_recorded = partial(Option, on=_RECORDING, table="")
_report = partial(Option, on="report", short="*", table="")
_init = partial(Option, on="init", short="*")
_part = partial(Option, on="evaluate")
_prune = partial(Option, on="prune", short="*")

OUTPUT = (
    Option("-o --output FILE", "Write to FILE instead of standard output.", on=_WRITING, short="*"),
    _init("-o --output FILE", "The file to write; - for standard output.", default="rankmill.toml"),
    Option(
        "--format FORMAT",
        "The format: table, json, csv, markdown or latex. By default, the suffix of the -o "
        "file decides; without a suffix, it is table. In csv, text that begins with = + - @ "
        "or ' gets a leading ', so a spreadsheet does not read it as a formula.",
        on=_WRITING,
        short="evaluate merge compare spark explain explain-evaluators history check",
        choices=FORMATS,
    ),
    Option(
        "--format FORMAT",
        "The format: table, json, csv, markdown or latex.",
        on="head metrics presets",
        short="*",
        default="table",
        choices=FORMATS,
    ),
    Option(
        "--rows N",
        "The rows to show; by default 50 in a table, Markdown or LaTeX, and all in other formats.",
        "rows",
        on="explain",
        short="*",
        kind="integer",
        least=1,
    ),
    _top(
        "--per-query FILE",
        f"Also write the values of each query to FILE. Its suffix sets the format: {NAMED}. A "
        ".parquet or .arrow file can be the baseline of a later 'gate'.",
        on="evaluate compare gate",
        short="*",
    ),
    Option(
        "--per-query DIR",
        "Also write the values of each query to DIR. It is a new folder of Parquet.",
        on="spark",
        short="*",
    ),
    _top(
        "--curve FILE",
        "Also write the points of curves to FILE. These are metrics over their cutoffs (-m "
        "map@1..100), precision over recall (-m pr), and the curves and bins of auprc, ece "
        f"and related metrics. The suffix sets the format: .json, {NAMED}. Use --plot to draw "
        "them.",
        on="evaluate spark",
    ),
    _gate(
        "--json FILE",
        "Also write all numbers to FILE as JSON. '-' is standard output, if -o names a file.",
        short="*",
    ),
    _gate("--junit FILE", "Also write JUnit XML to FILE. It has a test case per rule.", short="*"),
    _gate(
        "--markdown FILE",
        "Also write a pull request summary to FILE. '-' appends it to the file that "
        "$GITHUB_STEP_SUMMARY names.",
        short="*",
    ),
    _gate(
        "--summary FILE",
        "Also write one line for a chat to FILE. It has the verdict, and how far each broken "
        "rule is off. '-' prints it, instead of the result unless -o names a file.",
    ),
    _top(
        "--plot FILE",
        "Also draw a plot to FILE, as .svg.",
        on="evaluate compare spark history",
        short="history",
    ),
    _top(
        "--report FILE",
        "Also write an HTML report on the run to FILE. It is self-contained; see 'rankmill "
        "docs report' for a picture.",
        on="evaluate compare gate",
        short="*",
    ),
    _top(
        "--report FILE",
        "Also write an HTML page about the run to FILE. It has no lists and no charts of queries.",
        on="spark",
    ),
    _top(
        "--leaderboard FILE",
        "Also write an HTML page with the table of all systems, and the slices, to FILE.",
        on="evaluate spark",
    ),
    _top(
        "--leaderboard FILE",
        "Also write an HTML page with the table of all systems, what was tested, and the slices to "
        "FILE. Add --all-pairs for a test of every pair.",
        on="compare",
    ),
    _report(
        "-o --report FILE",
        "Write to FILE instead of standard output. FILE is required on a terminal.",
    ),
    _recorded(
        "--history DIR",
        "Also record the run in DIR, a folder or URL. Each run is a small Parquet file. See "
        "'rankmill history'.",
        "history",
        short="*",
    ),
    _report(
        "--history DIR",
        "Also show how the metrics moved over the runs in DIR. Nothing is added to it.",
    ),
    _recorded(
        "--tag KEY=VALUE",
        "Tag the run in the history and in MLflow, such as model=a7; repeat for more.",
        name="tags",
        kind="pairs",
    ),
    _recorded(
        "--mlflow [URI]",
        "Also log the run to the MLflow server at URI. By default, it is MLFLOW_TRACKING_URI. "
        "Put the option last, or write --mlflow=URI.",
        bare="",
    ),
    Option(
        "--date DATE",
        "The date of the run in a history, and of {date} in FILE.toml, such as 2024-05-01 or "
        "yesterday. By default, it is today in UTC.",
        "time",
        on=f"{FILE} explain",
    ),
    Option(
        "--plan",
        "Only show what would be read.",
        on="evaluate",
        short="*",
        name="only_plan",
    ),
    _part(
        "--part I/N",
        "Evaluate the I-th of N parts of the queries, by a hash of their ids. Both inputs are read "
        "whole. Without it, both inputs are one part.",
    ),
    _part(
        "--state FILE",
        "Write the state of a part, which 'rankmill merge' adds up, to FILE, in .arrow or "
        ".parquet. No result is shown.",
    ),
    _part(
        "--second FILE",
        "Read a part a second time, which gap and similar metrics need. FILE is the merged state "
        "of the first pass.",
    ),
    Option(
        "--state FILE",
        "Write the merged state to FILE, in .arrow or .parquet, and show no result.",
        on="merge",
        short="*",
    ),
    Option(
        "--since TIME",
        "Only show runs since a date, such as 2026-01-01 or yesterday, or of the last hours, days "
        "or weeks, such as 30d.",
        "since",
        on="history",
        short="*",
    ),
    _prune("--keep AGE", "Keep the runs of the last hours, days or weeks, such as 365d."),
    _prune("--keep-last N", "Keep the N newest runs.", kind="integer", least=1),
    _prune("--dry-run", "Only show which runs would be removed."),
    _init("--force", "Replace an existing file."),
    _init("--no-evaluate", "Do not compute today's values."),
)

RESOURCES = (
    _top(
        "--memory SIZE",
        "The memory limit, such as 500MB. It is for large inputs: if the confidences for gap "
        "need more, they are read twice. If long rows with scattered queries need more, they go to "
        "disk. If the labels of Parquet files need more, one share of the queries is scored after "
        "the other. On Spark, it is the limit of each task.",
        "memory",
        on=f"{_LOCAL} spark convert",
        short="*",
        kind="size",
        default="2GiB",
    ),
    _top(
        "--threads N",
        "Threads to use; all available CPUs by default.",
        "threads",
        on=f"{_LOCAL} merge convert",
        kind="integer",
        least=1,
        short="evaluate merge report explain explain-evaluators convert",
    ),
    Option(
        "--partitions N",
        "The number of partitions to shuffle rows into. By default, it is one per 32 MB of input.",
        "partitions",
        on="spark",
        short="*",
        kind="integer",
        least=1,
    ),
    _top(
        "--quiet",
        "Show errors only: no progress, no warnings.",
        on=f"{SIDES} merge init convert head history prune metrics presets docs "
        "warmup check trec_eval",
        short="*",
    ),
)

# ------------------------------------------------------------------ the table

OPTIONS: dict[str, tuple[Option, ...]] = {
    "Inputs": INPUTS,
    "Metrics": METRICS,
    "Rules": RULES,
    "Counting": COUNTING,
    "Comparison": COMPARISON,
    "Output": OUTPUT,
    "Resources": RESOURCES,
}
"""Group -> its rows. The first row of a name is what a rankmill.toml means by it."""


def options_of(command: str) -> dict[str, list[Option]]:
    """Return the options of a command, by group; those of "spark compare" have both words."""
    whole, _, part = command.partition(" ")
    wanted = {whole, part or "evaluate"} if whole == "spark" else {whole}

    def takes(one: Option) -> bool:
        on = {*one.on.split()}
        return wanted <= on or on == {whole}

    found = {group: [one for one in rows if takes(one)] for group, rows in OPTIONS.items()}
    return {group: rows for group, rows in found.items() if rows}


@cache
def keys() -> dict[str, Option]:
    """Return name -> option of what may stand in a rankmill.toml, but for the semantics."""
    found: dict[str, Option] = {}
    for rows in OPTIONS.values():
        for one in rows:
            if one.table in ("", "columns"):
                found.setdefault(one.name, one)
    return found
