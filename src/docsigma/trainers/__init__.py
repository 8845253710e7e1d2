"""Trainers: one loop, and one pass of each algorithm."""

from __future__ import annotations

from docsigma.trainers._base import Epoch, PassSums, StopRule, Trainer
from docsigma.trainers.algorithm1 import Algorithm1Trainer
from docsigma.trainers.minibatch import MinibatchTrainer
from docsigma.trainers.settings import MinibatchSettings
from docsigma.trainers.stream import StreamTrainer

__all__ = [
    "Algorithm1Trainer",
    "Epoch",
    "MinibatchSettings",
    "MinibatchTrainer",
    "PassSums",
    "StopRule",
    "StreamTrainer",
    "Trainer",
]
