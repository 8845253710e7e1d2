"""Raw Parquet to a model and to embeddings on two workers of Ray, one of them killed.

python ray_job.py RAW_FOLDER OUT_FOLDER
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import ray
from ray.data import ActorPoolStrategy

from docsigma import BayesianSMM
from docsigma.workers import (
    CountBatches,
    EmbedBatches,
    FrequencyBatches,
    write_counts,
)


class KilledOnce:
    """Does what another does; the process that is first to come here is killed."""

    def __init__(self, work, marker):
        self.work, self.marker = work, Path(marker)

    def _die(self):
        try:
            self.marker.touch(exist_ok=False)
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)

    def __call__(self, batch):
        found = self.work(batch)
        self._die()
        return found


def main(raw, out):
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    two = {"compute": ActorPoolStrategy(size=2), "num_cpus": 0.5}
    two |= {"batch_format": "pyarrow", "batch_size": 50}
    texts = ray.data.read_parquet(str(raw)).repartition(8)

    words = FrequencyBatches(min_df=2)
    found = texts.map_batches(words, batch_format="pyarrow")
    vocabulary = words.vocabulary(found.iter_batches(batch_format="pyarrow"))
    counted = texts.map_batches(CountBatches(vocabulary), batch_format="pyarrow")
    blocks = counted.iter_batches(batch_format="pyarrow")
    counts = write_counts(blocks, out / "counts", vocabulary, id_column="id")
    model = BayesianSMM(4, max_iter=5, random_state=0, device="cpu").fit(counts)
    model.set_vocabulary(vocabulary).save(out / "model")

    embed = EmbedBatches(out / "model", device="cpu")
    arguments = {"fn_constructor_args": [embed, out / "killed-once"]}
    embedded = texts.map_batches(KilledOnce, **arguments, **two)
    table = ray.get(embedded.to_arrow_refs())
    pq.write_table(pa.concat_tables(table), out / "embedded.parquet")

    # File by file, as a task of its own each: names follow from the input.
    (out / "files").mkdir()
    once = KilledOnce(lambda file: embed.file(file, out / "files"), out / "killed-too")

    @ray.remote(num_cpus=1, max_retries=3)
    def task(file):
        return once(file)

    ray.get([task.remote(str(file)) for file in sorted(Path(raw).iterdir())])
    ray.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
