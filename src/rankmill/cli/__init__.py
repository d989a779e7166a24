"""The `rankmill` command: finds the command asked for, and turns every error into a message."""

import os
import re
import shlex
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

from rankmill.cli import process
from rankmill.errors import InputError, RankmillError, ResourceError, install, speak_to_command_line
from rankmill.io import signals
from rankmill.io.inert_text import visible_message
from rankmill.io.stores.urls import gathered, redacted
from rankmill.package import GONE, __version__

COMMANDS: dict[str, tuple[str, str]] = {
    "evaluate": ("rankmill.cli.evaluate", "Score ranked predictions against labels."),
    "merge": ("rankmill.cli.evaluate", "Merge the states of all parts into one result."),
    "spark": ("rankmill.cli.spark", "Evaluate, compare and gate on Spark."),
    "compare": (
        "rankmill.cli.compare",
        "Compare systems, with significance tests.",
    ),
    "gate": ("rankmill.cli.gate", "Check a system against rules; the exit code stops a job."),
    "history": ("rankmill.cli.report", "Show how metrics moved over recorded runs."),
    "report": ("rankmill.cli.report", "Write an HTML report on a system."),
    "head": ("rankmill.cli.inspection", "Show how an input is read, and its first queries."),
    "check": ("rankmill.cli.inspection", "Check a competition submission for mistakes."),
    "explain": (
        "rankmill.cli.inspection",
        "Show how a metric is computed for a query, rank by rank.",
    ),
    "explain-evaluators": (
        "rankmill.cli.inspection",
        "Show why evaluators differ on the same predictions.",
    ),
    "metrics": ("rankmill.cli.metrics", "List the metrics: definition, range and source."),
    "presets": ("rankmill.cli.metrics", "List the presets: how other evaluators count."),
    "docs": ("rankmill.cli.docs", "Show the documentation."),
    "init": ("rankmill.cli.init", "Write a rankmill.toml, a file of inputs and options."),
    "convert": ("rankmill.cli.inspection", "Write any input as Parquet, sorted by query id."),
    "trec_eval": ("rankmill.cli.trec_eval", "Print what trec_eval prints, with the same flags."),
    "warmup": ("rankmill.cli.warmup", "Compile all kernels, and check the installation."),
}
"""Name -> (module, line of help). The click command there is called as here, or `command`."""
_GROUPS = {
    "evaluate": "Score",
    "compare": "Compare",
    "gate": "Monitor",
    "head": "Inspect",
    "init": "Files",
}
"""The first command of a group -> its title in the help."""


_MEANINGS = {
    "labels": "the correct items of each query",
    "predictions": "the ranked items of each query",
    "solution": "the solution, or the sample submission",
    "submission": "the file to check",
    "history": "the folder that a gate keeps its runs in",
    "source": "the file, folder or URL to read",
    "output": "the Parquet file to write",
    "states": "the files that 'rankmill evaluate --state' wrote",
}
"""What the argument of each name is; help texts have only its name."""

SIGNALLED = 128
"""The exit code of a command that a signal ends, without the number of the signal."""


