"""The click commands: their options are rows of the table, and so are their helps."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click

from rankmill.cli import process
from rankmill.cli.output_checks import STANDARD_OUTPUT
from rankmill.config.click_options import click_option
from rankmill.config.option import Option
from rankmill.config.options import options_of
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
            if "preset" in given:
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
