"""The confidence of each rule tonight: shared with other rules, and with other nights.

A sequential rule is right on all nights together: its intervals are a confidence sequence (Howard
et al., Annals of Statistics 2021), one for the drop of each night. They hold whatever nights have
in common, as the union bound needs no independence: nights may score the same queries, and all are
compared with one baseline, whose error does not shrink. Boundaries for the mean over nights
(Waudby-Smith and Ramdas 2024; Lindon and Malek 2022) take fresh queries for granted, gain a factor
of 1.4 at most beside a baseline that stands still, and average a collapse of tonight away.
"""

import os
from collections.abc import Sequence
from dataclasses import replace

from rankmill.errors import UsageError
from rankmill.nightly.history.history import History
from rankmill.nightly.rules.baseline import Baseline
from rankmill.nightly.rules.rules import Rule
from rankmill.nightly.runs.folder import MissingHistoryError

# The first so many nights get half of the error rate, and every later night less.
HALF = 30


def share_of(look: int) -> float:
    """Return the share of its error rate that a sequential rule may spend on a look, from 1 on.

    Examples
    --------
    >>> sum(map(share_of, range(1, 31))), round(sum(map(share_of, range(1, 100_000))), 3)
    (0.5, 1.0)
    """
    return HALF / ((HALF + look - 1) * (HALF + look))


def levelled(
    rules: Sequence[Rule], family: float | None, look: int, choices: int = 1
) -> list[Rule]:
    """Return rules with the confidence that each has tonight, the look of this number.

    Rules with a confidence hold together with that of the `family`, if there is one (Bonferroni).
    `choices` says of how many runs the baseline was chosen. `last` takes a lucky one where only
    lucky nights are held: the intervals hold whichever it is.

    Examples
    --------
    >>> from rankmill.nightly.rules.rules import parse_rule
    >>> one = parse_rule("map drop <= 1% confidence 0.95")
    >>> [round(rule.confidence, 4) for rule in levelled([one, one], 0.99, 1)]
    [0.995, 0.995]
    """
    known = [one for one in rules if one.least_confidence is not None]
    if family is not None:
        if not 0.5 <= family < 1:
            raise UsageError(
                f"family_confidence is {family}; expected a number from 0.5 to below 1, such as "
                "0.95"
            )
        if not known:
            raise UsageError(
                "family_confidence is for rules with a confidence, and there is none: write one, "
                "such as map@12 drop <= 1% confidence 0.95"
            )
    found = []
    for one in rules:
        if one.least_confidence is None:
            found.append(one)
            continue
        error = 1 - one.least_confidence
        if family is not None:
            error = min(error, (1 - family) / len(known))
        if one.sequential:
            error *= share_of(look) / choices
        found.append(replace(one, confidence=1 - error))
    return found


def look_of(
    rules: Sequence[Rule], history: str | os.PathLike[str] | None, earlier: Baseline | None
) -> tuple[int, int]:
    """Return which look of sequential rules this is, and of how many runs the baseline was chosen.

    Looks are the nights of a gate, and 1 for tonight. Tries of a night are looks too. Without a
    pinned baseline all nights of the history count.
    """
    one = next((one for one in rules if one.sequential), None)
    if one is None:
        return 1, 1
    if history is None:
        raise UsageError(f"rule {one.text!r} counts the nights of a history: give --history")
    runs = history_of(history).runs
    since = None if earlier is None else earlier.since
    chosen = earlier is not None and earlier.kind == "history" and since is None
    # After the pinned one are those of its date that were recorded later, too.
    later = (
        since is None or run.time > since.time or run.recorded > since.recorded
        for run in runs
        if run.verdict is not None
    )
    return 1 + sum(later), max(1, len(runs)) if chosen else 1


def history_of(place: str | os.PathLike[str]) -> History:
    """Return a history, which has no runs if this is the first night."""
    found = History(os.fspath(place))
    try:
        _ = found.runs
    except MissingHistoryError:
        return History.held(os.fspath(place), [])
    return found
