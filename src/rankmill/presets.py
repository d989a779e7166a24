"""The semantics of other evaluators, by name."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields

from rankmill.errors import UsageError
from rankmill.semantics import Semantics


@dataclass(frozen=True)
class Preset:
    """How another evaluator counts.

    Attributes
    ----------
    semantics : Semantics
    metrics : dict of str to str
        Metric of rankmill (with @k where there is a cutoff) -> its name there. For these the
        values are equal, but for what `note` says.
    source : str
        What was read and run to find out.
    note : str
        What the fields of `Semantics` cannot express, and how it was held against the source.
    """

    semantics: Semantics
    metrics: dict[str, str]
    source: str
    note: str = ""


PRESETS: dict[str, Preset] = {"default": Preset(Semantics(), {}, "rankmill")}


def preset(name: str) -> Preset:
    """The preset of that name.

    Raises
    ------
    UsageError
        If there is none; the message lists those there are.
    """
    if name not in PRESETS:
        near = difflib.get_close_matches(name.lower(), PRESETS, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UsageError(f"unknown preset {name!r}: {hint}There are {', '.join(PRESETS)}")
    return PRESETS[name]


def semantics_of(given: str | Semantics | Mapping[str, str]) -> Semantics:
    """The semantics given: themselves, a preset by name, or a mapping of fields to choices.

    Raises
    ------
    UsageError
        If there is no such preset, field or choice.
    """
    if isinstance(given, Semantics):
        return given
    if isinstance(given, str):
        return preset(given).semantics
    if not isinstance(given, Mapping):
        raise UsageError(
            f"semantics is {given!r}; expected the name of a preset, a Semantics, or a mapping of "
            "its fields"
        )
    known = {field.name for field in fields(Semantics)}
    for field in given:
        if field not in known:
            raise UsageError(f"semantics has no field {field!r}, only {', '.join(sorted(known))}")
    return Semantics(**given)
