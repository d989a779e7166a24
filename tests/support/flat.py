"""Calls of rankmill's functions with flat options, as tests have that build dicts of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from rankmill.config.face import face_of
from rankmill.engine.evaluate import evaluate_runs
from rankmill.engine.job import Job, parse_job, runs_of
from rankmill.sources.nouns import Labels, Predictions


def flat(function: Callable[..., Any], *given: Any, **options: Any) -> Any:
    """Call a function with its inputs and flat options, such as those of the command line."""
    taken = inspect.signature(function).parameters
    options = dict(zip(taken, given, strict=False)) | options
    labels = options.pop("source" if "source" in taken else "labels", None)
    runs = options.pop("runs" if "runs" in taken else "predictions", None)
    face = face_of(function, labels, runs, options)
    return function(**{name: one for name, one in face.items() if name in taken})


def job_of(
    labels: Any, runs: Mapping[str, Any], metrics: Any, options: Mapping[str, Any], **fields: Any
) -> tuple[Job, Labels, dict[str, Predictions]]:
    """Return the job of flat options with more fields, and its inputs."""
    face = face_of(evaluate_runs, labels, runs, options)
    given = Labels.of(face["labels"])
    how = face.get("semantics", "default"), face.get("catalogue")
    memory = {"memory": face["memory"]} if "memory" in face else {}
    job = parse_job(metrics, given, *how, **memory, **fields)
    return job, given, runs_of(face["runs"])
