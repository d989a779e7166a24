"""Rows of options: inputs, metrics, and what is counted."""

from functools import partial

from rankmill.config.option import FILE, SIDES, Option
from rankmill.metrics.defaults import DEFAULT_METRICS
from rankmill.sources.files.formats import FORMATS

_LOCAL = "evaluate compare gate report"
_PRESETS = f"{FILE} explain"
# Columns of labels and predictions; of an input that is the one or the other.
_column = partial(Option, on=f"{SIDES} init", table="columns")
_one = partial(Option, on="convert head", short="*")
_check = partial(Option, on="check", short="*")
_side = partial(Option, on=SIDES, table="")
_top = partial(Option, table="")
_metrics = partial(Option, "-m --metric METRIC", name="metrics", kind="texts")
_beside = partial(Option, on=f"{_LOCAL} spark explain", table="", kind="input")

INPUTS = (
    _column(
        "--query COLUMN",
        "The column of query ids in both inputs. If several columns identify a query, list "
        "them: session,type. If one input has them joined in one column of text, give the "
        "pattern that joins the columns of the other: '{session}_{type}'.",
        "Labels.query Predictions.query",
        short="*",
    ),
    _column(
        "--item COLUMN",
        "The column of items in both inputs.",
        "Labels.item Predictions.item",
        short="*",
    ),
    _column(
        "--score COLUMN",
        "The column of confidences in the predictions.",
        "Predictions.score",
        short="*",
    ),
    _column(
        "--rank COLUMN",
        "The column of ranks in the predictions.",
        "Predictions.rank",
        short="evaluate report spark explain explain-evaluators",
    ),
    _column(
        "--gain COLUMN",
        "The column of graded relevance in the labels.",
        "Labels.gain",
        short="*",
    ),
    _column(
        "--label-query COLUMN",
        "The column of query ids in the labels, if it is not that of --query.",
        "Labels.query",
    ),
    _column(
        "--label-item COLUMN",
        "The column of items in the labels, if it is not that of --item.",
        "Labels.item",
    ),
    _column(
        "--labels-as FORMAT",
        "The format of the labels, if it is not detected. One of parquet, arrow, csv, "
        "tsv, trec or jsonl; or csv-long (one item per row), csv-wide (a list per cell), "
        "csv-spaces, csv-commas, csv-semicolons, csv-bars, csv-tabs (a list per cell, separated by "
        "these), csv-pairs (items and confidences in a cell), and the same for tsv.",
        "Labels.format",
    ),
    _column(
        "--predictions-as FORMAT",
        "The format of the predictions, if it is not detected. See --labels-as.",
        "Predictions.format",
    ),
    _column(
        "--columns NAMES",
        "The column names of text files without a header, such as query,item,score.",
        "Labels.columns Predictions.columns",
    ),
    _column(
        "--label-columns NAMES",
        "The column names of the labels, if they are not those of --columns.",
        "Labels.columns",
    ),
    _column(
        "--encoding NAME",
        "The encoding of text that is not UTF-8, by its Python name: latin-1, cp1252, utf-16.",
        "Labels.encoding Predictions.encoding",
    ),
    _column(
        "--label-encoding NAME",
        "The encoding of the labels, if it is not that of --encoding.",
        "Labels.encoding",
    ),
    _column(
        "--in-order",
        "Rank long predictions by the order of their rows. Ranks and confidences then do not "
        "order them; gap still reads the confidences.",
        "Predictions.in_order",
        short="init",
    ),
    _column(
        "--binary",
        "Ignore gains: every label is relevant.",
        "Labels.binary",
        short="evaluate init",
    ),
    _column(
        "--exact-ids",
        "Compare text ids as they stand. By default, spaces around them are left out, words such "
        "as nan and NULL are missing ids, and 7.0 is 7; a note counts them.",
        "Labels.exact_ids Predictions.exact_ids",
        short="",
    ),
    _column(
        "--decimal MARK",
        "The decimal mark of scores and gains in text: a comma, or by default a point.",
        "Labels.decimal Predictions.decimal",
        choices=(",", "."),
    ),
    _column(
        "--padding ITEM",
        "An item that only fills up short lists, such as -1. It is dropped, as null items are.",
        "Labels.padding Predictions.padding",
    ),
    _column(
        "--subtopic COLUMN",
        "The column of subtopics in long labels, for metrics such as alpha_ndcg and err_ia. "
        "In TREC's diversity qrels, it is 'iteration'.",
        "Labels.subtopic",
    ),
    _side(
        "--weight COLUMN",
        "The column of the labels with the weight of each query in the means.",
        "Labels.weight",
    ),
    _beside(
        "--train FILE|DIR",
        "What each query had in training, for novelty, popularity and related metrics. It has "
        "rows of a query and an item, or lists, in any format of labels. See 'rankmill docs "
        "catalogue'.",
        "Catalogue.train",
    ),
    _beside(
        "--items FILE|DIR",
        "The catalogue for coverage and gini: a table with a column of items. By default, "
        "these are the items of --train, else of --features, else all labels and predictions.",
        "Catalogue.items",
    ),
    _beside(
        "--item-group COLUMN",
        "The column of --items with the group of each item, or its groups, such as genres. "
        "exposure_parity, miscalibration, ild and epd need it.",
        "Catalogue.group",
        kind="text",
    ),
    _beside(
        "--features FILE|DIR",
        "The vectors of items, for ild_cosine and epd_cosine. A table with a column of items, "
        "and one column of lists of numbers or several of numbers.",
        "Catalogue.features",
    ),
    _one(
        "--labels",
        "Read the input as labels. By default, it is read as labels if it has gains, but "
        "neither ranks nor confidences.",
        "Labels",
        name="role",
        bare="labels",
    ),
    _one(
        "--predictions",
        "Read the input as predictions.",
        "Predictions",
        name="role",
        bare="predictions",
    ),
    _one(
        "--as --labels-as --predictions-as FORMAT",
        f"The format of the files, if it is not detected. One of {', '.join(FORMATS)}.",
        "Labels.format Predictions.format",
        name="told_format",
        choices=tuple(FORMATS),
    ),
    _one(
        "--columns --label-columns NAMES",
        "The column names of files without a header. Separate them by commas: query,item.",
        "Labels.columns Predictions.columns",
    ),
    _one(
        "--encoding --label-encoding NAME",
        "The encoding of text that is not UTF-8. Examples are latin-1 and utf-16.",
        "Labels.encoding Predictions.encoding",
    ),
    _one(
        "--query --label-query COLUMN",
        "The column of query ids. List several as session,type or '{session}_{type}'.",
        "Labels.query Predictions.query",
    ),
    _one("--item --label-item COLUMN", "The column of items.", "Labels.item Predictions.item"),
    _one("--score COLUMN", "The column of confidences.", "Predictions.score"),
    _one("--rank COLUMN", "The column of ranks.", "Predictions.rank"),
    _one(
        "--in-order",
        "Rank long predictions by the order of their rows. Their confidences do not matter.",
        "Predictions.in_order",
    ),
    _one(
        "--padding ITEM",
        "An item that only fills up short lists. It is dropped; an example is -1.",
        "Labels.padding Predictions.padding",
    ),
    _one(
        "--exact-ids",
        "Compare text ids as they stand, with spaces and words such as nan.",
        "Labels.exact_ids Predictions.exact_ids",
    ),
    _one(
        "--decimal MARK",
        "The decimal mark of numbers in text: a comma, or by default a point.",
        "Labels.decimal Predictions.decimal",
        choices=(",", "."),
    ),
    _check("--query COLUMN", "The column of ids; the first one by default.", "row_id_column_name"),
    _check("--item COLUMN", "The column of items; the only other one by default.", "item"),
    _check(
        "--score COLUMN",
        "The column of confidences, if the submission has one item per row. Ids may then repeat.",
        "confidence",
    ),
    _one("--gain COLUMN", "The column of graded relevance.", "Labels.gain"),
    _one("--binary", "Ignore gains: every label is relevant.", "Labels.binary"),
)
METRICS = (
    _check(
        "-m --metric METRIC",
        "The metric of the competition, such as map@12 or gap. Its cutoff is the maximum "
        "number of items in a row. By default, it is that of --preset.",
        "metric",
    ),
    _check(
        "--preset NAME",
        "Score the submission too, as a competition does, such as kaggle_hm. Ids that do not count "
        "there may be in the submission.",
        "semantics",
    ),
    _metrics(
        "Metrics, such as map@5,10,mrr; repeat for more. A set of metrics, such as recsys, "
        "and @FILE with names stand for several. See 'rankmill metrics'.",
        "metrics",
        on="evaluate compare report spark",
        short="*",
        table="",
        default=DEFAULT_METRICS,
    ),
    _metrics(
        "A metric to compute in addition to those of the rules; repeat for more.",
        "metrics",
        on="gate spark",
    ),
    _metrics(
        "Show each run of this metric, such as map@12; repeat for more.",
        on="history",
        short="*",
    ),
    Option(
        "-m --metric METRIC",
        "The metric to explain, such as map@12.",
        "metric",
        on="explain explain-evaluators",
        short="*",
        required=True,
    ),
    _top(
        "--define FILE.py",
        "Run a Python file that defines your own metrics; repeat for more. Give only a file "
        "that you trust, because its code runs. See 'rankmill docs metrics'.",
        on=f"{SIDES} history metrics",
        short="metrics",
        kind="texts",
    ),
    Option(
        "--query-id ID",
        "The query to explain; leave it out for gap.",
        "query_id",
        on="explain",
        short="*",
    ),
    Option(
        "--elsewhere",
        "List the names of the metrics in other libraries.",
        on="metrics",
        short="*",
    ),
    Option("--sets", "List the sets of metrics, such as official.", on="metrics", short="*"),
)
COUNTING = (
    Option(
        "--as VERSION",
        "The version of trec_eval to reproduce.",
        on="trec_eval",
        short="*",
        name="version",
        default="9",
        choices=("9", "10"),
    ),
    Option(
        "--preset NAME",
        "Count as another evaluator, such as trec_eval. See 'rankmill presets' for all presets.",
        "Semantics.preset",
        on=_PRESETS,
        table="semantics",
        short="*",
        default="default",
    ),
    Option(
        "--semantics FIELD=CHOICE",
        "Change a choice of the preset; repeat for more. An example is "
        "repeated_predictions=drop. If a FIELD or CHOICE is unknown, the error message lists "
        "all.",
        "Semantics",
        table="semantics",
        on=_PRESETS,
        short="evaluate",
        name="fields",
        kind="pairs",
    ),
    Option(
        "--presets NAMES",
        "Presets separated by commas; by default, all that have the metric.",
        "presets",
        on="explain-evaluators",
        short="*",
    ),
    _side(
        "--rel N",
        "The lowest gain that counts as relevant. It applies to every metric with a parameter "
        "rel: map becomes map(rel=N). It is trec_eval's -l.",
        "Semantics.rel",
        kind="number",
    ),
    _side(
        "--depth N",
        "Count only the first N predictions of each query. It is trec_eval's -M.",
        "Semantics.depth",
        kind="integer",
        least=1,
        short="explain-evaluators",
    ),
    _side(
        "--judged-only",
        "Drop predictions that are not labels with a gain of 0 or more. Those after them move "
        "up. It is trec_eval's -J.",
        "Semantics.judged_only",
    ),
    _column(
        "--gain-function --gain-map [linear|exp|GAIN=WORTH,...]",
        "How ndcg, dcg and related metrics count a gain g. It counts as g (linear), as 2^g - "
        "1 (exp), or by a map of gains, as in trec_eval's ndcg.1=3,2=7.",
        "Semantics.gain_function",
        default="linear",
        choices=("linear", "exp"),
        pairs=True,
    ),
    _top(
        "--drop-seen",
        "Drop predictions that their query had in --train. Those after them move up.",
        "Catalogue.drop_seen",
        on=f"{_LOCAL} explain spark",
    ),
)
