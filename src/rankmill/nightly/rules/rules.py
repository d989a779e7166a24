"""The grammar of rules, the same everywhere, and which limits a rule may have."""

import difflib
import math
import operator
import re
from collections.abc import Iterable
from datetime import date
from functools import cached_property
from typing import Any, Literal

from rankmill.errors import UsageError
from rankmill.metrics.aggregate import aggregate_of
from rankmill.metrics.aggregates.list_means import ListMean
from rankmill.metrics.base import Better, Metric
from rankmill.metrics.gap.gap import Gap
from rankmill.metrics.needs import ORDERED_TIES
from rankmill.metrics.registry import parse
from rankmill.metrics.texts import texts_of
from rankmill.nightly.runs.folder import HELD as HELD
from rankmill.nightly.runs.folder import NON_INFERIOR as NON_INFERIOR
from rankmill.nightly.runs.folder import UNDECIDED as UNDECIDED
from rankmill.package import GONE
from rankmill.records import record
from rankmill.results.audit import COUNTS, FIELDS
from rankmill.semantics.choices import Choices

# ------------------------------------------------------------------ which limits a rule may have

Range = tuple[float, float]


def whole_of(subject: str) -> str:
    """Return the count of the audit that a count is a share of."""
    one = COUNTS.get("queries_in_both" if subject == "queries" else subject)
    return "predictions" if one is None else one.of


def never_decided(metric: Metric) -> str:
    """Return why a rule with a confidence about a metric is never decided, or "".

    A mean has an interval, and so has gap.

    Examples
    --------
    >>> from rankmill.metrics.registry import parse
    >>> never_decided(parse("map@12:median"))
    'map@12:median has no interval: write confidence none, or a rule for its mean, map@12'
    """
    found = aggregate_of(metric)
    if metric.summary:
        mean = metric.text.removesuffix(f":{metric.summary}")
        return (
            f"{metric.text} has no interval: write confidence none, or a rule for its mean, {mean}"
        )
    if metric.spec.kernel or found is Gap or issubclass(found, ListMean):
        return ""
    return f"{metric.text} has no interval: write confidence none"


def why_no_interval(metric: Metric, semantics: Choices, *, alone: bool) -> str:
    """Return why gap has no interval: where the jackknife has nothing to leave out; or "".

    `alone` is whether there is a result, and no predictions.
    """
    if aggregate_of(metric) is not Gap:
        return ""
    if semantics.gap_ties in ORDERED_TIES:
        return f"the jackknife does not know the order of gap_ties {semantics.gap_ties!r}"
    return "predictions are needed for it, and not a Result" if alone else ""


def reach_of(rule: Any) -> Range:
    """Return the ends of what the limit of a rule is held against.

    Examples
    --------
    >>> from rankmill.nightly.rules.rules import parse_rule
    >>> reach_of(parse_rule("map@12 drop <= 0.1")), reach_of(parse_rule("map@12 drop <= 1%"))
    ((-1.0, 1.0), (-inf, 1.0))
    """
    if rule.kind != "metric":
        # Other counts are of repeats, which may be more than what they are a share of.
        of_queries = whole_of(rule.subject).startswith("queries_")
        return 0.0, 1.0 if rule.measure == "value" and rule.relative and of_queries else math.inf
    low, high = rule.metric.bounds
    if rule.measure == "value":
        return low, high
    return _drops(low, high, lower=rule.better == "lower", relative=rule.relative)


def _drops(low: float, high: float, *, lower: bool, relative: bool) -> Range:
    """Return the ends of a drop of a metric with this range; `lower` is whether less is better."""
    if not relative:
        return low - high, high - low
    if low < 0:
        return -math.inf, math.inf
    # The least and the most that a value is of the baseline, which is above 0.
    least = 0.0 if low == 0 or math.isinf(high) else low / high
    most = math.inf if low == 0 or math.isinf(high) else high / low
    return (least - 1, most - 1) if lower else (1 - most, 1 - least)


