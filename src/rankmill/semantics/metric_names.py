"""One spelling for all names that ask for the same metric."""

import re

# Which side of a metric is better, where it is not the higher one.
SIDES = {"lower": "lower is better", "neither": "neither side is better"}


def number_text(number: float) -> str:
    """The shortest text of a number: whole ones without a point."""
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else repr(number)


def canonical(name: str) -> str:
    """The name of a metric in small letters, without spaces, its parameters in order.

    Examples
    --------
    >>> canonical("MAP( rel = 2.0 )@12")
    'map(rel=2)@12'
    """
    text = re.sub(r"\s", "", name).lower()
    text = re.sub(r"@([0-9]*[.][0-9]*)", lambda found: f"@{_number(found[1])}", text)
    return re.sub(r"\((.*)\)", _parameters, text)


def _parameters(found: re.Match[str]) -> str:
    pairs = (pair.partition("=") for pair in sorted(found[1].split(",")))
    return f"({','.join(key + equals + _number(text) for key, equals, text in pairs)})"


def _number(text: str) -> str:
    try:
        return number_text(float(text))
    except (ValueError, OverflowError):
        return text


def side_text(better: str) -> str:
    """Return what stands behind a metric of which the higher value is not the better one.

    Examples
    --------
    >>> side_text("lower"), side_text("higher")
    ('; lower is better', '')
    """
    return f"; {SIDES[better]}" if better in SIDES else ""
