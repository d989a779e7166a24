"""Data shown as text: nothing in an id or a name acts on a terminal, a page or a spreadsheet.

Each writer of text takes one of these functions, in one place. JSON and Parquet hold data as it is.
"""

import re

LONGEST = 48
"""The most characters of a name in a page."""

# Printable for Python, but they take no room: two ids that differ in one would look the same.
_NO_ROOM = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_GREEK = "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΦΨΩ"
_GREEK_NAMES = (
    "alpha beta gamma delta varepsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau "
    "upsilon varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega"
)
_LATEX = str.maketrans(
    {
        **{one: f"\\{one}" for one in "&%$#_{}"},
        **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
        # Other characters in old fonts, and a quote that some languages redefine.
        **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\char34{}"},
        # Arguments of the end of a row, if a cell begins with them.
        **{"[": "{[}", "*": "{*}"},
        # Not in every font.
        **{"↑": r"$\uparrow$", "↓": r"$\downarrow$", "→": r"$\to$", "…": r"\dots{}"},
        **{"≈": r"$\approx$", "≤": r"$\le$", "≥": r"$\ge$", "−": "$-$", "∞": r"$\infty$"},
        **{one: f"$\\{name}$" for one, name in zip(_GREEK, _GREEK_NAMES.split(), strict=True)},
    }
)
# Characters that TeX would join with the next one, and spaces that it would drop.
_JOINED = re.compile(r"-(?=-)|,(?=,)|'(?=')|`(?=`)|[?!](?=`)")
_DROPPED = re.compile(r"^ | (?= )| $")
# In Markdown: code, emphasis, links, tags, entities, cells, strikethrough and formulas. An
# underscore within a word is none.
_MARKDOWN = re.compile(r"[\\`*\[<&|~$]|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])")
# What a spreadsheet takes for a formula, in full width too; and the mark that says it is text.
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "'")


def visible(text: str) -> str:
    r"""Text with all that is not a visible character or a space escaped as in Python.

    Control characters, line breaks, tabs, marks of direction, characters without room, other spaces
    and lone surrogates become ``\x1b``, ``\n``, ``\u202e`` and the like; a backslash becomes two,
    so that no two texts look the same.

    Examples
    --------
    >>> print(visible("a\x1b[31m\nb"), visible("a\\n"))
    a\x1b[31m\nb a\\n
    """
    return visible_message(text.replace("\\", r"\\"))


def brief(text: str, most: int = LONGEST) -> str:
    """Return a text with its middle left out if it is long, made visible.

    Examples
    --------
    >>> brief("x" * 100 + ".parquet", 20)
    'xxxxxxxxxxx….parquet'
    """
    shown = visible(text[: 4 * most] if len(text) <= 4 * most else text[:most] + text[-most:])
    if len(shown) <= most and len(text) <= 4 * most:
        return shown
    tail = most * 2 // 5
    return f"{shown[: most - tail - 1]}…{shown[-tail:]}"


def visible_message(text: str) -> str:
    """A message that quotes data: as `visible`, but backslashes stay, as ids have theirs escaped.

    Its own line breaks have to be added afterwards.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        one.encode("unicode_escape").decode("ascii") if _unseen(one) else one for one in text
    )


def markdown_text(text: str) -> str:
    """Text that Markdown shows as `visible` makes it, in a table's cell too."""
    return _MARKDOWN.sub(r"\\\g<0>", visible(text))


def latex_text(text: str) -> str:
    r"""Text that LaTeX shows as `visible` makes it, in a table's cell too.

    Examples
    --------
    >>> print(latex_text("[50%] a_b\\cmd{}"))
    {[}50\%] a\_b\textbackslash{}\textbackslash{}cmd\{\}
    """
    shown = _JOINED.sub(r"\g<0>{}", visible(text).translate(_LATEX))
    return _DROPPED.sub(r"\\ ", shown)


def csv_cell(value: object) -> str:
    """A cell: a number with every digit; a text made visible, and never a formula.

    One that begins with = + - @ or ' gets a ' before it, which spreadsheets take for the mark of a
    text and others can take off.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        return str(value)
    return f"'{visible(value)}" if value.startswith(_FORMULA) else visible(value)


def _unseen(character: str) -> bool:
    return not character.isprintable() or _NO_ROOM.match(character) is not None
