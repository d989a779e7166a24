"""The same numbers from DataFrames of Spark."""

from pyspark.sql import SparkSession

import rankmill
from rankmill import Labels

spark = SparkSession.builder.master("local[1]").getOrCreate()
labels, run = (spark.read.parquet(f"{name}.parquet") for name in ("labels", "new"))
far = rankmill.spark.evaluate(Labels(labels, weight="visits"), run, ["map@12"])
near = rankmill.evaluate(Labels("labels.parquet", weight="visits"), "new.parquet", ["map@12"])
assert far.metrics == near.metrics
