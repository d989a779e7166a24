"""`rankmill docs`: the pages about rankmill, which are Markdown files of the package."""

from __future__ import annotations

import sys

import click

from rankmill.cli.command import WHOLE, table_command
from rankmill.cli.draw import emit
from rankmill.cli.process import is_terminal


def _complete(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    return [name for name in _pages() if name.startswith(begun)]


@table_command(
    "docs",
    [click.Argument(["page"], required=False, shell_complete=_complete)],
    help="Show a PAGE about rankmill, or list the pages with what each is about.",
)
def command(page: str | None, man: bool) -> None:
    """Show a PAGE about rankmill, or list the pages with what each is about."""
    if man:
        emit(_man())
        return
    pages = _pages()
    if page is None:
        emit(_listed(pages))
    elif page not in pages:
        raise click.UsageError(_unknown(page, list(pages)))
    elif is_terminal(sys.stdout) and sys.stdout.encoding.lower().startswith("utf"):
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(pages[page]))
    else:
        emit(pages[page])


def _man() -> str:
    """The help of all commands in roff, where it stands as it is printed."""
    from rankmill.cli import COMMANDS, main
    from rankmill.version import __version__

    parts = [f'.TH RANKMILL 1 "" "rankmill {__version__}"', ".SH NAME"]
    parts.append("rankmill \\- score ranked predictions against labels")
    with click.Context(main, info_name="rankmill", max_content_width=78) as context:
        context.meta[WHOLE] = True
        helps = {"rankmill": main.get_help(context)}
        for name in COMMANDS:
            one = main.get_command(context, name)
            if one is not None:
                with click.Context(one, context, name, max_content_width=78) as inner:
                    helps[f"rankmill {name}"] = one.get_help(inner)
    for name, text in helps.items():
        # No line may begin a request of roff.
        lines = text.replace("\\", "\\e").replace("-", "\\-").replace("\n", "\n\\&")
        parts += [f'.SH "{name.upper()}"', ".nf", f"\\&{lines}", ".fi"]
    return "\n".join(parts) + "\n"


def _pages() -> dict[str, str]:
    """The name of each page and its Markdown."""
    from importlib.resources import files

    found = [one for one in (files("rankmill") / "docs").iterdir() if one.name.endswith(".md")]
    return {
        one.name.removesuffix(".md"): one.read_text("utf-8")
        for one in sorted(found, key=lambda one: one.name)
    }


def _listed(pages: dict[str, str]) -> str:
    formatter = click.HelpFormatter(max_width=100)
    with formatter.section("Pages, shown by 'rankmill docs PAGE'"):
        formatter.write_dl([(name, _about(text)) for name, text in pages.items()])
    return formatter.getvalue()


def _about(text: str) -> str:
    """The sentence that a page begins with, below its title."""
    return " ".join(text.split("\n\n")[1].split())


def _unknown(page: str, names: list[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(page.lower().removesuffix(".md"), names, 1)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"there is no page {page!r}: {hint}there are {', '.join(names)}"
