r"""Documents per second of engines on the same cores, beside plain `docsigma embed`.

    python benchmarks/engines.py --json benchmarks/results/engines.json

One model (K 50) of the training texts of 20 Newsgroups, or of the corpus `docstrings`
where they are not here, embeds all texts: by `docsigma embed` in one process with two
threads, by two processes with `--shard`, by Ray Data with two workers and by a local
cluster of Spark with two executors. The time of an engine is that of the job alone and,
beside it, with its start. The peer is Spark MLlib's LDA with as many topics on the same
counts: fit, transform, and the accuracy of logistic regression on what both give.
An engine that is not installed is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from docsigma import DocumentEmbedder, load_corpus
from peers_machine import OtherWork, describe_run, thread_environment

FILES = 8
WORKERS = 2
NEAR = 1e-4


def texts_of(name: str, limit: int | None) -> tuple[Any, Any]:
    corpus = load_corpus(name)
    return corpus.train[:limit], corpus.test[:limit]


def write_raw(folder: Path, texts: list[str]) -> None:
    folder.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(texts)), FILES)):
        part = {"id": [str(i) for i in rows], "text": [texts[i] for i in rows]}
        pq.write_table(pa.table(part), folder / f"part-{number}.parquet")


def plain(folder: Path, shards: int) -> dict[str, float]:
    """Embed by the command line, in one process or in shards side by side."""
    command = [sys.executable, "-m", "docsigma", "embed", str(folder / "model")]
    command += [
        str(folder / "all.parquet"),
        "--out",
        str(folder / f"e{shards}.parquet"),
    ]
    parts = (
        [[]] if shards == 1 else [["--shard", f"{i}/{shards}"] for i in range(shards)]
    )
    environment = thread_environment(WORKERS // shards)
    started = time.perf_counter()
    running = [
        subprocess.Popen(
            [*command, *part, "--device", "cpu"],
            env=environment,
            stdout=subprocess.DEVNULL,
        )
        for part in parts
    ]
    ended = [process.wait() for process in running]
    if any(ended):
        raise SystemExit("docsigma embed failed")
    return {"with_start_seconds": time.perf_counter() - started}


def on_ray(folder: Path) -> dict[str, float]:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray

    from docsigma.workers import EmbedBatches

    started = time.perf_counter()
    ray.init(num_cpus=2 * WORKERS, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    texts = ray.data.read_parquet(str(folder / "raw")).repartition(FILES)
    texts = texts.materialize()
    ready = time.perf_counter()
    embedded = texts.map_batches(
        EmbedBatches,
        fn_constructor_args=[folder / "model"],
        fn_constructor_kwargs={"device": "cpu", "threads": 1},
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(size=WORKERS),
        num_cpus=0.5,
    )
    embedded.write_parquet(str(folder / "ray"))
    ended = time.perf_counter()
    ray.shutdown()
    return {"seconds": ended - ready, "with_start_seconds": ended - started}


def spark_session() -> Any:
    import warnings

    warnings.simplefilter("ignore")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local-cluster[{WORKERS},1,2048]")
    builder = builder.config("spark.executor.memory", "2g")
    path = os.environ.get("PYTHONPATH", "")
    builder = builder.config("spark.executorEnv.PYTHONPATH", path)
    builder = builder.config("spark.executorEnv.OMP_NUM_THREADS", "1")
    spark = builder.config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def on_spark(folder: Path, spark: Any) -> dict[str, float]:
    from pyspark.sql.pandas.types import from_arrow_schema

    from docsigma.workers import EmbedBatches

    embed = EmbedBatches(folder / "model", device="cpu", threads=1)
    like = pq.read_schema(folder / "raw" / "part-0.parquet")
    frame = spark.read.parquet(str(folder / "raw")).repartition(FILES)
    frame = frame.cache()
    frame.count()
    started = time.perf_counter()
    embedded = frame.mapInArrow(embed.each, from_arrow_schema(embed.schema(like)))
    embedded.write.parquet(str(folder / "spark"))
    return {"seconds": time.perf_counter() - started}


def mllib(spark: Any, counts: Any, n_train: int, k: int, passes: int) -> Any:
    """Fit MLlib's LDA on the counts; return its topics per document, and times."""
    from pyspark.ml.clustering import LDA
    from pyspark.ml.linalg import Vectors

    size = counts.shape[1]

    def vector(i: int) -> Any:
        row = counts[i]
        return Vectors.sparse(size, row.indices.tolist(), row.data.tolist())

    rows = [(i, vector(i)) for i in range(counts.shape[0])]
    frame = spark.createDataFrame(rows, ["number", "features"]).repartition(FILES)
    train = frame.filter(frame.number < n_train).cache()
    train.count()
    started = time.perf_counter()
    model = LDA(k=k, maxIter=passes, seed=0, optimizer="online").fit(train)
    fitted = time.perf_counter()
    found = model.transform(frame).select("number", "topicDistribution").collect()
    ended = time.perf_counter()
    found.sort(key=lambda row: row.number)
    topics = np.array([row.topicDistribution.toArray() for row in found])
    return topics, {
        "fit_seconds": fitted - started,
        "transform_documents_per_second": len(rows) / (ended - fitted),
        "passes": passes,
    }


