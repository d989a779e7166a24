"""`rankmill docs`: the pages about rankmill, which are Markdown files of the package."""

from __future__ import annotations

import sys

import click

from rankmill.cli.draw import emit
from rankmill.cli.process import is_terminal

__all__ = ["command"]


def _complete(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    return [name for name in _pages() if name.startswith(begun)]


@click.command("docs")
@click.argument("page", required=False, shell_complete=_complete)
def command(page: str | None) -> None:
    """Show a PAGE about rankmill, or list the pages with what each is about."""
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
