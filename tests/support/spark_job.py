"""Embed Parquet files on a local cluster of Spark, one worker killed in the middle.

python spark_job.py MODEL RAW_FOLDER OUT_FOLDER
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from pathlib import Path

import pyarrow.parquet as pq

with warnings.catch_warnings():
    # Of pandas, which this job does not use.
    warnings.simplefilter("ignore")
    from pyspark.sql import SparkSession
    from pyspark.sql.pandas.types import from_arrow_schema

from docsigma.workers import EmbedBatches, FrequencyBatches


def session():
    """Start a cluster of two executors with one core each."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    path = os.environ.get("PYTHONPATH", "")
    return (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.executorEnv.PYTHONPATH", path)
        .config("spark.executor.memory", "1g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "50")
        .config("spark.sql.files.maxPartitionBytes", "20000")
        .getOrCreate()
    )


def main(model, raw, out):
    spark = session()
    spark.sparkContext.setLogLevel("OFF")
    frame = spark.read.parquet(str(raw))
    embed = EmbedBatches(model, device="cpu")
    like = pq.read_schema(next(Path(raw).iterdir()))
    marker = str(Path(out) / "killed-once")

    def killed_once(batches):
        for batch in embed.each(batches):
            try:
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                yield batch
            else:
                os.kill(os.getpid(), signal.SIGKILL)

    schema = from_arrow_schema(embed.schema(like))
    frame.mapInArrow(killed_once, schema).write.parquet(f"{out}/embedded")

    words = FrequencyBatches(min_df=2)
    found = frame.mapInArrow(words.each, from_arrow_schema(words.schema(like)))
    summed = found.groupBy("word").sum("documents", "tokens")
    summed = summed.toDF("word", "documents", "tokens")
    summed.write.parquet(f"{out}/frequencies")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
