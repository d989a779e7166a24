"""Logging a run to an MLflow server: metrics, parameters, tags and files."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rankmill.errors import ResourceError, UsageError, install, is_shortage
from rankmill.io.stores.urls import is_url, redacted, shown

if TYPE_CHECKING:
    import pyarrow as pa

# MLflow cuts off, or refuses, longer values.
LONGEST = 500
# By default MLflow asks a server that is down for minutes.
_PATIENCE = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
}


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


def log_run(table: pa.Table, uri: str, files: Sequence[str] = ()) -> None:
    """Log a run as a new one of the experiment that MLflow's own variables name.

    `table` has the rows of the run, as a history holds them. `files` are added as artifacts; those
    in stores and those that are not there are passed over. A ResourceError says that the server
    did not take it; all other outputs are written.
    """
    mlflow = _mlflow()
    rows = [row for row in table.to_pylist() if row["by"] is None]
    first = rows[0]
    for name, value in _PATIENCE.items():
        os.environ.setdefault(name, value)
    tags = {"rankmill.version": first["version"], "rankmill.verdict": first["verdict"]}
    tags = _named(dict(first["tags"])) | {name: one for name, one in tags.items() if one}
    try:
        mlflow.set_tracking_uri(uri)
        with mlflow.start_run(run_name=first["run"], tags=tags):
            mlflow.log_params({name: str(one)[:LONGEST] for name, one in _params(rows).items()})
            mlflow.log_metrics(_metrics(rows), timestamp=int(first["time"].timestamp() * 1000))
            for path in files:
                if not is_url(path) and os.path.isfile(path):
                    mlflow.log_artifact(path)
    except Exception as error:
        if is_shortage(error, "logging to MLflow"):
            raise
        reason = redacted((str(error).strip() or type(error).__name__).splitlines()[0])[:300]
        raise ResourceError(
            f"the run could not be logged to MLflow at {shown(uri)}: {reason}. All other outputs "
            "are written; check the address and the server, and run again"
        ) from None


def _metrics(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """All numbers of a run; those of several systems have the name of the system in front."""
    found: dict[str, Any] = {}
    for row in rows:
        before = "" if row["system"] is None else f"{row['system']}/"
        found[f"{before}{row['metric']}"] = row["value"]
        found[f"{before}{row['metric']}/standard_error"] = row["standard_error"]
        found[f"{before}queries"] = row["queries"]
        found |= {f"{before}audit/{name}": count for name, count in row["audit"] or ()}
    return _named(found)


def _params(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    first = rows[0]
    found = {"gain_function": first["gain_function"]}
    for group in ("semantics", "scope"):
        found |= {f"{group}.{name}": one for name, one in json.loads(first[group]).items()}
    for name in ("source", "rows", "bytes", "checksum"):
        found[f"labels.{name}"] = first[f"labels_{name}"]
        for row in rows:
            before = "" if row["system"] is None else f"{row['system']}/"
            found[f"{before}predictions.{name}"] = row[f"predictions_{name}"]
    return _named(found)


def _named(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return what has a value, by the names that MLflow takes."""
    legal = names_for_mlflow(list(found))
    return {legal[name]: one for name, one in found.items() if one is not None}


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
