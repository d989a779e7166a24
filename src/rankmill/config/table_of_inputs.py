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
        "The column of query ids in both inputs. If several columns identify a query, list "
        "them: session,type. If one input has them joined in one column of text, give the "
        "pattern that joins the columns of the other: '{session}_{type}'.",
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
        "The column of query ids in the labels, if it is not that of --query.",
    ),
    _column(
        "--label-item COLUMN",
        "Labels.item",
        "The column of items in the labels, if it is not that of --item.",
    ),
    _column(
        "--labels-as FORMAT",
        "Labels.format",
        "The format of the labels, if it is not detected. One of parquet, arrow, orc, csv, "
        "tsv, trec or jsonl; or csv-long (one item per row), csv-wide (a list per cell), "
        "csv-blanks, csv-commas, csv-semicolons, csv-bars (a list per cell, separated by "
        "these), csv-pairs (items and confidences in a cell), and the same for tsv.",
        frames=False,
    ),
    _column(
        "--predictions-as FORMAT",
        "Predictions.format",
        "The format of the predictions, if it is not detected. See --labels-as.",
        frames=False,
    ),
    _column(
        "--columns NAMES",
        "Labels.columns Predictions.columns",
        "The column names of text files without a header, such as query,item,score.",
        frames=False,
    ),
    _column(
        "--label-columns NAMES",
        "Labels.columns",
        "The column names of the labels, if they are not those of --columns.",
        frames=False,
    ),
    _column(
        "--encoding NAME",
        "Labels.encoding Predictions.encoding",
        "The encoding of text that is not UTF-8, by its Python name: latin-1, cp1252, utf-16.",
        frames=False,
    ),
    _column(
        "--label-encoding NAME",
        "Labels.encoding",
        "The encoding of the labels, if it is not that of --encoding.",
        frames=False,
    ),
    _column(
        "--in-order",
        "Predictions.in_order",
        "Rank long predictions by the order of their rows. Ranks and confidences then do not "
        "order them; gap still reads the confidences.",
        short="init",
    ),
    _column(
        "--binary",
        "Labels.binary",
        "Ignore gains: every label is relevant.",
        short="evaluate init",
    ),
    _column(
        "--padding ITEM",
        "Labels.padding Predictions.padding",
        "An item that only fills up short lists, such as -1. It is dropped, as null items are.",
    ),
    _column(
        "--subtopic COLUMN",
        "Labels.subtopic",
        "The column of subtopics in long labels, for metrics such as alpha_ndcg and err_ia. "
        "In TREC's diversity qrels, it is 'iteration'.",
    ),
    _side(
        "--weight COLUMN",
        "Labels.weight",
        "The column of the labels with the weight of each query in the means.",
    ),
    _beside(
        "--train FILE|DIR",
        "Catalogue.train",
        "What each query had in training, for novelty, popularity and related metrics. It has "
        "rows of a query and an item, or lists, in any format of labels. See 'rankmill docs "
        "catalogue'.",
    ),
    _beside(
        "--items FILE|DIR",
        "Catalogue.items",
        "The catalogue for coverage and gini: a table with a column of items. By default, "
        "these are the items of --train, else of --features, else all labels and predictions.",
    ),
    _beside(
        "--item-group COLUMN",
        "Catalogue.group",
        "The column of --items with the group of each item, or its groups, such as genres. "
        "exposure_parity, miscalibration, ild and epd need it.",
        kind="text",
    ),
    _beside(
        "--features FILE|DIR",
        "Catalogue.features",
        "The vectors of items, for ild_cosine and epd_cosine. A table with a column of items, "
        "and one column of lists of numbers or several of numbers.",
    ),
    _one(
        "--labels",
        "Labels",
        "Read the input as labels. By default, it is read as labels if it has gains, but "
        "neither ranks nor confidences.",
        name="role",
        bare="labels",
    ),
    _one(
        "--predictions",
        "Predictions",
        "Read the input as predictions.",
        name="role",
        bare="predictions",
    ),
    _run(
        "--as --labels-as --predictions-as FORMAT",
        "Labels.format Predictions.format",
        f"The format of the files, if it is not detected. One of {', '.join(FORMATS)}.",
        name="told_format",
        choices=tuple(FORMATS),
    ),
    _run(
        "--columns --label-columns NAMES",
        "Labels.columns Predictions.columns",
        "The column names of files without a header. Separate them by commas: query,item.",
    ),
    _run(
        "--encoding --label-encoding NAME",
        "Labels.encoding Predictions.encoding",
        "The encoding of text that is not UTF-8. Examples are latin-1 and utf-16.",
    ),
    _run(
        "--query --label-query COLUMN",
        "Labels.query Predictions.query",
        "The column of query ids. List several as session,type or '{session}_{type}'.",
    ),
    _run("--item --label-item COLUMN", "Labels.item Predictions.item", "The column of items."),
    _run("--score COLUMN", "Predictions.score", "The column of confidences."),
    _run("--rank COLUMN", "Predictions.rank", "The column of ranks."),
    _run(
        "--in-order",
        "Predictions.in_order",
        "Rank long predictions by the order of their rows. Their confidences do not matter.",
    ),
    _run(
        "--padding ITEM",
        "Labels.padding Predictions.padding",
        "An item that only fills up short lists. It is dropped; an example is -1.",
    ),
    _check("--query COLUMN", "row_id_column_name", "The column of ids; the first one by default."),
    _check("--item COLUMN", "item", "The column of items; the only other one by default."),
    _check(
        "--score COLUMN",
        "confidence",
        "The column of confidences, if the submission has one item per row. Ids may then repeat.",
    ),
    _one("--gain COLUMN", "Labels.gain", "The column of graded relevance."),
    _one("--binary", "Labels.binary", "Ignore gains: every label is relevant."),
)
METRICS = (
    _check(
        "-m --metric METRIC",
        "metric",
        "The metric of the competition, such as map@12 or gap. Its cutoff is the maximum "
        "number of items in a row.",
        required=True,
    ),
    Option(
        "-m --metric METRIC",
        "metrics",
        "Metrics, such as map@5,10,mrr; repeat for more. A set of metrics, such as recsys, "
        "and @FILE with names stand for several. See 'rankmill metrics'.",
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
        "A metric without a cutoff, such as map; repeat for more. See 'rankmill metrics'.",
        on="stability",
        short="*",
        name="metrics",
        kind="texts",
        default=("map",),
    ),
    Option(
        "-m --metric METRIC",
        "metrics",
        "A metric to compute in addition to those of the rules; repeat for more.",
        on="gate spark",
        name="metrics",
        kind="texts",
    ),
    Option(
        "-m --metric METRIC",
        "",
        "Show each run of this metric, such as map@12; repeat for more.",
        on="history",
        short="*",
        name="metrics",
        kind="texts",
    ),
    Option(
        "-m --metric METRIC",
        "metric",
        "The metric to explain, such as map@12.",
        on="explain explain-evaluators",
        short="*",
        required=True,
    ),
    Option(
        "--define FILE.py",
        "",
        "Run a Python file that defines your own metrics; repeat for more. Give only a file "
        "that you trust, because its code runs. See 'rankmill docs metrics'.",
        on=f"{SIDES} history metrics",
        table="",
        short="metrics",
        kind="texts",
    ),
    Option(
        "--query-id ID",
        "query_id",
        "The query to explain; leave it out for gap.",
        on="explain",
        short="*",
    ),
    Option(
        "--elsewhere",
        "",
        "List the names of the metrics in other libraries.",
        on="metrics",
        short="*",
    ),
    Option("--sets", "", "List the sets of metrics, such as official.", on="metrics", short="*"),
)
COUNTING = (
    Option(
        "--as VERSION",
        "",
        "The version of trec_eval to reproduce.",
        on="trec_eval",
        short="*",
        name="version",
        default="9",
        choices=("9", "10"),
    ),
    Option(
        "--preset NAME",
        "Semantics.preset",
        "Count as another evaluator, such as trec_eval. See 'rankmill presets' for all presets.",
        on=_PRESETS,
        table="semantics",
        short="*",
        default="default",
    ),
    Option(
        "--semantics FIELD=CHOICE",
        "Semantics",
        "Change a choice of the preset; repeat for more. An example is "
        "repeated_predictions=drop. If a FIELD or CHOICE is unknown, the error message lists "
        "all.",
        table="semantics",
        on=_PRESETS,
        short="evaluate",
        name="fields",
        kind="pairs",
    ),
    Option(
        "--presets NAMES",
        "presets",
        "Presets separated by commas; by default, all that have the metric.",
        on="explain-evaluators",
        short="*",
    ),
    _side(
        "--rel N",
        "Semantics.rel",
        "The lowest gain that counts as relevant. It applies to every metric with a parameter "
        "rel: map becomes map(rel=N). It is trec_eval's -l.",
        kind="number",
    ),
    _side(
        "--depth N",
        "Semantics.depth",
        "Count only the first N predictions of each query. It is trec_eval's -M.",
        kind="integer",
        least=1,
        short="stability explain-evaluators",
    ),
    _side(
        "--judged-only",
        "Semantics.judged_only",
        "Drop predictions that are not labels with a gain of 0 or more. Those after them move "
        "up. It is trec_eval's -J.",
    ),
    _column(
        "--gain-function --gain-map [linear|exp|GAIN=WORTH,...]",
        "Semantics.gain_function",
        "How ndcg, dcg and related metrics count a gain g. It counts as g (linear), as 2^g - "
        "1 (exp), or by a map of gains, as in trec_eval's ndcg.1=3,2=7.",
        default="linear",
        choices=("linear", "exp"),
        pairs=True,
    ),
    Option(
        "--drop-seen",
        "Catalogue.drop_seen",
        "Drop predictions that their query had in --train. Those after them move up.",
        on=f"{_LOCAL} spark",
        table="",
    ),
)
