#!/usr/bin/env bash
# Everything that wants a GPU, in one call: tests, speed, full-size perplexities.
#   OUT=results-folder DOCSIGMA_DATA=... bash benchmarks/device.sh
set -u
export PYTHONPATH=src:paper/src PYTHONUNBUFFERED=1
OUT=${OUT:-benchmarks/results}
python3 -m pytest -q -p no:cacheprovider -m gpu tests/kernels tests/models paper/tests 2>&1 | tail -5
python3 benchmarks/gpu.py --json "$OUT/gpu.json"
python3 benchmarks/gpu_fit.py --json "$OUT/fit-gpu.json"
quiet() { "$@" 2>&1 | grep -v "pass/s\|s/pass"; }
quiet python3 benchmarks/perplexity.py --json "$OUT/perplexity-2k-50.json"
quiet python3 benchmarks/perplexity.py --components 200 --json "$OUT/perplexity-2k-200.json"
quiet python3 benchmarks/perplexity.py --corpus 20newsgroups --components 200 \
    --importance-draws 1000 --json "$OUT/perplexity-full-200.json"
