"""`rankmill docs`: the pages about rankmill, which are Markdown files of the package."""

import os
import sys
from collections.abc import Mapping

import click

from rankmill.cli import manual, process
from rankmill.cli.command import WHOLE, table_command
from rankmill.cli.draw import emit
from rankmill.cli.process import is_terminal

_EXAMPLES = """
rankmill docs start
rankmill docs holm correction
rankmill docs --html pages
"""


def _complete(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    return [name for name in sorted(manual.pages()) if name.startswith(begun)]


@table_command(
    "docs",
    [click.Argument(["words"], nargs=-1, metavar="[PAGE | WORDS]", shell_complete=_complete)],
    examples=_EXAMPLES,
)
def command(words: tuple[str, ...], html: str | None, man: bool) -> None:
    """Show a PAGE about rankmill, search all pages for WORDS, or list the pages by kind.

    A page is shown by its name. All other words are searched for in all pages: the sections that
    have all of them are shown, best match first. --html writes all pages as a small site, whose
    search works without a server.
    """
    if words and (html is not None or man):
        option = "--man" if html is None else "--html"
        raise click.UsageError(f"{option} is about all pages: leave out {' '.join(words)!r}")
    pages = manual.pages()
    if man:
        emit(_man())
    elif html is not None:
        from rankmill.cli.site import write_site

        write_site(html, pages)
        emit(f"wrote {len(pages) + 1} pages: open {os.path.join(html, 'index.html')}\n")
    elif not words:
        emit(manual.listed(pages))
    elif words[0] not in pages or len(words) > 1:
        emit(_found(words, pages))
    elif is_terminal(sys.stdout) and sys.stdout.encoding.lower().startswith("utf"):
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(pages[words[0]]))
    else:
        emit(pages[words[0]])


def _found(words: tuple[str, ...], pages: Mapping[str, str]) -> str:
    """Return what is found of words; a page that may be meant is named in any case."""
    from difflib import get_close_matches

    text = " ".join(words)
    found = manual.search(pages, text.split())
    # Words that are found are seldom the misspelled name of a page.
    near = get_close_matches(text.lower().removesuffix(".md"), pages, 1, 0.8 if found else 0.6)
    hint = f"did you mean {near[0]}? " if near else ""
    said = f"there is no page {text!r}: {hint}" if hint else ""
    if not found and len(text.split()) > 1:
        found = manual.search(pages, text.split(), some=True)
        said = f"no section has all of the words {text!r}: these have some"
    if not found:
        raise click.UsageError(
            f"there is no page {text!r}, and no section has these words: {hint}"
            f"there are {', '.join(pages)}"
        )
    if said and not process.quiet:
        click.echo(said, err=True)
    return manual.shown(found, text.split())


def _man() -> str:
    """The help of all commands in roff, where it stands as it is printed."""
    from rankmill.cli import COMMANDS, main
    from rankmill.package import __version__

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
