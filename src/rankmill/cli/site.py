"""The pages of `rankmill docs` as a small site: one file each, and an index that is searched."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankmill.cli import manual
from rankmill.errors import UsageError
from rankmill.io import whole_files
from rankmill.io.stores.urls import is_url
from rankmill.package import __version__

if TYPE_CHECKING:
    from markdown_it.token import Token

TEMPLATES = Path(__file__).parent / "templates"
_NAMED = re.compile(r"rankmill docs ([\w-]+)")


def write_site(folder: str, pages: Mapping[str, str]) -> None:
    """Write a file for each page, its pictures, and index.html: all of them or none."""
    if not folder:
        raise UsageError("--html is empty; expected a folder, which is created if it is missing")
    if is_url(folder):
        raise UsageError(
            f"--html is the URL {folder}; expected a folder on this machine: name one, and copy "
            "it to the URL"
        )
    from rankmill.nightly.report.pages import hashed, sheet, templates_in

    environment = templates_in(TEMPLATES)
    style = sheet(TEMPLATES / "site.css")
    script = (TEMPLATES / "search.js").read_text("utf-8")
    always: dict[str, Any] = {
        "kinds": manual.KINDS,
        "version": __version__,
        "style": style,
        "script": script,
    }
    always["policy"] = (
        f"default-src 'none'; style-src {hashed(style)}; script-src {hashed(script)}; "
        "img-src 'self' file:; base-uri 'none'"
    )
    passages = {name: [*manual.passages(name, text)] for name, text in pages.items()}
    always["titles"] = titles = {name: of[0].heading for name, of in passages.items()}
    pictures = {
        one.name: one.read_bytes()
        for one in (files("rankmill") / "docs").iterdir()
        if one.name.endswith((".png", ".svg"))
    }
    template = environment.get_template("site.html")
    written: list[Any] = [(f"{folder}/{name}", content) for name, content in pictures.items()]
    for name, text in pages.items():
        names = anchors(passages[name])
        parts = {
            anchor: one.heading.replace("`", "")
            for anchor, one in zip(names, passages[name], strict=True)
            if f"\n## {one.heading}\n" in text
        }
        body = _rendered(text, names, pages, pictures)
        page = template.render(always, page=name, body=body, parts=parts)
        written.append((f"{folder}/{name}.html", page))
    index = template.render(
        always,
        page="index",
        abouts={name: manual.about(text) for name, text in pages.items()},
        tasks=manual.TASKS,
        peers=manual.PEERS,
        data=_data(passages, titles),
    )
    whole_files.write_files([(folder, None), *written, (f"{folder}/index.html", index)])


def anchors(passages: Sequence[manual.Passage]) -> list[str]:
    """Return the name of each heading of a page in links, as GitHub makes it.

    Examples
    --------
    >>> anchors([manual.Passage("a", heading, []) for heading in ("What `-m` is", "B", "B")])
    ['what--m-is', 'b', 'b-1']
    """
    found: list[str] = []
    for one in passages:
        slug = re.sub(r"[^\w -]", "", one.heading.lower()).replace(" ", "-")
        count = sum(re.fullmatch(rf"{re.escape(slug)}(-\d+)?", each) is not None for each in found)
        found.append(f"{slug}-{count}" if count else slug)
    return found


def _data(passages: Mapping[str, Sequence[manual.Passage]], titles: Mapping[str, str]) -> str:
    """Return what is searched as JSON, which no tag of HTML ends early."""
    rows = [
        [
            name,
            titles[name],
            one.heading.replace("`", ""),
            anchor,
            manual.title_of(one, number),
            "\n".join(one.lines).replace("`", ""),
        ]
        for name, of in passages.items()
        for number, (one, anchor) in enumerate(zip(of, anchors(of), strict=True))
    ]
    data = {
        "sections": rows,
        "alike": [group.split() for group in manual.ALIKE],
        "small": manual.SMALL.split(),
    }
    return json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")


def _rendered(
    text: str, names: Sequence[str], pages: Mapping[str, str], pictures: Mapping[str, bytes]
) -> str:
    """Return the HTML of a page: tables scroll, headings and names of pages are links."""
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = reader.parse(text)
    headings = [at for at, one in enumerate(tokens) if one.type == "heading_open"]
    for at, name in zip(headings, names, strict=True):
        tokens[at].attrSet("id", name)
        opened = Token("link_open", "a", 1, attrs={"href": f"#{name}"})
        inside = tokens[at + 1].children or []
        tokens[at + 1].children = [opened, *inside, Token("link_close", "a", -1)]
    for one in tokens:
        if one.attrs.pop("style", ""):  # a column of numbers; the policy allows no inline style
            one.attrSet("class", "right")
        if one.type == "fence":
            one.content = one.content.rstrip() + "\n"
        if one.children:
            one.children = [*_linked(one.children, pages, pictures)]
    html = str(reader.renderer.render(tokens, reader.options, {}))
    html = html.replace("<table>", '<div class="scroll" tabindex="0"><table>')
    return html.replace("</table>", "</table></div>").replace("<pre>", '<pre tabindex="0">')


def _linked(
    tokens: Sequence[Token], pages: Mapping[str, str], pictures: Mapping[str, bytes]
) -> Iterator[Token]:
    """Yield what stands in a paragraph; a picture that is not installed leaves its words."""
    from markdown_it.token import Token

    for one in tokens:
        named = _NAMED.fullmatch(one.content) if one.type == "code_inline" else None
        if one.type == "image" and one.attrs["src"] not in pictures:
            yield Token("text", "", 0, content=one.content)
        elif named and named[1] in pages:
            yield Token("link_open", "a", 1, attrs={"href": f"{named[1]}.html"})
            yield one
            yield Token("link_close", "a", -1)
        else:
            yield one
