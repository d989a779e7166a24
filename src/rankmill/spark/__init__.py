"""Score, compare and gate Spark DataFrames, with the same results as on one machine.

rankmill has to be installed for the Python of the workers, too. Where that is another Python, set
``PYSPARK_PYTHON`` to one that has it before the session starts. On one machine::

    import os, sys
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession
    import rankmill

    spark = SparkSession.builder.getOrCreate()
    labels = spark.createDataFrame([(7, [1, 2]), (8, [3])], ["query", "items"])
    old = spark.createDataFrame([(8, [3, 4]), (7, [5, 2])], ["query", "items"])
    new = spark.createDataFrame([(8, [3, 4]), (7, [1, 2])], ["query", "items"])
    result = rankmill.evaluate(labels, new, ["map@12", "hit@1"], partitions=2)
    print(result, result["map@12"])
    runs = {"old": old, "new": new}
    print(rankmill.compare(labels, runs, "map@12", partitions=2))
    rankmill.gate(labels, new, "map@12 >= 0.1", partitions=2).raise_for_failure()

Spark does not know the size of frames such as these: without ``partitions`` they are shuffled into
200. Frames that are read from files need no number. See ``rankmill docs spark`` for clusters.
"""

from rankmill.analysis.compare.compare import compare
from rankmill.engine.evaluate import evaluate, evaluate_runs
from rankmill.nightly.gate.gate import gate
from rankmill.package import handed_on

__all__ = ["compare", "evaluate", "evaluate_runs", "gate"]

__getattr__, _ = handed_on(__name__, {})  # which says what to use instead of what is gone
