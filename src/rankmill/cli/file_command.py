"""The commands that take a FILE.toml in the place of their inputs and options."""

from datetime import UTC, datetime
from typing import Any

import click

from rankmill.cli.command import Command
from rankmill.cli.process import FAILED, TIME
from rankmill.config.config import Config, read_config
from rankmill.config.document import parse_date
from rankmill.config.given_inputs import system_names
from rankmill.config.keys import joined
from rankmill.errors import RankmillError

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
        # Without complaints, which follow.
        lenient = click.Context(self, resilient_parsing=True, ignore_unknown_options=True)
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
