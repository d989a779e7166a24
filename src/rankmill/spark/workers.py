"""What is said where the Python of the workers lacks a module, such as rankmill itself."""

import re
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from rankmill.errors import UsageError

_LACKING = re.compile(r"^ModuleNotFoundError: No module named '([\w.]+)'", re.MULTILINE)


Given = ParamSpec("Given")
Found = TypeVar("Found")


def workers_have_rankmill(function: Callable[Given, Found]) -> Callable[Given, Found]:
    """Let a function raise UsageError, with the way out, where tasks lack what they import."""

    @wraps(function)
    def run(*args: Given.args, **options: Given.kwargs) -> Found:
        try:
            return function(*args, **options)
        except Exception as error:
            # pyspark has such an error for classic sessions, and one for Spark Connect.
            lacking = type(error).__name__ == "PythonException" and _LACKING.search(str(error))
            if not lacking:
                raise
            raise UsageError(
                f"the Python of Spark's workers has no module {lacking[1]!r}: install rankmill for "
                "it, or set PYSPARK_PYTHON to a Python that has it before the session starts: on "
                "one machine os.environ['PYSPARK_PYTHON'] = sys.executable; 'rankmill docs spark' "
                "tells of clusters"
            ) from None

    return run
