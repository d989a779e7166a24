"""What is said where workers cannot do what they have to, and of what is not on Spark."""

import inspect
import re
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from rankmill.errors import InputError, ResourceError, UsageError, install
from rankmill.package import public

_LACKING = re.compile(r"^ModuleNotFoundError: No module named '([\w.]+)'", re.MULTILINE)
_OTHER = re.compile(r"^ImportError: rankmill (\S+) instead of (\S+)", re.MULTILINE)
_OURS = re.compile(r"^rankmill\.errors\.InputError: (.+)", re.MULTILINE)
# What Python says where it gets no more addresses, while it loads libraries or later.
_FULL = re.compile(
    r"failed to map segment|cannot allocate memory|MemoryError|can't start new thread|"
    r"realloc of size|malloc of size|Could not find/load shared object file 'libllvmlite",
    re.IGNORECASE,
)
PYTHON_MEMORY = "spark.executor.pyspark.memory"


Given = ParamSpec("Given")
Found = TypeVar("Found")


def on_spark(function: Callable[Given, Found]) -> Callable[Given, Found]:
    """Let a function refuse what is not on Spark, and tell the way out where tasks cannot run."""
    name, here = function.__name__, inspect.signature(function).parameters

    @wraps(function)
    def run(*args: Given.args, **options: Given.kwargs) -> Found:
        others = [one for one in options if one not in here]
        for one in others and inspect.signature(public(name)).parameters:
            if one in others:
                raise UsageError(
                    f"{one} is not supported on Spark: leave it out, or use rankmill.{name}, which "
                    "has it, on the same rows in files"
                )
        try:
            return function(*args, **options)
        except Exception as error:
            # Spark 4 has a class of its own for this, and Spark 3.5 has none.
            if isinstance(error, ImportError) and "must be installed" in str(error):
                raise UsageError(
                    f"Spark needs a package that is not installed here: {error}: {install('spark')}"
                ) from None
            # pyspark has such an error for classic sessions, and one for Spark Connect.
            text = str(error) if type(error).__name__ == "PythonException" else ""
            if ours := _OURS.search(text):
                raise InputError(ours[1]) from None
            lacking = _LACKING.search(text)
            if lacking is not None:
                raise UsageError(
                    f"the Python of Spark's workers has no module {lacking[1]!r}: install rankmill "
                    "for it, or set PYSPARK_PYTHON to a Python that has it before the session "
                    "starts: on one machine os.environ['PYSPARK_PYTHON'] = sys.executable; "
                    "see 'rankmill docs spark' for clusters"
                ) from None
            other = _OTHER.search(text)
            if other is not None:
                raise UsageError(
                    f"the Python of Spark's workers has rankmill {other[1]}, and the driver has "
                    f"{other[2]}: install the same version for both; see 'rankmill docs spark' for "
                    "clusters"
                ) from None
            limit = _limit() if _FULL.search(text) else None
            if limit is None:
                raise
            raise ResourceError(
                f"{PYTHON_MEMORY} is {limit}, which is too little for the Python of the executors: "
                # It limits addresses, of which libraries reserve more than they use.
                "leave it out, or set it to 1.1GB and four times the rows of a task for each core "
                "of an executor"
            ) from None

    return run


def _limit() -> str | None:
    """Return the limit of the Python of executors, if the session has one."""
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    return None if session is None else session.conf.get(PYTHON_MEMORY, None)
