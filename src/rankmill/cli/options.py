"""Options that several commands share: columns, semantics, output, history, resources."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

import click

from rankmill.cli.completion import complete_metrics, complete_presets
from rankmill.cli.inputs import ChoiceOrPairs, parse_size, source_of
from rankmill.cli.recording import TIME, recording_of
from rankmill.results.writers import FORMATS
from rankmill.semantics.choices import CHOICES
from rankmill.semantics.semantics import Semantics
from rankmill.version import install

__all__ = [
    "adjust_option",
    "catalogue_inputs",
    "catalogue_options",
    "catalogue_sources",
    "cluster_option",
    "column_options",
    "history_options",
    "metric_option",
    "output_options",
    "plot_option",
    "resource_options",
    "scope_options",
    "semantics_options",
]

_Command = TypeVar("_Command", bound=Callable[..., Any])


def parse_source(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> str | list[str] | None:
    return text if text is None else source_of(text, f"--{parameter.name}")


_COLUMNS = (
    click.option(
        "--query",
        metavar="COLUMN",
        help="The column of query ids in both inputs. Several make a query as session,type. Where "
        "one side has their joined text in a column, '{session}_{type}' makes it of the columns of "
        "the other.",
    ),
    click.option("--item", metavar="COLUMN", help="The column of items in both inputs."),
    click.option("--score", metavar="COLUMN", help="The column of confidences in the predictions."),
    click.option("--rank", metavar="COLUMN", help="The column of ranks in the predictions."),
    click.option(
        "--gain", metavar="COLUMN", help="The column of gains (graded relevance) in the labels."
    ),
    click.option("--label-query", metavar="COLUMN", help="Replaces --query for the labels."),
    click.option("--label-item", metavar="COLUMN", help="Replaces --item for the labels."),
    click.option(
        "--labels-as",
        metavar="FORMAT",
        help="The format of the labels, where names and content do not tell it: parquet, arrow, "
        "orc, csv, tsv, trec or jsonl; or csv-long (an item a row), csv-wide (a list in a cell), "
        "csv-blanks, csv-commas, csv-semicolons, csv-bars (a list parted by these), csv-pairs "
        "(items and confidences in a cell), and the same for tsv.",
    ),
    click.option("--predictions-as", metavar="FORMAT", help="The same for the predictions."),
    click.option(
        "--columns",
        metavar="NAMES",
        help="The names of the columns of text without a header, as query,item,score.",
    ),
    click.option("--label-columns", metavar="NAMES", help="Replaces --columns for the labels."),
    click.option(
        "--encoding",
        metavar="NAME",
        help="The encoding of text that is not UTF-8, as Python calls it: latin-1, cp1252, utf-16.",
    ),
    click.option("--label-encoding", metavar="NAME", help="Replaces --encoding for the labels."),
    click.option(
        "--in-order",
        is_flag=True,
        help="The rows of long predictions are in rank order: neither ranks nor confidences order "
        "them. gap still reads the confidences.",
    ),
    click.option(
        "--binary",
        is_flag=True,
        help="Labels are just relevant or not: no gains are read, and every label is relevant.",
    ),
    click.option(
        "--padding",
        metavar="ITEM",
        help="An item that is none, such as the -1 with which short lists are filled: it is "
        "dropped as a null item is.",
    ),
    click.option(
        "--subtopic",
        metavar="COLUMN",
        help="The column of subtopics in long labels, for alpha_ndcg, err_ia and subtopic_recall; "
        "'iteration' in TREC's qrels of diversity.",
    ),
    click.option(
        "--gain-function",
        "--gain-map",
        type=ChoiceOrPairs(("linear", "exp")),
        metavar="[linear|exp|GAIN=WORTH,...]",
        default="linear",
        show_default=True,
        help="What a gain g of a label is worth in ndcg, dcg and their like: g (linear), 2^g - 1 "
        "(exp), or what a map says for every gain, as trec_eval's ndcg.1=3,2=7.",
    ),
)
_SEMANTICS = (
    click.option(
        "--preset",
        metavar="NAME",
        default="default",
        show_default=True,
        shell_complete=complete_presets,
        help="Count as another evaluator does, such as trec_eval. 'rankmill presets' lists all "
        "presets.",
    ),
    click.option(
        "--semantics",
        "fields",
        metavar="FIELD=CHOICE",
        multiple=True,
        help="Change one choice of the preset, for example repeated_predictions=drop. Repeat the "
        "option to change more. If a FIELD or CHOICE is unknown, the error message lists all.",
    ),
)
_SCOPE = (
    click.option(
        "--rel",
        type=float,
        metavar="N",
        help="The least gain that counts as relevant, for every metric with a parameter rel: map "
        "becomes map(rel=N). trec_eval -l.",
    ),
    click.option(
        "--depth",
        type=click.IntRange(min=1),
        metavar="N",
        help="Only the first N predictions of each query count, for all metrics. trec_eval -M.",
    ),
    click.option(
        "--judged-only",
        is_flag=True,
        help="Drop the predictions that are not among the labels with a gain of 0 or more; those "
        "behind move up. trec_eval -J.",
    ),
    click.option(
        "--weight",
        metavar="COLUMN",
        help="The column of the labels that says how much each query counts in the means.",
    ),
)
_BESIDE = (
    click.option(
        "--train",
        metavar="FILE|DIR",
        callback=parse_source,
        help="What queries had in training: rows of a query and an item, or lists, in any format "
        "that labels may have. For novelty, popularity and their kin; see 'rankmill docs "
        "catalogue'.",
    ),
    click.option(
        "--items",
        metavar="FILE|DIR",
        callback=parse_source,
        help="The catalogue that coverage and gini are over: a table with a column of items; by "
        "default the items of --train, else of --features, else all labels and predictions.",
    ),
    click.option(
        "--item-group",
        metavar="COLUMN",
        help="The column of --items with the group of each item, or its groups, such as genres; "
        "for exposure_parity, miscalibration, ild and epd.",
    ),
    click.option(
        "--features",
        metavar="FILE|DIR",
        callback=parse_source,
        help="The vectors of items, for ild_cosine and epd_cosine: a table with a column of items "
        "and one of lists of numbers, or several of numbers.",
    ),
)
_CATALOGUE = (
    *_BESIDE,
    click.option(
        "--drop-seen",
        is_flag=True,
        help="Drop the predictions that their query had in --train; those behind move up.",
    ),
)
_OUTPUT = (
    click.option(
        "--format",
        "format",
        type=click.Choice(FORMATS),
        metavar="FORMAT",
        help="The output format: table, json, csv, markdown or latex. By default the suffix of the "
        "-o file decides; without a known suffix it is table. In csv, a text that begins with "
        "= + - @ or ' gets a ' in front, so that a spreadsheet does not read it as a formula.",
    ),
    click.option(
        "-o", "--output", metavar="FILE", help="Write to FILE instead of standard output."
    ),
)
_RESOURCES = (
    click.option(
        "--memory",
        callback=parse_size,
        metavar="SIZE",
        default="1GiB",
        show_default=True,
        help="The memory limit for large inputs, such as 500MB or 2GB. If the confidences for gap "
        "need more, they are read twice. If long rows with scattered queries need more, they are "
        "grouped on disk. If the labels need more and the files are sorted by query, one range of "
        "queries is held at a time.",
    ),
    click.option(
        "--threads",
        type=click.IntRange(min=1),
        metavar="N",
        help="The number of threads; by default all available CPUs.",
    ),
)


_HISTORY = (
    click.option(
        "--history",
        metavar="DIR",
        help="Also record the run in the folder DIR, or at the URL of one, as a small Parquet file "
        "of its own. See 'rankmill history'.",
    ),
    click.option(
        "--tag",
        "tags",
        metavar="KEY=VALUE",
        multiple=True,
        help="Call the run something in the history and in MLflow, as model=a7; repeat for more.",
    ),
    click.option(
        "--mlflow",
        metavar="[URI]",
        is_flag=False,
        flag_value="",
        help="Also log the run to the MLflow server at URI, by default MLFLOW_TRACKING_URI. Put it "
        "last, or write --mlflow=URI.",
    ),
)


def metric_option(help: str, default: tuple[str, ...] = ()) -> Callable[[_Command], _Command]:
    """Return the option that names metrics; the command receives them as `metrics`."""
    return click.option(
        "-m",
        "--metric",
        "metrics",
        metavar="METRIC",
        multiple=True,
        default=default,
        show_default=bool(default),
        shell_complete=complete_metrics,
        help=help,
    )


def plot_option(what: str) -> Callable[[_Command], _Command]:
    """Return the option that draws a picture of what is named."""
    return click.option(
        "--plot",
        metavar="FILE",
        help=f"Also draw {what} to FILE, in .svg, .png or .pdf. Needs matplotlib: "
        f"{install('plot')}.",
    )


adjust_option = click.option(
    "--adjust",
    metavar="COLUMN|FILE",
    help="Narrow intervals by a number that was known of each query before, such as its value last "
    "month: a column of the labels, or a FILE with query ids and the numbers.",
)
cluster_option = click.option(
    "--cluster",
    metavar="COLUMN",
    help="Queries with the same value in this column of the labels or of a file of --by, such as "
    "the sessions of a user, are not independent: take errors and tests of clusters.",
)


def column_options(command: _Command) -> _Command:
    """Add the options that name the columns of both inputs."""
    return _with(_COLUMNS, command)


def semantics_options(command: _Command) -> _Command:
    """Add the options that choose the semantics; the command receives them as `semantics`."""

    @wraps(command)
    def combined(preset: str, fields: tuple[str, ...], **others: Any) -> Any:
        return command(semantics=_semantics(preset, fields), **others)

    return _with(_SEMANTICS, cast(_Command, combined))


def _semantics(preset: str, fields: tuple[str, ...]) -> dict[str, str]:
    pairs = [text.partition("=") for text in fields]
    for text, (field, equals, _) in zip(fields, pairs, strict=True):
        if not equals or field not in CHOICES:
            raise click.BadParameter(
                f"{text!r} is no FIELD=CHOICE with a field of {', '.join(CHOICES)}",
                param_hint="--semantics",
            )
    chosen = {"preset": preset} | {field: choice for field, _, choice in pairs}
    Semantics.of(chosen)  # so that an unknown one is told at once
    return chosen


def scope_options(command: _Command) -> _Command:
    """Add the options that say which labels and predictions count, and how much."""
    return _with(_SCOPE, command)


def catalogue_options(command: _Command) -> _Command:
    """Add the options that name the training set and the catalogue."""
    return _with(_CATALOGUE, command)


def catalogue_inputs(command: _Command) -> _Command:
    """Add these options without the one that drops predictions."""
    return _with(_BESIDE, command)


def catalogue_sources(options: Mapping[str, Any]) -> list[str | list[str]]:
    """Return the inputs that these options and --by name, which no output may replace."""
    named = [options[name] for name in ("train", "items", "features") if options[name] is not None]
    if options.get("by"):
        from rankmill.compare.cutting import cuts_of

        named += cuts_of(options["by"]).tables
    return named


def output_options(command: _Command) -> _Command:
    """Add the options for the format and the file of the output."""
    return _with(_OUTPUT, command)


def resource_options(command: _Command) -> _Command:
    """Add the options that limit memory and threads."""
    return _with(_RESOURCES, command)


def history_options(command: _Command) -> _Command:
    """Add the options that record a run; the command receives them as `recording`."""

    @wraps(command)
    def combined(
        history: str | None, tags: tuple[str, ...], mlflow: str | None, **others: Any
    ) -> Any:
        time = click.get_current_context().meta.get(TIME)
        return command(recording=recording_of(history, tags, mlflow, time), **others)

    return _with(_HISTORY, cast(_Command, combined))


def _with(options: tuple[Callable[[_Command], _Command], ...], command: _Command) -> _Command:
    for option in reversed(options):  # the help then shows the options in the order of the code
        command = option(command)
    return command
