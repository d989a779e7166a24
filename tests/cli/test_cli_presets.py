"""`rankmill presets`, `--preset`, and how a result names semantics that are not the default."""

import json

import pytest

from cli_runs import write_dump
from rankmill.semantics.choices import Choices
from rankmill.semantics.presets import PRESETS, Preset


@pytest.fixture
def dump(tmp_path):
    return write_dump(tmp_path)


@pytest.fixture
def strict(monkeypatch):
    """A preset that gives another map@3 than the default on the dump of `write_dump`."""
    one = Preset(Choices(unpredicted="skip"), {"map@k": "MAP at k"}, "a test", "no | note")
    monkeypatch.setitem(PRESETS, "strict", one)
    return one


@pytest.mark.small
def test_evaluate_counts_as_the_preset_says(run, dump, strict):
    code, out, err = run("evaluate", *dump, "-m", "map@3", "--preset", "strict", "--format", "json")
    assert (code, err) == (0, "")
    content = json.loads(out)
    assert content["metrics"]["map@3"] == pytest.approx((5 / 6 + 1 / 2) / 2, rel=1e-15)
    assert content["semantics"]["unpredicted"] == "skip"
    code, out, _ = run("evaluate", *dump, "-m", "map@3", "--preset", "strict")
    assert code == 0
    assert "\nsemantics    strict: unpredicted skip\n" in out


@pytest.mark.small
def test_an_unknown_preset_lists_those_there_are(run, dump):
    for more in ([], ["--plan"]):
        code, out, err = run("evaluate", *dump, "--preset", "defualt", *more)
        assert (code, out) == (2, "")
        assert err.startswith("error: unknown preset 'defualt': did you mean default?")
        assert all(name in err for name in PRESETS)


@pytest.mark.small
def test_one_preset_is_shown_by_its_name(run):
    code, shown, _ = run("presets", "kaggle_hm")
    assert (code, shown.splitlines()[0], "ml_metrics" in shown) == (0, "kaggle_hm", False)
    (one,) = json.loads(run("presets", "kaggle_hm", "--format", "json")[1])
    assert one["name"] == "kaggle_hm"
    assert run("presets", "kagle_hm")[0] == 2


def test_a_word_for_presets_names_those_that_it_may_mean(run, dump, tmp_path):
    """Not only the nearest name: MAP@k of Kaggle is ml_metrics."""
    kaggle = [name for name in PRESETS if name.startswith("kaggle")]
    meant = f"did you mean {', '.join(['ml_metrics', *kaggle[:-1]])} or {kaggle[-1]}? there are"
    code, _, err = run("evaluate", *dump, "-m", "map@3", "--preset", "kaggle")
    assert (code, meant in err) == (2, True), err
    assert "did you mean spark?" in run("evaluate", *dump, "--preset", "pyspark")[2]
    file = tmp_path / "rankmill.toml"
    file.write_text('labels = "l"\npredictions = "p"\n[semantics]\npreset = "kaggle"\n')
    code, _, err = run("evaluate", file)
    assert (code, meant in err, "semantics.preset" in err) == (2, True, True)


@pytest.mark.small
def test_fields_of_a_preset_are_changed_one_by_one(run, dump, strict):
    arguments = "evaluate", *dump, "-m", "map@3", "--format", "json", "--preset", "strict"
    code, out, err = run(
        *arguments, "--semantics", "order=worst", "--semantics", "unpredicted=zero"
    )
    assert (code, err) == (0, "")
    semantics = json.loads(out)["semantics"]
    assert semantics == Choices(order="worst", unpredicted="zero").to_dict()
    for wrong, told in (
        ("order=best-of-all", "it is one of given, confidence"),
        ("ordr=best", "not FIELD=CHOICE"),
        ("order", "not FIELD=CHOICE"),
    ):
        code, out, err = run(*arguments, "--semantics", wrong)
        assert (code, out) == (2, "")
        assert told in err
