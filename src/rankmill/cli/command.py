"""The click commands: their options are rows of the table, and so are their helps."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import click

from rankmill.cli import process
from rankmill.cli.process import FAILED, TIME
from rankmill.cli.run_outputs import STANDARD_OUTPUT
from rankmill.config.config import Config, click_option, read_config
from rankmill.config.document import joined, parse_date
from rankmill.config.face import system_names
from rankmill.config.option import Option
from rankmill.config.options import options_of
from rankmill.errors import RankmillError
from rankmill.semantics.choices import CHOICES
from rankmill.semantics.semantics import Semantics

WHOLE = "rankmill.whole"
"""Where it is kept that a help is to show all options."""


class Command(click.Command):
    """A command with the options that the table has for it.

    The short help shows the first paragraph of `help`, and three lines of `examples`.
    """

    def __init__(
        self,
        name: str,
        *,
        help: str,
        examples: str = "",
        exits: dict[int, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(name, help=help, **more)
        self.rows = options_of(name)
        self._examples, self._exits = examples, process.EXIT_CODES | (exits or {})
        self._options = {
            one: click_option(one, **_MORE.get(one.name, {}))
            for rows in self.rows.values()
            for one in rows
        }
        self.params += [*self._options.values(), _help_all()]

    @property
    def example(self) -> str:
        """The first of its examples."""
        return self._examples.strip().partition("\n")[0]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help: on one screen, or whole."""
        whole = ctx.meta.get(WHOLE, False)
        self.format_usage(ctx, formatter)
        for paragraph in (self.help or "").split("\n\n")[: None if whole else 1]:
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(paragraph)
        lines = self._examples.strip().splitlines()
        if lines:
            _write_lines(formatter, "Examples", lines if whole else lines[:3])
        shown = {
            group: [one for one in rows if whole or one.is_short(str(self.name))]
            for group, rows in self.rows.items()
        }
        records = {
            group: [self._record(one, ctx, whole) for one in rows]
            for group, rows in shown.items()
            if rows
        }
        widest = max((len(one) for rows in records.values() for one, _ in rows), default=0)
        for group, rows in records.items():
            with formatter.section(group):
                formatter.write_dl([(one.ljust(min(widest, 28)), text) for one, text in rows])
        if whole:
            with formatter.section("Help"):
                formatter.write_dl(
                    [("-h, --help", "Show the usual options."), ("--help-all", "Show all options.")]
                )
            exits = [f"{code:<5}{text}" for code, text in sorted(self._exits.items())]
            _write_lines(formatter, "Exit codes", exits)
            return
        left = sum(map(len, self.rows.values())) - sum(map(len, shown.values()))
        others = f"the other {left} options" if left > 1 else "the other option"
        formatter.write_paragraph()
        formatter.write_text(f"--help-all shows {others if left else 'the exit codes'}.")

    def _record(self, one: Option, ctx: click.Context, whole: bool) -> tuple[str, str]:
        """Return how an option is written, and what it does."""
        written, told = self._options[one].get_help_record(ctx) or ("", "")
        if whole:
            return written, told
        names = one.flags[: 2 if len(one.flags[0]) == 2 else 1]
        return (
            f"{', '.join(names)} {one.metavar}".rstrip(),
            f"{one.help.split('. ')[0].rstrip('.')}.",
        )


def _write_lines(formatter: click.HelpFormatter, title: str, lines: Sequence[str]) -> None:
    with formatter.section(title):
        for line in lines:
            formatter.write(f"{'':{formatter.current_indent}}{line.strip()}\n")