def range_text(low: float, high: float, *, percent: bool = False) -> str:
    """Return a range as a message shows it.

    Examples
    --------
    >>> range_text(0, 1), range_text(1, math.inf)
    ('from 0 to 1', '1 at least')
    """
    shown = [f"{100 * one:g}%" if percent else f"{one:g}" for one in (low, high)]
    if math.isinf(low) or math.isinf(high):
        ends = ["" if math.isinf(low) else f"{shown[0]} at least"]
        ends += ["" if math.isinf(high) else f"{shown[1]} at most"]
        return " and ".join(filter(None, ends)) or "any number"
    return f"from {shown[0]} to {shown[1]}"


# ------------------------------------------------------------------ rules

Kind = Literal["metric", "count", "age"]
Measure = Literal["value", "drop", "change"]

REGRESSED = "regressed"
BAD_VOLUME, BAD_AUDIT, STALE = "bad volume", "bad audit", "stale"

# Counts that are no field of the audit -> what they count.
VOLUMES = {
    "queries": "queries with labels and predictions",
    "label_rows": "rows of the labels",
    "prediction_rows": "rows of the predictions",
}
AGES = ("labels_age", "predictions_age")
# Counts that are a share of another one.
SHARES = {*FIELDS, "queries"} - {"queries_labelled", "labels", "predictions"}
SECONDS = {"min": 60, "h": 3600, "d": 86400}
EVERY = "*"
# The confidence of rules for a drop, and for slices, that name none.
USUAL_CONFIDENCE = 0.95
UNTESTED = "none"

