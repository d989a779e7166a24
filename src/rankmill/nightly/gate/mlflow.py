"""Logging a run to an MLflow server: metrics, parameters, tags and files."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rankmill.errors import ResourceError, UsageError, install, is_shortage
from rankmill.io.stores.urls import is_url, redacted, shown

if TYPE_CHECKING:
    import pyarrow as pa

# MLflow cuts off, or refuses, longer values.
LONGEST = 500
# By default MLflow asks a server that is down for minutes.
_PATIENCE = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2", "MLFLOW_HTTP_REQUEST_TIMEOUT": "20"}
_PATIENCE["MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR"] = "1"


def tracking_uri(uri: str) -> str:
    """Return the address of the server, which is that of MLFLOW_TRACKING_URI if `uri` is ""."""
    found = uri or os.environ.get("MLFLOW_TRACKING_URI", "")
    if not found:
        raise UsageError(
            "--mlflow has no address: give that of a tracking server, such as "
            "--mlflow=http://host:5000, or set MLFLOW_TRACKING_URI"
        )
    if uri and not re.match(r"[a-z][a-z0-9+.\-]*://|databricks|uc:", uri):
        raise UsageError(
            f"--mlflow is {uri!r}; expected the address of a tracking server, such as "
            "--mlflow=http://host:5000; without one, put --mlflow after all files"
        )
    _mlflow()
    return found


def _mlflow() -> Any:
    try:
        import mlflow
    except ImportError:
        raise UsageError(f"--mlflow needs the package mlflow-skinny: {install('mlflow')}") from None
    return mlflow


def log_run(table: pa.Table, uri: str, files: Sequence[str] = ()) -> str:
    """Log a run as a new one of the experiment that MLflow's own variables name; return its id.

    `table` has the rows of the run, as a history holds them. `files` are added as artifacts; those
    in stores and those that are not there are passed over.
    """
    mlflow = _mlflow()
    rows = [row for row in table.to_pylist() if row["by"] is None]
    with _told(uri), _environment(_PATIENCE):
        client = mlflow.MlflowClient(tracking_uri=uri)
        run = client.create_run(_experiment(client), tags=_tags(rows[0]))
        identity: str = run.info.run_id
        try:
            _log(client, identity, rows)
            for path in files:
                if not is_url(path) and os.path.isfile(path):
                    client.log_artifact(identity, path)
        except BaseException:
            client.set_terminated(identity, "FAILED")
            raise
        client.set_terminated(identity)
    return identity


def _experiment(client: Any) -> str:
    """The id of the experiment that the environment names, which is made if it is missing."""
    told = os.environ.get("MLFLOW_EXPERIMENT_ID")
    if told:
        return told
    name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "Default")
    found = client.get_experiment_by_name(name)
    identity: str = client.create_experiment(name) if found is None else found.experiment_id
    return identity


def _log(client: Any, run: str, rows: Sequence[Mapping[str, Any]]) -> None:
    from mlflow.entities import Metric, Param

    first = rows[0]
    time = int(first["time"].timestamp() * 1000)
    numbers = {name: value for name, value in _numbers(rows).items() if value is not None}
    legal = names_for_mlflow(list(numbers))
    metrics = [Metric(legal[name], float(value), time, 0) for name, value in numbers.items()]
    params = [Param(key, str(value)[:LONGEST]) for key, value in _parameters(rows).items()]
    for start in range(0, max(len(metrics), len(params)), 100):  # as many as a server takes
        piece = slice(start, start + 100)
        client.log_batch(run, metrics=metrics[piece], params=params[piece])


def _numbers(rows: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """All numbers of a run; those of several systems have the name of the system in front."""
    found: dict[str, float | None] = {}
    for row in rows:
        before = "" if row["system"] is None else f"{row['system']}/"
        found[f"{before}{row['metric']}"] = row["value"]
        found[f"{before}{row['metric']}/standard_error"] = row["standard_error"]
        found[f"{before}queries"] = row["queries"]
        found |= {f"{before}audit/{name}": count for name, count in row["audit"] or ()}
    return found


def _parameters(rows: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    row = rows[0]
    found: dict[str, object] = {}
    for group in ("semantics", "scope"):
        found |= {f"{group}.{name}": value for name, value in json.loads(row[group]).items()}
    found["gain_function"] = row["gain_function"]
    of_input = ("source", "rows", "bytes", "checksum")
    found |= {f"labels.{name}": row[f"labels_{name}"] for name in of_input}
    for row in rows:
        before = "" if row["system"] is None else f"{row['system']}/"
        found |= {f"{before}predictions.{name}": row[f"predictions_{name}"] for name in of_input}
    legal = names_for_mlflow(list(found))
    return {legal[name]: value for name, value in found.items() if value is not None}


def _tags(row: Mapping[str, Any]) -> dict[str, str]:
    keys = names_for_mlflow([key for key, _ in row["tags"]])
    tags = {keys[key]: text for key, text in row["tags"]}
    tags |= {"rankmill.version": row["version"], "mlflow.runName": row["run"]}
    if row["verdict"] is not None:
        tags["rankmill.verdict"] = row["verdict"]
    return tags


def names_for_mlflow(names: Sequence[str]) -> dict[str, str]:
    """Return the name that MLflow takes for each name, all different.

    MLflow takes letters, digits, ``_ - . /`` and blanks only. "@" becomes "_at_", as in MLflow's
    own names; any other sign becomes "_".

    Examples
    --------
    >>> names_for_mlflow(["map@12", "rbp(p=0.8)@10", "map(12"])
    {'map@12': 'map_at_12', 'rbp(p=0.8)@10': 'rbp_p_0.8_at_10', 'map(12': 'map_12'}
    """
    legal: dict[str, str] = {}
    for name in names:
        text = name.replace(")", "").replace("@", "_at_")
        text = re.sub(r"[^A-Za-z0-9_\-. /]", "_", text)
        # A path that leads elsewhere is refused.
        text = "/".join(part.strip(". ") or "_" for part in text.split("/"))[:250]
        while text in legal.values():
            text += "_"
        legal[name] = text
    return legal


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set variables of the environment that are not set."""
    added = [name for name in values if name not in os.environ]
    os.environ.update({name: values[name] for name in added})
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


@contextmanager
def _told(uri: str) -> Iterator[None]:
    """Turn any error of MLflow into one that says what to do; all other outputs are written."""
    try:
        yield
    except Exception as error:
        if is_shortage(error, "logging to MLflow"):
            raise
        reason = redacted((str(error).strip() or type(error).__name__).splitlines()[0])[:300]
        raise ResourceError(
            f"the run could not be logged to MLflow at {shown(uri)}: {reason}. All other outputs "
            "are written; check the address and the server, and run again"
        ) from None
