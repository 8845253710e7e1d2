"""Settings of the classifiers: each with its reason, and the run that shows it.

`python benchmarks/ablations.py` measures them on held-out training documents of six
corpora and writes `benchmarks/results/ablations.json`.
"""

from __future__ import annotations

# Documents are held out in so many parts to choose everything that is chosen.
N_FOLDS = 3

# Steps in which EM estimates the covariance, at the most, and the mean change of a
# document's probabilities that ends them.
STEPS = 20
TOLERANCE = 1e-3
# Documents without label that a classifier learns from, at the most.
MOST_UNLABELLED = 4000
# The different words of a document repeat each other, and count for less than they
# would alone. How much less, while documents without label shape the classes, nobody
# knows: classes are learned with each of these shares.
BELIEFS = (1.0, 0.5, 0.25)

# Pairs of words that are counted, at the most, the most frequent ones: each takes 8
# bytes per class in memory.
MOST_PAIRS = 2**18

# Documents of like length that a promise is made from, at the least: at 90 %, the
# coverage of sets made from so many has a standard deviation of 3 %.
MANY = 100

# Whole documents of like length that a p-value takes, at the least, so that it can be
# 0.05: cut copies of longer documents say less than short ones that were written so.
ENOUGH = 19

# Words to which calibration texts are cut where a length is rare: in the middle of the
# powers of two that share thresholds.
CUTS = (3, 6, 12, 24, 48, 96, 192)
