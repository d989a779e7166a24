"""Packages that offer metrics, by an entry point ``rankmill.metrics``, and files that do."""

import functools
import importlib.util
import os
import sys

from rankmill.errors import UsageError


@functools.cache
def load_packages() -> None:
    """Import what packages have under the entry points ``rankmill.metrics``, once.

    UsageError if one of them fails; the message names it.
    """
    from importlib.metadata import entry_points  # a twentieth of the time to start

    for point in entry_points(group="rankmill.metrics"):
        try:
            point.load()
        except Exception as error:
            raise UsageError(
                f"the entry point {point.name} of rankmill.metrics, {point.value}, fails with "
                f"{type(error).__name__}: {error}"
            ) from error


def load_file(path: str) -> None:
    """Run a file of Python that defines metrics, once; UsageError if it cannot be read or fails.

    Its module is not among those imported: what it holds travels to the workers of Spark whole.
    """
    path = os.path.realpath(path)
    if path in _loaded:
        return
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path}: it is not a Python file; expected one such as my_metrics.py")
    folder = os.path.dirname(path)
    sys.path.insert(0, folder)  # as if it were run, so that it finds what lies beside it
    try:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    except Exception as error:
        raise UsageError(f"{path}: it fails with {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(folder)
    _loaded.add(path)


_loaded: set[str] = set()
