"""The commands that take a FILE.toml in the place of their inputs and options."""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource

from rankmill.cli.config import OF_HISTORY, Config, read_config
from rankmill.cli.inputs import system_names
from rankmill.config.keys import joined
from rankmill.errors import RankmillError

__all__ = ["FileCommand"]

# Where the file is kept between the parsing of the command line and the run.
_CONFIG = "rankmill.config"


class FileCommand(click.Command):
    """A command that takes LABELS and PREDICTIONS, or a single FILE.toml in their place.

    Its function receives `labels` and `systems`, a dict of name -> predictions, as the command line
    has them. Options of the command line replace those of the file.

    Parameters
    ----------
    apart : bool
        Whether the baseline is no system among others: its function then receives the baseline's
        path as `baseline`, and `systems` without it. Otherwise the name of a system.
    """

    def __init__(self, *arguments: Any, apart: bool = False, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._apart = apart
        self.params = [
            click.Argument(["labels"]),
            click.Argument(["predictions"], nargs=-1, required=True),
            *self.params,
            click.Option(
                ["--date"],
                metavar="DATE",
                help="What {date} stands for in FILE.toml, as 2024-05-01; by default today in UTC.",
            ),
        ]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the file, if there is one, before click looks for what is missing."""
        given, _, _ = self.make_parser(ctx).parse_args(list(args))
        labels, predictions, date = (given.get(name) for name in ("labels", "predictions", "date"))
        shows_help = self.get_help_option(ctx)
        quiet = ctx.resilient_parsing or (shows_help and given.get(str(shows_help.name)) is True)
        if isinstance(labels, str) and _is_config(labels) and not quiet:
            # What is not given has a mark of click's own, and not None in all of its versions.
            if isinstance(predictions, tuple) and predictions:
                raise click.UsageError(
                    f"{labels} stands in the place of LABELS and PREDICTIONS: leave out "
                    f"{predictions[0]}, or {labels}",
                    ctx,
                )
            config = read_config(labels, date=date if isinstance(date, str) else None)
            ctx.meta[_CONFIG] = config
            ctx.default_map = config.defaults
            # click asks for PREDICTIONS; `invoke` puts those of the file in their place.
            args = [*args, *([] if "--" in args else ["--"]), labels]
        elif isinstance(date, str) and not quiet:
            raise click.UsageError("--date is for the {date} of a FILE.toml; leave it out", ctx)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command with the systems, and name the line of the file in its errors."""
        predictions = ctx.params.pop("predictions")
        del ctx.params["date"]
        config: Config | None = ctx.meta.get(_CONFIG)
        if config is None:
            ctx.params["systems"] = dict(zip(system_names(predictions), predictions, strict=True))
            return super().invoke(ctx)
        ctx.params["labels"] = joined(config.labels)
        ctx.params["systems"] = {name: joined(one) for name, one in config.systems.items()}
        if "baseline" in ctx.params:
            self._set_baseline(ctx, config)
        try:
            return super().invoke(ctx)
        except RankmillError as error:
            given = {
                name
                for name in ctx.params
                if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
            }
            error.args = (config.located(str(error), given - {"labels"}), *error.args[1:])
            raise

    def _set_baseline(self, ctx: click.Context, config: Config) -> None:
        """Put the baseline of the file in its place, among the systems or apart from them."""
        params, systems = ctx.params, ctx.params["systems"]
        own = params["baseline"] is None
        name = config.baseline if own else params["baseline"]
        if self._apart:
            params["baseline"] = systems.get(name, name)
            # The baseline of the file is no candidate, even if another takes its place.
            params["systems"] = {
                one: text for one, text in systems.items() if one not in (name, config.baseline)
            }
            return
        names = {text: one for one, text in systems.items()}
        name = names.get(name, name)
        if own and name is not None and name not in systems:
            if OF_HISTORY.fullmatch(name) or name.endswith(".json"):
                reason = f"{ctx.info_name} needs predictions as a baseline, not {name!r}"
                config.document.fail(("baseline",), f"{reason}; name a system with --baseline")
            short = system_names([name, *systems.values()])[0]
            short = f"{short} (baseline)" if short in systems else short
            params["systems"] = {short: name, **systems}
            name = short
        params["baseline"] = name


def _is_config(text: str) -> bool:
    return text.lower().endswith(".toml")
