"""Rows of options: outputs and resources."""

from functools import partial

from rankmill.config.option import FILE, SIDES, Option
from rankmill.io.table_files import NAMED
from rankmill.show.writers import FORMATS
from rankmill.version import install

_LOCAL = "evaluate compare gate report stability explain explain-evaluators"
_WRITING = "evaluate compare gate spark stability explain explain-evaluators history"
_gate = partial(Option, on="gate spark", table="")
_prune = partial(Option, on="prune", short="*")

OUTPUT = (
    Option(
        "-o --output FILE",
        "",
        "Write to FILE instead of standard output.",
        on=_WRITING,
        short="*",
    ),
    Option(
        "-o --output FILE",
        "",
        "The file to write; - for standard output.",
        on="init",
        short="*",
        default="rankmill.toml",
    ),
    Option(
        "-o FUSED",
        "path",
        "The file to write.",
        on="fuse",
        short="*",
        name="output",
        required=True,
    ),
    Option(
        "--format FORMAT",
        "",
        "The format: table, json, csv, markdown or latex. By default the suffix of the -o "
        "file decides; without a suffix it is table. In csv, a text that begins with "
        "= + - @ or ' gets a ' in front, so that a spreadsheet does not read it as a formula.",
        on=_WRITING,
        short="evaluate compare spark stability explain explain-evaluators history",
        choices=FORMATS,
    ),
    Option(
        "--format FORMAT",
        "",
        "The format: table, json, csv, markdown or latex.",
        on="head metrics presets check",
        short="*",
        default="table",
        choices=FORMATS,
    ),
    Option(
        "--rows N",
        "rows",
        "The rows to show; by default 50 in a table, Markdown or LaTeX, and all in other formats.",
        on="explain",
        short="*",
        kind="integer",
        least=1,
    ),
    Option(
        "--per-query FILE",
        "",
        "Also write the values of each query to FILE. Its suffix tells the format: "
        f"{NAMED}. A .parquet or .arrow file is a baseline for a later 'gate'.",
        on="evaluate compare gate",
        short="*",
        table="",
    ),
    Option(
        "--per-query DIR",
        "",
        "Also write the values of each query to DIR, a new folder. It holds Parquet.",
        on="spark",
        short="*",
    ),
    Option(
        "--curve FILE",
        "",
        "Also write the points of curves to FILE: metrics over their cutoffs (-m map@1..100), "
        "precision over recall (-m pr), and the curves and bins of auprc, ece and their like. Its "
        f"suffix tells the format: .json, {NAMED}. --plot draws them.",
        on="evaluate spark",
        table="",
    ),
    _gate(
        "--json FILE",
        "",
        "Also write all numbers to FILE, as JSON. '-' is standard output, if -o names a file.",
        short="*",
    ),
    _gate("--junit FILE", "", "Also write a test case per rule, as JUnit XML.", short="*"),
    _gate(
        "--markdown FILE",
        "",
        "Also write a pull request's summary to FILE. '-' appends it to the file that "
        "$GITHUB_STEP_SUMMARY names.",
        short="*",
    ),
    _gate(
        "--summary FILE",
        "",
        "Also write a line for a chat to FILE. It has the verdict, and what broke by how much. '-' "
        "prints it, in the place of the result unless -o names a file.",
    ),
    Option(
        "--plot FILE",
        "",
        "Also draw a picture to FILE, in .svg, .png or .pdf. The last two need matplotlib: "
        f"{install('plot')}.",
        on="evaluate compare spark",
        table="",
    ),
    Option(
        "--plot FILE",
        "",
        "Also draw a picture to FILE, in .svg, .png or .pdf. The last two need matplotlib: "
        f"{install('plot')}.",
        on="stability history",
        short="*",
    ),
    Option(
        "--report FILE",
        "",
        "Also write an HTML page about the run to FILE. It needs nothing else; 'rankmill docs "
        "report' shows one.",
        on="evaluate compare gate",
        short="*",
        table="",
    ),
    Option(
        "--report FILE",
        "",
        "Also write an HTML page about the run to FILE. It has no lists and no charts of queries.",
        on="spark",
        table="",
    ),
    Option(
        "--leaderboard FILE",
        "",
        "Also write a page to FILE, in HTML, with the table of all systems, and the slices.",
        on="evaluate spark",
        table="",
    ),
    Option(
        "--leaderboard FILE",
        "",
        "Also write a page to FILE, in HTML, with the table of all systems, all pairs, and the "
        "slices. It implies --all-pairs.",
        on="compare",
        table="",
    ),
    Option(
        "-o --report FILE",
        "",
        "Write to FILE instead of standard output. On a terminal, FILE has to be named.",
        on="report",
        short="*",
        table="",
    ),
    Option(
        "--history DIR",
        "history",
        "Also record the run in the folder or URL DIR. It becomes a small Parquet file of its own. "
        "See 'rankmill history'.",
        on="evaluate compare gate spark",
        short="*",
        table="",
    ),
    Option(
        "--history DIR",
        "",
        "Also show how the metrics went in the runs of a history. Nothing is added to it.",
        on="report",
        short="*",
        table="",
    ),
    Option(
        "--tag KEY=VALUE",
        "",
        "Give the run a tag in the history and in MLflow, as model=a7; repeat for more.",
        on="evaluate compare gate spark",
        table="",
        name="tags",
        kind="pairs",
    ),
    Option(
        "--mlflow [URI]",
        "",
        "Also log the run to the MLflow server at URI. By default it is MLFLOW_TRACKING_URI. Put "
        "the option last, or write --mlflow=URI.",
        on="evaluate compare gate spark",
        table="",
        bare="",
    ),
    Option(
        "--date DATE",
        "time",
        "The date of the run in a history, and {date} in FILE.toml, as 2024-05-01. By default it "
        "is today in UTC.",
        on=FILE,
    ),
    Option(
        "--plan",
        "",
        "Only tell what would be read, in how much memory. On Spark also what would "
        "be shuffled, and by how many tasks.",
        on="evaluate spark",
        short="*",
        name="only_plan",
    ),
    Option(
        "--since TIME",
        "since",
        "Only runs since a date, as 2026-01-01, or of the last hours, days or weeks, as 30d.",
        on="history",
        short="*",
    ),
    _prune("--keep AGE", "", "Keep the runs of the last hours, days or weeks, as 365d."),
    _prune("--keep-last N", "", "Keep the N newest runs.", kind="integer", least=1),
    _prune("--dry-run", "", "Only tell which runs would be removed."),
    Option("--force", "", "Replace an existing file.", on="init", short="*"),
    Option("--no-evaluate", "", "Leave out the values of today.", on="init", short="*"),
    Option(
        "--integers [query|item]",
        "integers",
        "Write these ids of text as integers, to be compared with integers. Repeat for both. By "
        "default they are strings.",
        on="convert",
        short="*",
        kind="texts",
        choices=("query", "item"),
    ),
    Option(
        "--html DIR",
        "",
        "Write all pages as a small site into a folder. It needs no network.",
        on="docs",
        short="*",
    ),
    Option(
        "--man",
        "",
        "Print the help of all commands as a page for man, as for man1/rankmill.1.",
        on="docs",
        short="*",
    ),
)