class _Commands(click.Group):
    """A group that imports a command's module when it runs, and answers for all exceptions."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            if not ctx.resilient_parsing:
                near = get_close_matches(cmd_name, COMMANDS, 1)
                meant = f" (Did you mean {near[0]!r}?)" if near else ""
                there = ", ".join(COMMANDS)
                told = f"There is no command {cmd_name!r}, only: {there}.{meant}"
                ctx.fail(GONE.get(cmd_name, told))
            return None
        module = import_module(COMMANDS[cmd_name][0])
        own = getattr(module, cmd_name.replace("-", "_"), None)  # where it has more than one
        command: click.Command = own or module.command
        command.help = command.help or COMMANDS[cmd_name][1]  # python -OO has no docstrings
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, COMMANDS))
        for name, (_, text) in COMMANDS.items():
            if name in _GROUPS:
                formatter.write_paragraph()
                formatter.write_heading(_GROUPS[name])
            with formatter.indentation():
                formatter.write_dl([(name.ljust(widest), text)])

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command line and end the process, or raise SystemExit if `args` were given."""
        completing = "_RANKMILL_COMPLETE" in os.environ
        if completing or not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode, **extra)
        signals.begun()
        if args is None:
            process.prepare()
        code, message = self._outcome(sys.argv[1:] if args is None else list(args), prog_name)
        # The one place where an error is printed. Nobody may read it: the exit code still tells.
        with suppress(OSError):
            click.echo(message, err=True, nl=bool(message))
        if args is None:
            process.end(code)
        sys.exit(code)

    def _outcome(self, args: list[str], prog_name: str | None) -> tuple[int, str]:
        """Run a command line; return the exit code and what to say on standard error.

        A command may have left word of what is to be done if it fails, but for a signal.
        """
        contexts: list[click.Context] = []
        speak_to_command_line(True)
        try:
            with gathered():
                code, message = self._run(args, prog_name, contexts)
                failed = contexts[0].meta.get(process.FAILED) if contexts and message else None
                if failed is not None and code < SIGNALLED:
                    with contexts[0]:
                        message += failed(code, message)
        finally:
            speak_to_command_line(False)  # a program may have run the command
        return code, message

    def _run(
        self, args: list[str], prog_name: str | None, contexts: list[click.Context]
    ) -> tuple[int, str]:
        """Run a command line, whose context is put into a list."""
        try:
            piped = not (process.is_terminal(sys.stdout) or "COLUMNS" in os.environ)
            width = 98 if piped else None  # as in a terminal of 100 columns, for a pager or a file
            name = prog_name or "rankmill"
            with self.make_context(name, args, obj=[*args], terminal_width=width) as context:
                contexts.append(context)
                self.invoke(context)
        except click.exceptions.Exit as end:
            return end.exit_code, ""
        except click.ClickException as error:
            advice = _advice(error.ctx) if isinstance(error, click.UsageError) else ""
            return error.exit_code, _message(_told(error)) + advice
        except RankmillError as error:
            return _code(error), _message(str(error))
        except (KeyboardInterrupt, click.Abort):
            return SIGNALLED + signal.SIGINT, signals.message(signal.SIGINT)
        except BrokenPipeError:
            return 0, ""  # the reader of our output has seen enough of it
        except Exception as error:
            failed = process.output_failure() if isinstance(error, OSError) else None
            if failed is not None:
                return _code(failed), _message(str(failed))
            if isinstance(error, FileNotFoundError) and process.is_folder_gone():
                return 2, "error: the working folder was removed; change to another"
            short = process.shortage_message(error)
            own = (getattr(error, "name", None) or "").partition(".")[0] == "rankmill"
            if short is None and isinstance(error, ImportError) and not own:
                return 2, _message(
                    f"a package that rankmill needs cannot be loaded: {error}: {install()} brings "
                    "all of them up to date"
                )
            return (process.BUG, _bug(error)) if short is None else (4, short)
        return 0, ""


def _code(error: RankmillError) -> int:
    return 3 if isinstance(error, InputError) else 4 if isinstance(error, ResourceError) else 2


def _message(text: str) -> str:
    return f"error: {visible_message(redacted(text))}"


def _told(error: click.ClickException) -> str:
    """Return the message of an error; of what is missing, what it is, and a command that has it."""
    if isinstance(error, click.NoSuchOption) and error.option_name in GONE:
        return GONE[error.option_name]
    if not isinstance(error, click.MissingParameter) or error.ctx is None or error.param is None:
        return error.format_message()
    context, first = error.ctx, error.param
    # Arguments are filled from the left: those after the first missing one are missing, too.
    later = context.command.params[context.command.params.index(first) :]
    all_of = [one for one in later if one.required and isinstance(one, click.Argument)]
    named = " and ".join(_named(one, context) for one in (all_of if first in all_of else [first]))
    typed = str(getattr(context.command, "example", ""))
    if isinstance(first, click.Option):
        words = [*(context.obj or ())]
        more = re.findall(r" ((-\S+) \S+)", typed)
        typed = " ".join(
            [f"rankmill {shlex.join(words)}", *(one for one, flag in more if flag not in words)]
        )
    if getattr(context.command, "takes_file", False):
        named += ", or a FILE.toml that names them"
    return f"missing {named}" + (f": type, for example, {typed}" if typed else "")


def _named(one: click.Parameter, context: click.Context) -> str:
    """Return the name of a parameter, and what it is."""
    if isinstance(one, click.Option):
        told = (one.help or "").split(". ")[0].rstrip(".")
        return f"{one.opts[0]} {one.metavar} ({told[:1].lower()}{told[1:]})"
    name = one.make_metavar(context).removesuffix("...").strip("[]")
    return f"{name} ({_MEANINGS[str(one.name)]})"


def _advice(context: click.Context | None) -> str:
    if context is None:
        return ""
    return f"\n{context.get_usage()}\nTry '{context.command_path} --help' for help."


def _bug(error: Exception) -> str:
    message = (
        f"error: rankmill failed in a way it should not: {type(error).__name__}: "
        f"{visible_message(redacted(str(error)))}\n"
        "This is a bug; please report it, with the command line and this message."
    )
    if not os.environ.get("RANKMILL_DEBUG"):
        return f"{message}\nSet RANKMILL_DEBUG=1 to see where it happened."
    import traceback

    return f"{redacted(''.join(traceback.format_exception(error)))}{message}"


@click.group(
    "rankmill",
    cls=_Commands,
    invoke_without_command=True,
    help="Score ranked predictions against labels, fast and exactly.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, 1 failed (gate, check), 2 usage, 3 data, 4 memory, 70 bug, "
    "130 interrupted.",
)
@click.version_option(__version__, message="rankmill %(version)s")
@click.pass_context
def main(context: click.Context) -> None:
    """Show the help if nothing is asked for."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        context.exit(2)