_RULE = re.compile(
    r"""\s* (?P<guardrail> guardrail \s+ )?
    (?P<subject> [^\s\[]+ ) \s* (\[ (?P<slice> [^\]]* ) \])? \s*
    ((?P<measure> drop | change ) \s*)?
    (?P<operator> <= | >= | == | < | > ) \s*
    (?P<limit> [-+]? (\d+(\.\d*)? | \.\d+) (e[-+]?\d+)? ) \s* (?P<unit> % | min | h | d )?
    (\s+ confidence \s+ (?P<confidence> \S+ ))? (\s+ since \s+ (?P<since> \S+ ))? \s*""",
    re.VERBOSE | re.IGNORECASE,
)
_KEPT = {"<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt}
_KEPT["=="] = operator.eq
_EXAMPLES = (
    "map@12 >= 0.08; map@12 drop <= 1%; map@12[country=*] drop <= 3%; "
    "guardrail recall@12 drop <= 2%; queries_only_labelled <= 1%; queries change <= 10%; "
    "predictions_age <= 36h"
)


@record(frozen=True)
class Rule:
    """A rule, taken apart."""

    text: str
    subject: str  # a metric, a count of the audit or of `VOLUMES`, or one of `AGES`
    kind: Kind
    # The value itself; how much worse it is than the baseline; or how far a count is from the
    # baseline's, either way.
    measure: Measure
    operator: str
    limit: float  # 1% is 0.01, and 1h is 3600
    # Whether the limit is a share: of the baseline, or of what `whole_of` says of a count.
    relative: bool = False
    slices: tuple[tuple[str, str], ...] = ()  # what cuts, and the value or "*" for every one
    confidence: float | None = None  # as written: the interval has to lie beyond the limit
    tested: bool = True  # False for "confidence none", or where there is no interval
    since: date | None = None  # the first night of the series that it is about
    # Whether it is to be shown that the metric is not worse by more than the limit, beside rules
    # that are primary. As all guardrails have to keep theirs, they share no error rate.
    guardrail: bool = False

    @cached_property
    def least_confidence(self) -> float | None:
        """The confidence; of a rule for a drop, or for slices, that names none, a usual one."""
        if self.confidence is not None or not self.tested or self.kind != "metric":
            return self.confidence
        usual = self.measure == "drop" and not never_decided(self.metric)
        return USUAL_CONFIDENCE if usual or self.slices else None

    @property
    def kept(self) -> str:
        """The word for a system that keeps the rule."""
        return NON_INFERIOR if self.guardrail else HELD

    @property
    def word(self) -> str:
        """The word for a system that does not keep the rule."""
        if self.kind == "metric":
            return REGRESSED
        if self.kind == "age":
            return STALE
        return BAD_VOLUME if self.measure == "change" or self.subject in VOLUMES else BAD_AUDIT

    @cached_property
    def metric(self) -> Metric:
        """The metric that a rule of this kind is about."""
        return parse(self.subject)

    def name(self, rel: float | None) -> str:
        """Return what results call the metric; `rel` is that of all metrics."""
        return self.metric.text if rel is None else parse(self.subject, rel).text

    @property
    def better(self) -> Better:
        """Which side of the metric is better."""
        return self.metric.better

    @property
    def paired(self) -> bool:
        """Whether the rule compares with a baseline."""
        return self.measure != "value"

    @property
    def needs_baseline(self) -> bool:
        """Whether a baseline has to be given: a series of nights may be one by itself."""
        return self.paired and self.since is None

    @property
    def starred(self) -> bool:
        """Whether it is for every slice."""
        return any(value == EVERY for _, value in self.slices)

    def keeps(self, value: float) -> bool:
        """Return whether a number keeps the limit."""
        return bool(_KEPT[self.operator](value, self.limit))

    @property
    def limit_text(self) -> str:
        """The limit as a message shows it."""
        if self.kind == "age":
            return f"{self.operator} {age_text(self.limit)}"
        shown = f"{100 * self.limit:.6g}%" if self.relative else f"{self.limit:.6g}"
        return f"{self.operator} {shown}"


def age_text(seconds: float) -> str:
    """Return an age in the largest unit that it has two of.

    Examples
    --------
    >>> age_text(36 * 3600), age_text(3 * 86400), age_text(90)
    ('36h', '3d', '1.5min')
    """
    unit = "d" if seconds >= 2 * 86400 else "h" if seconds >= 2 * 3600 else "min"
    return f"{seconds / SECONDS[unit]:.3g}{unit}"


def percent(share: float) -> str:
    """Return a share in percent, to three digits.

    Examples
    --------
    >>> percent(0.0123456), percent(-0.5), percent(16.3)
    ('1.23%', '-50%', '1,630%')
    """
    return f"{100 * share:,.0f}%" if abs(share) >= 10 else f"{100 * share:.3g}%"


def amount(number: float, rule: Rule) -> str:
    """Return a number in the unit of a rule's limit: percent, or that of the metric."""
    if math.isinf(number):
        return "unbounded"
    return percent(number) if rule.relative else f"{number:.4g}"


def drop_text(rule: Rule, low: float, high: float | None = None) -> str:
    """Return a drop, or its interval, in words: a gain is no negative drop.

    Examples
    --------
    >>> rule = parse_rule("map drop <= 1%")
    >>> drop_text(rule, 0.01), drop_text(rule, -0.03, -0.01), drop_text(rule, -0.02, 0.01)
    ('drop of 1%', 'gain of 1% to 3%', '2% above to 1% below')
    """
    down, up = ("rise", "fall") if rule.better == "lower" else ("drop", "gain")
    below, above = ("above", "below") if rule.better == "lower" else ("below", "above")
    if high is None:
        return f"{down if low >= 0 else up} of {amount(abs(low), rule)}"
    if low < 0 < high:
        return f"{amount(-low, rule)} {above} to {amount(high, rule)} {below}"
    near, far = sorted((abs(low), abs(high)))
    return f"{down if high > 0 else up} of {amount(near, rule)} to {amount(far, rule)}"


def parse_rule(text: str) -> Rule:
    """Take a rule apart.

    Examples
    --------
    >>> rule = parse_rule("map@12[country=*] drop <= 3% confidence 0.9")
    >>> rule.subject, rule.measure, rule.limit, rule.relative, rule.slices, rule.confidence
    ('map@12', 'drop', 0.03, True, (('country', '*'),), 0.9)
    """
    found = _RULE.fullmatch(text)
    if found is None and re.search(r"\bsequential\s*$", text):
        raise UsageError(f"rule {text!r}: {GONE['sequential']}")
    if found is None:
        raise UsageError(f"rule {text!r} is not understood; expected one such as {_EXAMPLES}")
    subject, unit = found["subject"], (found["unit"] or "").lower()
    measure = (found["measure"] or "value").lower()
    rule = Rule(
        text=text.strip(),
        subject=subject,
        kind=_kind(subject, text),
        measure=measure,  # type: ignore[arg-type]
        operator=found["operator"],
        limit=float(found["limit"]) * SECONDS.get(unit, 1) / (100 if unit == "%" else 1),
        relative=unit == "%",
        slices=read_slices(found["slice"], text),
        confidence=_confidence((found["confidence"] or "").lower(), text),
        tested=(found["confidence"] or "").lower() != UNTESTED,
        since=_since(found["since"], text),
        guardrail=found["guardrail"] is not None,
    )
    _check(rule, unit)
    return rule


def parse_rules(texts: Iterable[str]) -> list[Rule]:
    """Take rules apart; there must be one."""
    given = texts_of("rules", texts, "rules such as 'map >= 0.1'")
    rules = [parse_rule(text) for text in dict.fromkeys(given)]
    if not rules:
        raise UsageError("no rule was given: give one with --rule, such as 'map@12 >= 0.1'")
    return rules


def _kind(subject: str, text: str) -> Kind:
    if subject in AGES:
        return "age"
    counts = [*FIELDS, *VOLUMES]
    if subject in counts:
        return "count"
    try:
        parse(subject)
    except UsageError as error:
        near = difflib.get_close_matches(subject, [*counts, *AGES], 1)
        hint = f"; did you mean {near[0]!r}?" if near else f": {error}"
        raise UsageError(
            f"rule {text!r}: {subject!r} is neither a metric, nor a count "
            f"({', '.join(counts)}), nor an age ({', '.join(AGES)}){hint}"
        ) from None
    return "metric"


def read_slices(text: str | None, rule: str) -> tuple[tuple[str, str], ...]:
    """Return what cuts and the value of it, or "*", as in country=it, of a rule or a metric."""
    if text is None:
        return ()
    # A comma before no other column is one of the value.
    pairs = [one.partition("=") for one in re.split(r",(?=[^,=]*=)", text)]
    if len(pairs) > 2 or not all(name.strip() and equals for name, equals, _ in pairs):
        raise UsageError(
            f"{rule!r}: [{text}] is not a slice; expected [COLUMN=*], [COLUMN=VALUE], or two "
            "of them with a comma between"
        )
    found = tuple((name.strip(), value.strip()) for name, _, value in pairs)
    if len({name for name, _ in found}) < len(found):
        name = found[0][0]
        raise UsageError(
            f"{rule!r}: [{text}] names {name} twice, and no query has two values of it: write "
            "a rule for each value, or [COLUMN=*] for all"
        )
    quoted = next((value for _, value in found if re.fullmatch("'.*'|\".*\"", value)), None)
    if quoted is not None:
        raise UsageError(f"{rule!r}: write the value {quoted} of a slice without quotes")
    return found


def _confidence(text: str, rule: str) -> float | None:
    if text in ("", UNTESTED):
        return None
    try:
        confidence = float(text)
    except ValueError:
        confidence = math.nan
    if not 0.5 <= confidence < 1:
        raise UsageError(
            f"rule {rule!r}: the confidence is {text}; expected a number from 0.5 to below 1, such "
            f"as 0.95, or {UNTESTED} to compare the values without a test"
        )
    return confidence


def _since(text: str | None, rule: str) -> date | None:
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"rule {rule!r}: since {text} is not a date; expected the first night, as in "
            "since 2026-05-01"
        ) from None