def table_command(
    name: str,
    arguments: Sequence[click.Argument] = (),
    cls: type[Command] = Command,
    outputs: type[Any] | None = None,
    **more: Any,
) -> Callable[[Callable[..., None]], Command]:
    """Make a function the command of a name, whose help is the docstring if no other is given.

    It receives no `output` where -o names standard output, `semantics` instead of the options of
    semantics, and with `outputs`, such as RunOutputs, what its `of` takes from the options.
    """

    def decorate(function: Callable[..., None]) -> Command:
        more.setdefault("help", inspect.getdoc(function))

        def called(**given: Any) -> None:
            if "format" in given and given.get("output") == STANDARD_OUTPUT:
                given["output"] = None  # as without -o
            if "fields" in given:
                given["semantics"] = _semantics(given.pop("preset"), given.pop("fields"))
            if outputs is not None:
                given["outputs"] = outputs.of(given)
            function(**given)

        return cls(name, callback=called, params=[*arguments], **more)

    return decorate


def _be_quiet(_: click.Context, __: click.Parameter, wanted: bool) -> None:
    process.quiet = wanted


def _define(ctx: click.Context, _: click.Parameter, paths: tuple[str, ...]) -> None:
    """Run the files before names of metrics are read; say at the end what plain Python took."""
    if not paths or ctx.resilient_parsing:
        return
    from rankmill.metrics.own import plain_share
    from rankmill.metrics.packages import load_file

    for path in paths:
        load_file(path)
    ctx.meta["define"] = paths  # for a command that writes another one

    @ctx.call_on_close
    def say() -> None:
        if not process.quiet:  # which is read after this option
            click.echo(plain_share(), err=True, nl=False)