_ROWS = "convert fuse"
RESOURCES = (
    Option(
        "--memory SIZE",
        "memory",
        "The memory limit for large inputs, as 500MB. If the confidences for gap need "
        "more, they are read twice. If counts of items or long rows with scattered queries need "
        "more, they go to disk. If the labels need more and the files are sorted by query, one "
        "range of queries is held at a time. On Spark it is that of a task.",
        on=f"{_LOCAL} spark {_ROWS}",
        short="*",
        table="",
        kind="size",
        default="2GiB",
    ),
    Option(
        "--threads N",
        "threads",
        "How many threads; by default all available CPUs.",
        on=f"{_LOCAL} {_ROWS}",
        table="",
        kind="integer",
        least=1,
        frames=False,
        short="evaluate report stability explain explain-evaluators convert fuse",
    ),
    Option(
        "--partitions N",
        "partitions",
        "The number of partitions that rows are shuffled into. By default it is one for 32 MB of "
        "input, and rows are shuffled only if they must be.",
        on="spark",
        short="*",
        kind="integer",
        least=1,
    ),
    Option(
        "--quiet",
        "",
        "Show errors only: no progress, no warnings.",
        on=f"{SIDES} init convert head fuse history prune metrics presets docs selftest warmup "
        "check trec_eval",
        table="",
        short="*",
    ),
)