def _check(rule: Rule, unit: str) -> None:
    """Raise UsageError if the parts of a rule do not belong together."""
    wrong = ""
    metric = rule.kind == "metric"
    if not math.isfinite(rule.limit):
        wrong = "the limit is larger than any number"
    elif rule.paired and rule.operator not in ("<=", "<"):
        wrong = f"a {rule.measure} has an upper limit: write <= or <"
    elif rule.measure == "drop" and not metric:
        wrong = "only metrics drop: a count has a change, such as queries change <= 10%"
    elif rule.measure == "drop" and rule.better == "neither":
        wrong = (
            f"neither side of {rule.subject} is better, so that it has no drop: write a limit of "
            f"its value, such as {rule.subject} <= 0.9"
        )
    elif rule.measure == "change" and rule.kind != "count":
        wrong = "only counts have a change: write drop for a metric"
    elif rule.measure == "change" and not rule.relative:
        wrong = "a change is in percent of the baseline, such as change <= 10%"
    elif (rule.kind == "age") != (unit in SECONDS):
        wrong = "an age has a unit, min, h or d, and nothing else has"
    elif rule.measure == "value" and rule.relative and metric:
        wrong = "the value of a metric is not a share of anything: write a number, or drop <= 1%"
    elif rule.measure == "value" and rule.relative and rule.subject not in SHARES:
        wrong = f"{rule.subject} is not a share of anything: write a number, or change <= 10%"
    elif (rule.slices or rule.confidence is not None or not rule.tested) and not metric:
        wrong = "slices and a confidence are for metrics"
    elif rule.slices and not rule.metric.is_mean:
        wrong = f"{rule.subject} is not a mean over queries, so that it has no slices"
    elif rule.since is not None and (rule.measure != "drop" or not rule.metric.spec.kernel):
        wrong = "a series of nights is for the drop of a mean over queries"
    elif rule.guardrail and (rule.measure != "drop" or rule.least_confidence is None):
        wrong = "a guardrail is tested: it is for the drop of a metric that has an interval"
    elif rule.since is not None and rule.least_confidence is None:
        wrong = "a series of nights has a confidence: leave out confidence none"
    elif rule.confidence is not None and rule.operator == "==":
        wrong = "a confidence needs a limit to one side: write <=, <, >= or >"
    elif rule.confidence is not None:
        wrong = never_decided(rule.metric)
    wrong = wrong or _wrong_limit(rule)
    if wrong:
        raise UsageError(f"rule {rule.text!r}: {wrong}")


def _wrong_limit(rule: Rule) -> str:
    """Return why no value breaks a limit, or none keeps it, or ""."""
    low, high = reach_of(rule)
    kept = rule.operator != "==" and rule.keeps(low)
    most = rule.measure == "drop" and not rule.relative and rule.limit == high
    if most and rule.operator == "<":  # 1 for 1%: only a fall from the best to the worst breaks it
        return f"only a drop of all that there is breaks it; did you mean {rule.limit:g}%?"
    if low <= rule.limit <= high if rule.operator == "==" else kept != rule.keeps(high):
        return ""
    reach = range_text(low, high, percent=rule.relative)
    why = f"{rule.subject} is {reach}" if rule.measure == "value" else f"a change is {reach}"
    hint = ""
    if rule.measure == "drop":
        why = f"{rule.subject} is {range_text(*rule.metric.bounds)}, and a drop {reach}"
        hint = f"; did you mean {rule.limit:g}%?" if kept and not rule.relative else ""
    return f"nothing {'breaks' if kept else 'keeps'} it, as {why}{hint}"
