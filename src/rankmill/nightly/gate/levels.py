"""The confidence of each rule: shared with other rules."""

import os
from collections.abc import Sequence
from dataclasses import replace

from rankmill.errors import UsageError
from rankmill.nightly.history.history import History
from rankmill.nightly.rules.rules import Rule
from rankmill.nightly.runs.folder import MissingHistoryError


def levelled(rules: Sequence[Rule], family: float | None) -> list[Rule]:
    """Return rules with the confidence that each has.

    Rules with a confidence hold together with that of the `family`, if there is one (Bonferroni);
    guardrails, all of which have to hold, each with its own.

    Examples
    --------
    >>> from rankmill.nightly.rules.rules import parse_rule
    >>> one = parse_rule("map drop <= 1% confidence 0.95")
    >>> [round(rule.confidence, 4) for rule in levelled([one, one], 0.99)]
    [0.995, 0.995]
    """
    if family is None:
        return list(rules)
    known = [one for one in rules if one.least_confidence is not None and not one.guardrail]
    if not 0.5 <= family < 1:
        raise UsageError(
            f"family_confidence is {family}; expected a number from 0.5 to below 1, such as 0.95"
        )
    if not known:
        raise UsageError(
            "family_confidence is for rules with a confidence, and there is none: write one, such "
            "as map@12 drop <= 1% confidence 0.95"
        )
    least = 1 - (1 - family) / len(known)
    return [
        one
        if one.least_confidence is None or one.guardrail
        else replace(one, confidence=max(one.least_confidence, least))
        for one in rules
    ]


def history_of(place: str | os.PathLike[str]) -> History:
    """Return a history, which has no runs if this is the first night."""
    found = History(os.fspath(place))
    try:
        _ = found.runs
    except MissingHistoryError:
        return History.held(os.fspath(place), [])
    return found
