"""Runs of other queries at one mix: what counts is within slices, whatever their shares."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import rankmill
from rankmill import History, Verdict
from rankmill.nightly.rules.measurements import MeasuredSide, Measurement
from rankmill.nightly.rules.sides import at_one_mix

RATES = np.array([0.2, 0.4, 0.6, 0.8, 0.9])
EVEN = [0.2] * 5
MOVED = [0.3, 0.3, 0.2, 0.1, 0.1]
N = 6000


def night(seed: int, shares: Any, rates: Any = RATES) -> tuple[pa.Table, pa.Table]:
    random = np.random.default_rng(seed)
    codes = random.choice(len(shares), N, p=shares)
    hit = random.random(N) < np.asarray(rates)[codes]
    queries = {"query": np.arange(N) + seed * N}
    labels = pa.table(queries | {"items": [[1]] * N, "country": [f"c{i}" for i in codes]})
    return labels, pa.table(queries | {"items": [[1] if one else [2] for one in hit]})


def last_of(folder: Path, rule: str, *nights: tuple[pa.Table, pa.Table], **more: Any) -> Verdict:
    how: dict[str, Any] = {"baseline": "last or none", "history": folder, "by": "country"} | more
    for number, (labels, predictions) in enumerate(nights):
        time = datetime(2026, 5, 1 + number, 3, tzinfo=UTC)
        found = rankmill.gate(labels, predictions, rule, time=time, **how)
        History(folder).record(found, time=time)
    return found


def test_a_mix_that_moves_is_no_drop(tmp_path: Path) -> None:
    nights = night(0, EVEN), night(1, MOVED)
    (one,) = last_of(tmp_path / "by", "hit@1 drop <= 5%", *nights).outcomes
    assert one.word == "held"
    assert one.baseline is not None
    assert " at the country mix of the baseline" in one.reason
    assert "; the mix of country moved it by -" in one.reason
    (raw,) = last_of(tmp_path / "raw", "hit@1 drop <= 5%", *nights, by=()).outcomes
    assert (raw.word, "mix" in raw.reason) == ("regressed", False)
    assert raw.value == one.value
    # What moves with the predictions is no mix.
    how = {"by": "list_length"}
    (of_lists,) = last_of(tmp_path / "lists", "hit@1 drop <= 5%", *nights, **how).outcomes
    assert of_lists.word == "regressed"


def test_a_drop_that_the_mix_hides_is_found(tmp_path: Path) -> None:
    better = night(1, MOVED[::-1], RATES * 0.9)
    found = last_of(tmp_path, "hit@1 drop <= 5%", night(0, EVEN), better)
    (one,) = found.outcomes
    assert one.value is not None
    assert one.baseline is not None
    assert one.value > one.baseline
    assert one.word == "regressed"
    assert "within the slices by -1" in one.reason


def test_the_value_is_that_of_direct_standardization(tmp_path: Path) -> None:
    nights = night(0, EVEN), night(1, MOVED)
    (one,) = last_of(tmp_path, "hit@1 drop <= 20%", *nights).outcomes
    means, shares = [], []
    for labels, predictions in nights:
        hit = np.array([items[0] == 1 for items in predictions["items"].to_pylist()])
        country = np.array(labels["country"].to_pylist())
        each = [country == f"c{i}" for i in range(5)]
        means.append(np.array([hit[rows].mean() for rows in each]))
        shares.append(np.array([rows.mean() for rows in each]))
    value, base = ((shares[0] * of).sum() for of in (means[1], means[0]))
    assert one.baseline == pytest.approx(base, rel=1e-12)
    assert one.measured == pytest.approx((base - value) / base, rel=1e-12)
    part = 100 * ((shares[1] - shares[0]) * means[1]).sum() / base
    assert f"moved it by {part:+.3g}%" in one.reason


def side(rate: float, queries: int) -> MeasuredSide:
    return MeasuredSide(rate, (rate * (1 - rate) / max(1, queries - 1)) ** 0.5, queries)


def slices(*of: tuple[float, int]) -> dict[tuple[str, str], MeasuredSide]:
    return {("c", f"c{i}"): side(*one) for i, one in enumerate(of)}


def test_errors_are_those_within_slices() -> None:
    whole = Measurement(side(0.5, 1000), side(0.5, 1000), bounds=(0.0, 1.0))
    theirs, mine = slices((0.1, 500), (0.9, 500)), slices((0.1, 800), (0.9, 200))
    known = at_one_mix(whole, mine, theirs)
    assert known is not None
    one, mix = known
    assert (one.value, one.base) == pytest.approx((0.5, 0.5))
    within = 0.25 * 0.09 * (1 / 800 + 1 / 200)
    assert one.mine.error == pytest.approx(within**0.5, rel=0.01)
    assert one.theirs.error == pytest.approx((0.09 / 1000) ** 0.5, rel=0.01)
    assert mix.part == pytest.approx(0.26 - 0.5)
    assert mix.error == pytest.approx(0.4 * (2 / 1000) ** 0.5)


def test_small_slices_are_one_and_many_that_come_or_go_are_no_mix() -> None:
    whole = Measurement(side(0.5, 1000), side(0.5, 1000), bounds=(0.0, 1.0))
    theirs = slices((0.2, 500), (0.5, 480), (1.0, 5), (0.0, 15))
    mine = slices((0.2, 300), (0.5, 680), (1.0, 15), (0.0, 5))
    known = at_one_mix(whole, mine, theirs)
    assert known is not None
    assert known[0].value == pytest.approx((0.2 * 500 + 0.5 * 480 + 0.75 * 20) / 1000)
    assert known[0].base == pytest.approx((0.2 * 500 + 0.5 * 480 + 0.25 * 20) / 1000)
    new = {**mine, ("c", "new"): side(0.1, 20)}
    known = at_one_mix(whole, new, theirs)
    assert known is not None
    assert known[1].alone == ("new",)
    assert at_one_mix(whole, {**mine, ("c", "new"): side(0.1, 100)}, theirs) is None
    assert at_one_mix(whole, slices((0.5, 1000)), slices((0.5, 1000))) is None