def accuracy(train: Any, labels: Any, test: Any, truth: Any) -> float:
    """Accuracy of logistic regression, in per cent."""
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return 100 * float(model.fit(train, labels).score(test, truth))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", default="20newsgroups")
    parser.add_argument("--limit", type=int, help="documents of each half")
    parser.add_argument("--components", type=int, default=50)
    parser.add_argument("--lda-passes", type=int, default=20)
    parser.add_argument("--without", nargs="*", default=[], help="ray, spark")
    parser.add_argument("--json", type=Path, required=True)
    chosen = parser.parse_args()
    train, test = texts_of(chosen.corpus, chosen.limit)
    texts = [*map(str, train.texts), *map(str, test.texts)]
    folder = Path(tempfile.mkdtemp())
    others = OtherWork()
    started = time.perf_counter()
    embedder = DocumentEmbedder(chosen.components, device="cpu", random_state=0)
    embedder.fit(list(map(str, train.texts)))
    report: dict[str, Any] = describe_run(WORKERS) | {
        "corpus": chosen.corpus,
        "n_documents": len(texts),
        "n_train": len(train.texts),
        "n_components": chosen.components,
        "docsigma": {"fit_seconds": time.perf_counter() - started},
    }
    embedder.save(folder / "model", overwrite=True)
    write_raw(folder / "raw", texts)
    ids = [str(i) for i in range(len(texts))]
    pq.write_table(pa.table({"id": ids, "text": texts}), folder / "all.parquet")
    rows: dict[str, Any] = {
        "docsigma embed, one process": plain(folder, 1),
        "docsigma embed --shard, two processes": plain(folder, 2),
    }
    expected = embedder.posterior(texts).mean
    labelled = train.labels is not None and test.labels is not None
    n = len(train.texts)
    if labelled:
        report["docsigma"]["accuracy"] = accuracy(
            expected[:n], train.labels, expected[n:], test.labels
        )
    if "ray" not in chosen.without:
        rows["Ray Data, two workers"] = on_ray(folder) | agreement(
            folder / "ray", expected
        )
    if "spark" not in chosen.without:
        began = time.perf_counter()
        spark = spark_session()
        seconds = time.perf_counter() - began
        found = on_spark(folder, spark)
        found["with_start_seconds"] = found["seconds"] + seconds
        rows["Spark, two executors"] = found | agreement(folder / "spark", expected)
        counts = embedder.model_.vocabulary_.count(texts).counts
        topics, peer = mllib(spark, counts, n, chosen.components, chosen.lda_passes)
        if labelled:
            peer["accuracy"] = accuracy(
                topics[:n], train.labels, topics[n:], test.labels
            )
        report["mllib_lda"] = peer
        spark.stop()
    for row in rows.values():
        row["documents_per_second"] = len(texts) / row.get(
            "seconds", row["with_start_seconds"]
        )
    report |= {"rows": rows, "others_busy_cores": others.busy_cores()}
    chosen.json.write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    print(json.dumps(report, indent=1))


def agreement(folder: Path, expected: Any) -> dict[str, float]:
    """Return how far the embeddings of an engine are from the library's.

    All must be there, once. Documents that do not converge (there are files in 20
    Newsgroups of ten thousand tokens and no sentence) depend on rounding, in the
    library too: how many are off by more than 1e-4 is said beside how far others are.
    """
    table = pq.read_table(folder)
    numbers = np.array(table["id"].to_pylist(), dtype=int)
    if sorted(numbers.tolist()) != list(range(len(expected))):
        raise SystemExit(f"{folder} has {len(numbers)} rows of {len(expected)}")
    found = np.array(table["mean"].to_pylist())
    off = np.abs(found - expected[numbers]).max(axis=1)
    near = off[off <= NEAR]
    return {"n_off": int((off > NEAR).sum()), "others_off_at_most": float(near.max())}


if __name__ == "__main__":
    main()