def complete_metrics(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """Return what may be typed for a text that is the beginning of metrics."""
    from rankmill.metrics.registry import NAMES
    from rankmill.metrics.texts import SETS

    return _completed(begun, [*NAMES, *SETS])


def complete_presets(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """Return what may be typed for a text that is the beginning of presets."""
    from rankmill.semantics.presets import PRESETS

    return _completed(begun, PRESETS)


def _completed(begun: str, names: Iterable[str]) -> list[str]:
    before, comma, last = begun.rpartition(",")
    return [before + comma + name for name in names if name.lower().startswith(last.lower())]


# What options are on a command line, beside what their rows say.
_MORE: dict[str, dict[str, Any]] = {
    "quiet": {"callback": _be_quiet, "expose_value": False},
    "define": {"callback": _define, "expose_value": False, "is_eager": True},
    **{name: {"shell_complete": complete_metrics} for name in ("metrics", "metric")},
    **{name: {"shell_complete": complete_presets} for name in ("preset", "presets")},
}


def _semantics(preset: str, fields: tuple[str, ...]) -> dict[str, str]:
    pairs = [text.partition("=") for text in fields]
    for text, (field, equals, _) in zip(fields, pairs, strict=True):
        if not equals or field not in CHOICES:
            raise click.BadParameter(
                f"{text!r} is not FIELD=CHOICE, with a field of {', '.join(CHOICES)}",
                param_hint="--semantics",
            )
    chosen = {"preset": preset} | {field: choice for field, _, choice in pairs}
    Semantics.of(chosen)  # so that an unknown one is told at once
    return chosen


def _help_all() -> click.Option:
    def show(context: click.Context, _: click.Parameter, wanted: bool) -> None:
        if wanted and not context.resilient_parsing:
            context.meta[WHOLE] = True
            click.echo(context.get_help(), color=context.color)
            context.exit()

    return click.Option(
        ["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=show
    )


# ------------------------------------------------------------------ commands that take a file

# Where the file is kept between the parsing of the command line and the run.
_CONFIG = "rankmill.config"


class FileCommand(Command):
    """A command that takes LABELS and PREDICTIONS, or a single FILE.toml in their place.

    Its function receives `labels` and `systems`, a dict of name -> predictions, as the command line
    has them. Options of the command line replace those of the file. With `apart`, there is one
    system, and the baseline apart from it: the function receives the paths `predictions` and
    `baseline`; otherwise `baseline` is the name of one of `systems`. `start` returns the outputs of
    what is typed, before it is checked.
    """

    takes_file = True

    def __init__(
        self, *arguments: Any, apart: bool = False, start: Any = None, **more: Any
    ) -> None:
        super().__init__(*arguments, **more)
        self._apart, self._start = apart, start
        self.params = [
            click.Argument(["labels"]),
            click.Argument(["predictions"], nargs=1 if apart else -1, required=True),
            *self.params,
        ]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the file, if there is one, before click looks for what is missing."""
        # Without complaints, which follow. Click keeps the option for help of the first context.
        shared: Any = {"help_option_names": ctx.help_option_names}
        lenient = click.Context(self, resilient_parsing=True, ignore_unknown_options=True, **shared)
        given, _, _ = self.make_parser(lenient).parse_args(list(args))
        labels, predictions, date = (given.get(name) for name in ("labels", "predictions", "date"))
        shows_help = self.get_help_option(ctx)
        helps = ("help_all", *([shows_help.name] if shows_help else []))
        quiet = ctx.resilient_parsing or any(given.get(one or "") is True for one in helps)
        if self._start is not None and not quiet and given.get("power") is not True:
            outputs = self._start(given)
            ctx.meta[FAILED], ctx.meta[TIME] = outputs.fail, outputs.time
        if isinstance(labels, str) and labels.lower().endswith(".toml") and not quiet:
            # What is not given has a mark of click's own, and not None in all of its versions.
            if isinstance(predictions, str | tuple) and predictions:
                self.make_parser(ctx).parse_args(list(args))  # which names an unknown option
                other = predictions if isinstance(predictions, str) else predictions[0]
                raise click.UsageError(
                    f"{labels} replaces LABELS and PREDICTIONS: leave out {other}, or {labels}",
                    ctx,
                )
            config = read_config(labels, date=date if isinstance(date, str) else None)
            config.check_taken(str(ctx.info_name), {str(one.name) for one in self.params})
            ctx.meta[_CONFIG] = config
            ctx.default_map = self.defaults_of(config)
            # click asks for PREDICTIONS; `invoke` puts those of the file in their place.
            args = [*args, *([] if "--" in args else ["--"]), labels]
        return super().parse_args(ctx, args)

    def defaults_of(self, config: Config) -> dict[str, Any]:
        """Return the options of a file, which those of the command line replace."""
        return config.defaults

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command with the systems."""
        date = ctx.params.pop("date")
        # Now, or this time of the day on another date, so that a later try is the later run of it.
        now = datetime.combine(parse_date(date), datetime.now(UTC).timetz())
        ctx.meta.setdefault(TIME, now)
        config: Config | None = ctx.meta.get(_CONFIG)
        if config is None:
            if date is not None and ctx.params.get("history") is None:
                raise click.UsageError(
                    "--date is that of a run in a history, and the {date} of a FILE.toml: leave it "
                    "out, or give --history",
                    ctx,
                )
            if not self._apart:
                given = ctx.params.pop("predictions")
                ctx.params["systems"] = dict(zip(system_names(given), given, strict=True))
        else:
            del ctx.params["predictions"]
            ctx.params["labels"] = joined(config.labels)
            if self._apart:
                found = config.one(str(ctx.info_name), True, ctx.params["baseline"])
                ctx.params["predictions"] = joined(found["predictions"])
                ctx.params["baseline"] = found["baseline"] and joined(found["baseline"])
            else:
                ctx.params |= self._several(ctx, config)
        if not self._apart and "baseline" in ctx.params:
            names = {text: name for name, text in ctx.params["systems"].items()}
            ctx.params["baseline"] = names.get(ctx.params["baseline"], ctx.params["baseline"])
        try:
            return super().invoke(ctx)
        except RankmillError as error:
            if config is not None:
                line = click.core.ParameterSource.COMMANDLINE
                typed = {name for name in ctx.params if ctx.get_parameter_source(name) is line}
                error.args = (config.with_keys(str(error.args[0]), typed),)
            raise

    def _several(self, ctx: click.Context, config: Config) -> dict[str, Any]:
        """Return the systems and, if the command has one, the baseline among them."""
        found = {"runs": config.systems}
        if "baseline" in ctx.params and ctx.params["baseline"] is None:
            found = config.several(str(ctx.info_name))
        systems = {name: joined(one) for name, one in found.pop("runs").items()}
        return {"systems": systems, **found}
