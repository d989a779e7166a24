"""Rows of options: inputs, metrics, and what is counted."""

from functools import partial

from rankmill.config.option import FILE, SIDES, Option
from rankmill.metrics.defaults import DEFAULT_METRICS
from rankmill.sources.files.formats import FORMATS

_LOCAL = "evaluate compare gate report"
_PRESETS = f"{FILE} stability explain"
# Columns of labels and predictions; of inputs that are the one or the other; of predictions.
_column = partial(Option, on=f"{SIDES} init", table="columns")
_one = partial(Option, on="convert head", short="*")
_run = partial(Option, on="convert head fuse", short="*")
_check = partial(Option, on="check", short="*")
_side = partial(Option, on=SIDES, table="")
_beside = partial(Option, on=f"{_LOCAL} spark explain", table="", kind="input")

INPUTS = (
    _column(
        "--query COLUMN",
        "Labels.query Predictions.query",
        "The column of query ids in both inputs. Several columns make a query, as session,type. "
        "Where one side has their joined text in a column, '{session}_{type}' makes that text of "
        "the columns of the other side.",
        short="*",
    ),
    _column(
        "--item COLUMN",
        "Labels.item Predictions.item",
        "The column of items in both inputs.",
        short="*",
    ),
    _column(
        "--score COLUMN",
        "Predictions.score",
        "The column of confidences in the predictions.",
        short="*",
    ),
    _column(
        "--rank COLUMN",
        "Predictions.rank",
        "The column of ranks in the predictions.",
        short="evaluate report spark stability explain explain-evaluators",
    ),
    _column(
        "--gain COLUMN",
        "Labels.gain",
        "The column of graded relevance in the labels.",
        short="*",
    ),
    _column(
        "--label-query COLUMN",
        "Labels.query",
        "The column of query ids in the labels, in place of --query.",
    ),
    _column(
        "--label-item COLUMN",
        "Labels.item",
        "The column of items in the labels, in place of --item.",
    ),
    _column(
        "--labels-as FORMAT",
        "Labels.format",
        "The format of the labels, where names and content do not tell it. It is parquet, arrow, "
        "orc, csv, tsv, trec or jsonl; or csv-long (an item in each row), csv-wide (a list in a "
        "cell), csv-blanks, csv-commas, csv-semicolons, csv-bars (a list parted by these), "
        "csv-pairs (items and confidences in a cell), and the same for tsv.",
        frames=False,
    ),
    _column(
        "--predictions-as FORMAT",
        "Predictions.format",
        "The format of the predictions, as for --labels-as.",
        frames=False,
    ),
    _column(
        "--columns NAMES",
        "Labels.columns Predictions.columns",
        "The names of the columns of text without a header, as query,item,score.",
        frames=False,
    ),
    _column(
        "--label-columns NAMES",
        "Labels.columns",
        "The names of the columns of the labels, in place of --columns.",
        frames=False,
    ),
    _column(
        "--encoding NAME",
        "Labels.encoding Predictions.encoding",
        "The encoding of text that is not UTF-8, as Python calls it: latin-1, cp1252, utf-16.",
        frames=False,
    ),
    _column(
        "--label-encoding NAME",
        "Labels.encoding",
        "The encoding of the labels, in place of --encoding.",
        frames=False,
    ),
    _column(
        "--in-order",
        "Predictions.in_order",
        "The rows of long predictions are in rank order. Neither ranks nor confidences order "
        "them; gap still reads the confidences.",
        short="init",
    ),
    _column(
        "--binary",
        "Labels.binary",
        "Labels are just relevant or not. No gains are read, and every label is relevant.",
        short="evaluate init",
    ),
    _column(
        "--padding ITEM",
        "Labels.padding Predictions.padding",
        "An item that is none, such as the -1 with which short lists are filled. It is dropped as"
        " a null item is.",
    ),
    _column(
        "--subtopic COLUMN",
        "Labels.subtopic",
        "The column of subtopics in long labels, for metrics such as alpha_ndcg and err_ia. It "
        "is 'iteration' in TREC's qrels of diversity.",
    ),
    _side(
        "--weight COLUMN",
        "Labels.weight",
        "The column of the labels that says how much each query counts in the means.",
    ),
    _beside(
        "--train FILE|DIR",
        "Catalogue.train",
        "What queries had in training, for novelty, popularity and their kin. Rows of a query and"
        " an item, or lists, in any format that labels may have. See 'rankmill docs catalogue'.",
    ),
    _beside(
        "--items FILE|DIR",
        "Catalogue.items",
        "The catalogue that coverage and gini are over: a table with a column of items. By "
        "default these are the items of --train, else of --features, else all labels and "
        "predictions.",
    ),
    _beside(
        "--item-group COLUMN",
        "Catalogue.group",
        "The column of --items with the group of each item, or its groups, such as genres. For "
        "exposure_parity, miscalibration, ild and epd.",
        kind="text",
    ),
    _beside(
        "--features FILE|DIR",
        "Catalogue.features",
        "The vectors of items, for ild_cosine and epd_cosine. A table with a column of items and "
        "one of lists of numbers, or several of numbers.",
    ),
    _one(
        "--labels",
        "Labels",
        "Read it as labels. By default the columns tell: it is labels if it has gains, but "
        "neither ranks nor confidences.",
        name="role",
        bare="labels",
    ),
    _one(
        "--predictions", "Predictions", "Read it as predictions.", name="role", bare="predictions"
    ),
    _run(
        "--as --labels-as --predictions-as FORMAT",
        "Labels.format Predictions.format",
        f"The format of the files, if they do not tell it. One of {', '.join(FORMATS)}.",
        name="told_format",
        choices=tuple(FORMATS),
    ),
    _run(
        "--columns --label-columns NAMES",
        "Labels.columns Predictions.columns",
        "The names of columns without a header, as query,item.",
    ),
    _run(
        "--encoding --label-encoding NAME",
        "Labels.encoding Predictions.encoding",
        "The encoding of text that is not UTF-8, as latin-1 or utf-16.",
    ),
    _run(
        "--query --label-query COLUMN",
        "Labels.query Predictions.query",
        "The column of query ids. Several as session,type or '{session}_{type}'.",
    ),
    _run("--item --label-item COLUMN", "Labels.item Predictions.item", "The column of items."),
    _run("--score COLUMN", "Predictions.score", "The column of confidences."),
    _run("--rank COLUMN", "Predictions.rank", "The column of ranks."),
    _run(
        "--in-order",
        "Predictions.in_order",
        "The rows of long predictions are in rank order, whatever their confidences.",
    ),
    _run(
        "--padding ITEM",
        "Labels.padding Predictions.padding",
        "An item that is none, such as -1, which is dropped.",
    ),
    _check("--query COLUMN", "row_id_column_name", "The column of ids; by default the first one."),
    _check("--item COLUMN", "item", "The column of items; by default the only other one."),
    _check(
        "--score COLUMN",
        "confidence",
        "The column of confidences of a submission with one item a row, so that ids may repeat.",
    ),
    _one("--gain COLUMN", "Labels.gain", "The column of graded relevance."),
    _one("--binary", "Labels.binary", "Labels are just relevant or not."),
)
METRICS = (
    _check(
        "-m --metric METRIC",
        "metric",
        "What the competition scores by, as map@12 or gap. Its cutoff is the most that a row may "
        "hold.",
        required=True,
    ),
    Option(
        "-m --metric METRIC",
        "metrics",
        "What to compute, as map@5,10,mrr; repeat for more. A set of metrics, such as recsys, and "
        "@FILE with names stand for several. See 'rankmill metrics'.",
        on="evaluate compare report spark",
        table="",
        short="*",
        name="metrics",
        kind="texts",
        default=DEFAULT_METRICS,
    ),
    Option(
        "-m --metric METRIC",
        "metrics",
        "A metric without a cutoff, as map; repeat for more. See 'rankmill metrics'.",
        on="stability",
        short="*",
        name="metrics",
        kind="texts",
        default=("map",),
    ),
    Option(
        "-m --metric METRIC",
        "metrics",
        "A metric to compute beside those of the rules; repeat for more.",
        on="gate spark",
        name="metrics",
        kind="texts",
    ),
    Option(
        "-m --metric METRIC",
        "",
        "Show each run of this metric, as map@12; repeat for more.",
        on="history",
        short="*",
        name="metrics",
        kind="texts",
    ),
    Option(
        "-m --metric METRIC",
        "metric",
        "What to show, as map@12.",
        on="explain explain-evaluators",
        short="*",
        required=True,
    ),
    Option(
        "--define FILE.py",
        "",
        "Run a file of Python that defines metrics of your own. They then work by name. It runs "
        "that code, so give only a file that you trust; repeat for more. See 'rankmill docs "
        "metrics'.",
        on=f"{SIDES} history metrics",
        table="",
        short="metrics",
        kind="texts",
    ),
    Option(
        "--query-id ID",
        "query_id",
        "The query whose list to show; none for gap.",
        on="explain",
        short="*",
    ),
    Option(
        "--elsewhere", "", "List what other libraries call them instead.", on="metrics", short="*"
    ),
    Option("--sets", "", "List the sets of metrics, such as official.", on="metrics", short="*"),
)
COUNTING = (
    Option(
        "--as VERSION",
        "",
        "The version of trec_eval that is stood in for.",
        on="trec_eval",
        short="*",
        name="version",
        default="9",
        choices=("9", "10"),
    ),
    Option(
        "--preset NAME",
        "Semantics.preset",
        "Count as another evaluator, such as trec_eval. 'rankmill presets' lists all presets.",
        on=_PRESETS,
        table="semantics",
        short="*",
        default="default",
    ),
    Option(
        "--semantics FIELD=CHOICE",
        "Semantics",
        "Change a choice, as repeated_predictions=drop. Repeat the option to change more of what "
        "the preset chooses. If a FIELD or CHOICE is unknown, the error message lists all.",
        table="semantics",
        on=_PRESETS,
        short="evaluate",
        name="fields",
        kind="pairs",
    ),
    Option(
        "--presets NAMES",
        "presets",
        "Presets between commas; if not given, default and all that have the metric.",
        on="explain-evaluators",
        short="*",
    ),
    _side(
        "--rel N",
        "Semantics.rel",
        "The least gain that counts as relevant. It is for every metric with a parameter rel: map"
        " becomes map(rel=N). trec_eval -l.",
        kind="number",
    ),
    _side(
        "--depth N",
        "Semantics.depth",
        "Only the first N predictions of each query count. trec_eval -M.",
        kind="integer",
        least=1,
        short="stability explain-evaluators",
    ),
    _side(
        "--judged-only",
        "Semantics.judged_only",
        "Drop the predictions that are not among the labels with a gain of 0 or more. Those "
        "behind move up. trec_eval -J.",
    ),
    _column(
        "--gain-function --gain-map [linear|exp|GAIN=WORTH,...]",
        "Semantics.gain_function",
        "What a gain g of a label is worth in ndcg, dcg and their like. It is g (linear), 2^g - 1"
        " (exp), or what a map says for every gain, as trec_eval's ndcg.1=3,2=7.",
        default="linear",
        choices=("linear", "exp"),
        pairs=True,
    ),
    Option(
        "--drop-seen",
        "Catalogue.drop_seen",
        "Drop the predictions that their query had in --train. Those behind move up.",
        on=f"{_LOCAL} spark",
        table="",
    ),
)
