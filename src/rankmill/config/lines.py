"""The lines of a TOML document: tomllib gives values without them, and errors are to name them.

The document is one that tomllib has read, so that this walk need not find mistakes. tomlkit keeps
the layout of a document, but does not tell positions either.
"""

from __future__ import annotations

import re
import tomllib

__all__ = ["Place", "lines_of"]

Place = tuple[str | int, ...]
"""The keys that lead to a value; the elements of an array have their number, from 0."""

_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_KEY = re.compile(r"""[A-Za-z0-9_-]+|"(?:\\.|[^"\\\n])*"|'[^'\n]*'""")
# Up to two more quotation marks may stand before the three that end a string of several lines.
_STRING = re.compile(
    r'''"""(?:\\[\s\S]|[^\\])*?"""(?:"{0,2})|\'\'\'[\s\S]*?\'\'\'(?:'{0,2})'''
    r"""|"(?:\\.|[^"\\\n])*"|'[^'\n]*'"""
)
# A number, a date, true or false.
_OTHER = re.compile(r"[^\n,#\]}]+")


def lines_of(text: str) -> dict[Place, int]:
    r"""Return the line, from 1, on which each key, table and element of an array begins.

    Examples
    --------
    >>> lines_of("a = [\n  1,\n  2]\n[b]\nc.d = 3\n")
    {('a',): 1, ('a', 0): 2, ('a', 1): 3, ('b',): 4, ('b', 'c'): 5, ('b', 'c', 'd'): 5}
    """
    return _Walk(text).document()


class _Walk:
    """One walk down a document."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[Place, int] = {}
        self._line = 1
        self._counted = 0

    def document(self) -> dict[Place, int]:
        arrays: dict[Place, int] = {}  # an array of tables -> the number of its last one
        table: Place = ()
        while self._skip(_BLANK) < len(self.text):
            if not self._take("["):
                self._pair(table)
                continue
            several = self._take("[")
            names = self._key()
            self._take("]]" if several else "]")
            table = ()
            for depth, name in enumerate(names, 1):
                table = (*table, name)
                self._mark(table)
                if several and depth == len(names):
                    arrays[table] = arrays.get(table, -1) + 1
                if table in arrays:
                    table = (*table, arrays[table])
                    self._mark(table)
        return self.lines

    def _pair(self, table: Place) -> None:
        place = table
        for name in self._key():
            place = (*place, name)
            self._mark(place)
        self._take("=")
        self._skip(_SPACE)
        self._value(place)

    def _value(self, place: Place) -> None:
        if self._take("["):
            self._array(place)
        elif self._take("{"):
            while self._skip(_BLANK) < len(self.text) and not self._take("}"):
                self._pair(place)
                self._skip(_BLANK)
                self._take(",")
        elif not self._match(_STRING):
            self._match(_OTHER)

    def _array(self, place: Place) -> None:
        number = 0
        while self._skip(_BLANK) < len(self.text) and not self._take("]"):
            self._mark((*place, number))
            self._value((*place, number))
            self._skip(_BLANK)
            self._take(",")
            number += 1

    def _key(self) -> list[str]:
        """Read a key, which may have several names between dots."""
        names = []
        while True:
            self._skip(_SPACE)
            token = self._match(_KEY)
            quoted = token[:1] in ("'", '"')
            names.append(tomllib.loads(f"name = {token}")["name"] if quoted else token)
            self._skip(_SPACE)
            if not self._take("."):
                return names

    def _mark(self, place: Place) -> None:
        """Note the line of a place, if it is not known from before."""
        self._line += self.text.count("\n", self._counted, self.at)
        self._counted = self.at
        self.lines.setdefault(place, self._line)

    def _skip(self, pattern: re.Pattern[str]) -> int:
        self._match(pattern)
        return self.at

    def _take(self, token: str) -> bool:
        found = self.text.startswith(token, self.at)
        self.at += len(token) * found
        return found

    def _match(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.at)
        if found is None:
            return ""
        self.at = found.end()
        return found[0]
