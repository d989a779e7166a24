"""The job: what is parsed of a request becomes its first fields, and its catalogue is not lost."""

from __future__ import annotations

from contextlib import closing
from dataclasses import fields

import pyarrow as pa
import pytest

import rankmill
from rankmill.engine.evaluate import score_systems
from rankmill.engine.job import Job, ParsedJob, parse_job

pytestmark = pytest.mark.small


def test_what_is_parsed_becomes_the_first_fields() -> None:
    names = [field.name for field in fields(Job)]
    assert tuple(names[: len(ParsedJob._fields)]) == ParsedJob._fields


def test_a_job_is_not_done_without_its_catalogue() -> None:
    labels = rankmill.Labels({"a": [1]})
    items = rankmill.Catalogue(items=pa.table({"item_id": [1, 2]}))
    job = Job(*parse_job("coverage@1", labels, "default", items))
    runs = {"": rankmill.Predictions({"a": [1]})}
    with closing(score_systems(job, labels, runs, catalogue=items)) as systems:
        assert next(systems).result["coverage@1"] == 0.5
    with closing(score_systems(job, labels, runs)) as systems, pytest.raises(AssertionError):
        next(systems)
